/** Who do you want to talk to: a quiet button that says it, and the dialog in which it is chosen. Used from the next call. */
import { type ReactElement, type ReactNode, useId, useRef, useState } from "react";
import type { Mode } from "voxbridge/react";
import { Link } from "wouter";
import { AGENTS, type Roster, type Voice } from "../agents/api";
import { Missing } from "../agents/missing";
import { useLoaded } from "../http";
import { Icon } from "../icons";
import { agentName } from "../words";
import { type Choice, MODES, type ModeWords, named, ofAgent, ofMode } from "./choice";

interface ChooserProps {
  choice: Choice;
  choose: (choice: Choice) => void;
}

export function Chooser({ choice, choose }: ChooserProps): ReactElement {
  const dialog = useRef<HTMLDialogElement>(null);
  const [open, setOpen] = useState(false);
  const show = (): void => {
    setOpen(true);
    dialog.current?.showModal();
  };
  return (
    <>
      <button type="button" className="pill" aria-haspopup="dialog" onClick={show}>
        <span className="pill-label">Talk to</span> <b>{named(choice)}</b>
        <Icon name="down" size={16} />
      </button>
      <dialog ref={dialog} className="chooser" aria-labelledby="chooser-title" onClose={() => setOpen(false)}>
        <h2 id="chooser-title">Who do you want to talk to?</h2>
        {open && <Choices choice={choice} choose={choose} />}
        <form method="dialog">
          <button type="submit" className="button">Done</button>
        </form>
      </dialog>
    </>
  );
}

type Status = Partial<Record<`${string}_available`, boolean>>;

function Choices({ choice, choose }: ChooserProps): ReactElement {
  const status = useLoaded<Status>("/api/vox/status").value;
  const roster = useLoaded<Roster>(AGENTS);
  const teams = roster.value === null ? [] : [...roster.value.pipelines.map((one) => ({ ...one, role: "Pipeline" })), ...roster.value.agents];
  return (
    <>
      <fieldset>
        <legend>A model</legend>
        {MODES.map((one) => {
          const keyless = one.mode !== "local" && one.mode !== "echo" && status !== null && status[`${one.mode}_available`] !== true;
          const chosen = choice.agent === "" && choice.mode === one.mode;
          return (
            <div key={one.mode} className="option" data-chosen={chosen}>
              <Option name={one.name} checked={chosen} disabled={keyless} onChoose={() => choose(ofMode(one.mode))}>{one.what}</Option>
              {keyless && <p className="missing">Needs a key. <Link to="/keys" aria-label={`Set one for ${one.name}`}>Set one</Link></p>}
              {chosen && one.voices !== "none" && <Details words={one} choice={choice} choose={choose} />}
            </div>
          );
        })}
      </fieldset>
      <fieldset>
        <legend>An agent of this installation</legend>
        {roster.value === null && roster.error === null && <p className="empty-line" role="status">Reading the files…</p>}
        {roster.error !== null && <p className="missing" role="status">{roster.error.message}</p>}
        {roster.value !== null && teams.length === 0 && <p className="empty-line">There is none yet. <Link to="/agents">How to write one</Link></p>}
        {teams.map(({ name, role, description, missing }) => (
          <div key={name} className="option" data-chosen={choice.agent === name}>
            <Option name={agentName(name)} checked={choice.agent === name} disabled={missing.length > 0} onChoose={() => choose(ofAgent(name))}>
              {[role, description].filter((part) => part !== "").join(". ")}
            </Option>
            <Missing providers={missing} />
          </div>
        ))}
      </fieldset>
    </>
  );
}

interface OptionProps {
  name: string;
  checked: boolean;
  disabled: boolean;
  onChoose: () => void;
  children: ReactNode;
}

function Option({ name, checked, disabled, onChoose, children }: OptionProps): ReactElement {
  const about = useId();
  return (
    <label className="choice">
      <input type="radio" name="who" checked={checked} disabled={disabled} onChange={onChoose} aria-label={name} aria-describedby={about} />
      <span><b>{name}</b><small id={about}>{children}</small></span>
    </label>
  );
}

interface Voices {
  voices: Voice[];
  local: Voice[] | null;
}

/** Voice and model of a mode. */
function Details({ words, choice, choose }: ChooserProps & { words: ModeWords }): ReactElement {
  const known = useLoaded<Voices>("/api/vox/voices").value;
  const voices = voicesOf(words.mode, known);
  const list = voices.some(({ id }) => id === choice.voice) || choice.voice === "" ? voices : [{ id: choice.voice, name: choice.voice, style: "" }, ...voices];
  return (
    <div className="option-more">
      <label>
        <span>Voice</span>
        {words.voices === "any" ? (
          <input value={choice.voice} maxLength={64} placeholder="marin" autoComplete="off" onChange={(event) => choose({ ...choice, voice: event.target.value })} />
        ) : (
          <select value={choice.voice} onChange={(event) => choose({ ...choice, voice: event.target.value })}>
            <option value="">The usual one</option>
            {list.map(({ id, name, style }) => <option key={id} value={id}>{style === "" ? name : `${name} · ${style.toLowerCase()}`}</option>)}
          </select>
        )}
      </label>
      <label>
        <span>Model</span>
        <input value={choice.model} maxLength={64} placeholder={words.model} autoComplete="off" spellCheck={false} onChange={(event) => choose({ ...choice, model: event.target.value })} />
      </label>
    </div>
  );
}

function voicesOf(mode: Mode, known: Voices | null): Voice[] {
  return (mode === "gemini" ? known?.voices : known?.local) ?? [];
}
