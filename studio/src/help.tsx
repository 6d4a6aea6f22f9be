/** The keys of every room, in one dialog. */
import type { ReactElement, RefObject } from "react";
import { KEYS } from "./talk/keys";
import { BRIDGE_KEYS } from "./bridge/keys";
import { TIMELINE_KEYS } from "./sessions/timeline-keys";

function Keys({ title, keys }: { title: string; keys: [key: string, meaning: string][] }): ReactElement {
  return (
    <section>
      <h3>{title}</h3>
      <dl>
        {keys.map(([key, meaning]) => (
          <div key={key}>
            <dt><kbd>{key}</kbd></dt>
            <dd>{meaning}</dd>
          </div>
        ))}
      </dl>
    </section>
  );
}

export function Help({ dialog, onTour }: { dialog: RefObject<HTMLDialogElement | null>; onTour: () => void }): ReactElement {
  return (
    <dialog ref={dialog} className="help" aria-labelledby="help-title">
      <h2 id="help-title">Keyboard</h2>
      <Keys title="Talk" keys={KEYS} />
      <Keys title="A session's timeline" keys={TIMELINE_KEYS} />
      <Keys title="The Bridge" keys={BRIDGE_KEYS} />
      <form method="dialog" className="help-end">
        <button type="submit" className="button" onClick={onTour}>Show me around</button>
        <button type="submit" className="button">Close</button>
      </form>
    </dialog>
  );
}
