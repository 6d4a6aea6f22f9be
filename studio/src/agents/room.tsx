/** Who there is to talk to: the agents and pipelines of this installation, and what is wrong with their files. */
import type { ReactElement } from "react";
import { navigate } from "wouter/use-browser-location";
import { type Loaded, useLoaded } from "../http";
import { Notice } from "../notice";
import { ofAgent, remember } from "../talk/choice";
import { agentName, modelName } from "../words";
import { type Agent, AGENTS, type Pipeline, type Roster } from "./api";
import { GraphView } from "./graph-view";
import { Missing } from "./missing";

function talkTo(name: string): void {
  remember(ofAgent(name));
  navigate("/");
}

function PipelineCard({ pipeline }: { pipeline: Pipeline }): ReactElement {
  const { name, description, stages, missing, hand_back: back } = pipeline;
  return (
    <li className="panel agent">
      <div className="agent-head">
        <h3>{agentName(name)}</h3>
        <button type="button" className="button" disabled={missing.length > 0} aria-label={`Talk to ${agentName(name)}`} onClick={() => talkTo(name)}>Talk</button>
      </div>
      {description !== "" && <p>{description}</p>}
      <GraphView stages={stages} />
      <p className="quiet-text">{back ? "The conversation may also go back where it came from." : "The conversation goes forward only."}</p>
      <Missing providers={missing} />
    </li>
  );
}

function AgentCard({ agent }: { agent: Agent }): ReactElement {
  const { name, role, description, voice, language, models, handoffs, tools, missing } = agent;
  const facts: [string, string][] = [
    ["Model", models["realtime"] === undefined ? modelName(models["llm"] ?? "local") : modelName(models["realtime"])],
    ["Voice", voice === "" ? "the usual one" : voice],
    ["Language", language === "" ? "the installation's" : language],
    ["Functions", tools === null ? "all" : tools.length === 0 ? "none" : tools.join(", ")],
    ...(handoffs.length === 0 ? [] : [["Hands over to", handoffs.map(agentName).join(", ")] as [string, string]]),
  ];
  return (
    <li className="panel agent">
      <div className="agent-head">
        <h3>{agentName(name)}</h3>
        <button type="button" className="button" disabled={missing.length > 0} aria-label={`Talk to ${agentName(name)}`} onClick={() => talkTo(name)}>Talk</button>
      </div>
      {role !== "" && <p className="agent-role">{role}</p>}
      {description !== "" && <p>{description}</p>}
      <dl className="facts">
        {facts.map(([label, value]) => (
          <div key={label}><dt>{label}</dt><dd>{value}</dd></div>
        ))}
      </dl>
      <Missing providers={missing} />
    </li>
  );
}

export function AgentsRoom(): ReactElement {
  const { value, error }: Loaded<Roster> = useLoaded(AGENTS, true);
  const nobody = value !== null && value.agents.length + value.pipelines.length === 0;
  return (
    <main className="sessions agents">
      <div className="sessions-head">
        <h1>Agents</h1>
        <p className="quiet-text">Files in the folder of <code>VOXBRIDGE_AGENTS_DIR</code>; a change applies to the next call.</p>
      </div>
      {error !== null && <Notice title={error.message}><p>This page looks again every 5 seconds.</p></Notice>}
      {value === null && error === null && <p className="empty-line" role="status">Reading the files…</p>}
      {value !== null && value.problems.length > 0 && (
        <Notice title={nobody ? "The files cannot be used." : "A file has an error, so the agents are unchanged."}>
          <ul>
            {value.problems.map(({ path, line, message }) => (
              <li key={`${path}:${line}:${message}`}><code>{line === 0 ? path : `${path}:${line}`}</code> {message}</li>
            ))}
          </ul>
        </Notice>
      )}
      {nobody && value.problems.length === 0 && <Nobody />}
      {value !== null && value.pipelines.length > 0 && (
        <section aria-label="Pipelines">
          <h2>Pipelines</h2>
          <ul className="agent-cards" data-wide="true">{value.pipelines.map((one) => <PipelineCard key={one.name} pipeline={one} />)}</ul>
        </section>
      )}
      {value !== null && value.agents.length > 0 && (
        <section aria-label="Agents">
          <h2>Agents</h2>
          <ul className="agent-cards">{value.agents.map((one) => <AgentCard key={one.name} agent={one} />)}</ul>
        </section>
      )}
    </main>
  );
}

function Nobody(): ReactElement {
  return (
    <div className="empty">
      <h2>No agent yet</h2>
      <p>An agent is one file. Save this as <code>agents/barista.yaml</code>, and it is here within seconds:</p>
      <pre tabIndex={0} role="region" aria-label="An agent's file">{EXAMPLE}</pre>
      <p>Until then, you talk to a model without an agent.</p>
    </div>
  );
}

const EXAMPLE = `role: Barista
description: Takes orders for coffee and cake.
prompt: |
  You take orders at a small coffee shop. Be quick and cheerful.
greeting: Good morning! What may I make you?`;
