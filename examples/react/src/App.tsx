import { type FormEvent, useState } from "react";
import { useVoiceAgent } from "voxbridge/react";
import { config } from "./agent";

export function App() {
  const { agent, connection, state, messages, transcript, microphone, error, cancel, reset } = useVoiceAgent({ config });
  const [text, setText] = useState("");
  const up = connection === "connected";
  const talking = microphone === "on" || microphone === "muted";

  function send(event: FormEvent) {
    event.preventDefault();
    void agent.sendText(text);
    setText("");
  }

  if (connection === "idle" || connection === "closed") {
    return (
      <main>
        <button onClick={() => void agent.start().catch(() => undefined)}>Ask about a train</button>
        {error && <p role="alert">{`${error.message} ${error.action}`}</p>}
      </main>
    );
  }
  return (
    <main>
      <ol role="log" aria-label="Conversation">
        {messages.map(({ role, text, unheard, steps }, index) => (
          <li key={index} className={role}>
            {steps.map((step, number) => (
              <small key={number}>{step}</small>
            ))}
            {text} {unheard && <s title="Made, but not heard">{unheard}</s>}
          </li>
        ))}
        {transcript && <li className="user">{transcript}…</li>}
      </ol>
      <p role="status">{talking ? state : connection}</p>
      {error && <p role="alert">{`${error.message} ${error.action}`}</p>}
      <form onSubmit={send}>
        <input aria-label="Message" value={text} onChange={(event) => setText(event.target.value)} />
        <button disabled={!up || text.trim() === ""}>Send</button>
      </form>
      <button disabled={!up} aria-pressed={talking} onClick={() => void (talking ? agent.endVoice() : agent.startVoice().catch(() => undefined))}>
        {talking ? "Go on in text" : "Talk"}
      </button>
      <button onClick={cancel}>Quiet</button>
      <button onClick={reset}>Begin anew</button>
    </main>
  );
}
