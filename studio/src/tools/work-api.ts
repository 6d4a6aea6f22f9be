/** Tasks, approvals, macros and runs over HTTP (docs/protocol.md, section 7). Owns the shapes as this app reads them. */
import type { Approval, Decision } from "voxbridge/react";
import { ask } from "../http";

export interface TaskCard {
  id: string;
  function: string;
  state: "needs_approval" | "running" | "completed" | "failed" | "cancelled" | "interrupted" | "declined";
  /** The session in which it was begun, if it was in one. */
  session?: string;
  started_at_ms: number;
  ended_at_ms?: number;
  due_at_ms?: number;
  label?: string;
  done?: number;
  message?: string;
  result?: Record<string, unknown>;
}

export interface OpenApproval {
  id: string;
  function: string;
  effect: Approval["effect"];
  question: string;
  expires_at_ms: number;
  scopes: Approval["scopes"];
  arguments?: Record<string, unknown>;
}

export interface Standing {
  function: string;
  arguments?: Record<string, unknown>;
}

export interface Macro {
  macro_id: string;
  name: string;
  triggers: string[];
  steps: number;
  inputs?: string[];
}

export type RunState = "queued" | "waiting" | "running" | "completed" | "failed" | "cancelled";

export interface Run {
  id: string;
  name: string;
  kind: "macro" | "workflow";
  state: RunState;
  /** The session in which it was started, if it was in one. */
  session?: string;
  started_at_ms?: number;
  ended_at_ms?: number;
  steps: number;
  waits_for?: "queued" | "ask" | "error" | "step" | "approval" | "confirm";
  step?: string;
  question?: string;
  expires_at_ms?: number;
  error?: { code: string; message: string };
  reason?: string;
}

/** One attempt of a step; arguments and result are the beginning of their JSON. */
export interface Attempt {
  step: string;
  attempt: number;
  action: string;
  target: string;
  state: "running" | "completed" | "failed" | "interrupted" | "skipped";
  started_at_ms: number;
  ended_at_ms?: number;
  args?: string;
  result?: string;
  error?: { code: string; message: string };
}

export interface Trace extends Run {
  inputs?: Record<string, unknown>;
  attempts?: Attempt[];
  result?: Record<string, unknown>;
}

export const TASKS = "/api/vox/tasks";
export const ENDED = "/api/vox/tasks?ended=true";
export const APPROVALS = "/api/vox/approvals";
export const MACROS = "/api/vox/macros";
export const RUNS = "/api/runs";

function part(id: string): string {
  return encodeURIComponent(id);
}

export function fetchTask(id: string): Promise<TaskCard> {
  return ask(`${TASKS}/${part(id)}`);
}

/** The path of a task. An id alone may name tasks of several sessions. */
export function taskPath({ id, session }: Pick<TaskCard, "id" | "session">): string {
  return `${TASKS}/${part(id)}${session === undefined ? "" : `?session=${part(session)}`}`;
}

export function cancelTask(task: Pick<TaskCard, "id" | "session">): Promise<TaskCard> {
  return ask(taskPath(task), { method: "DELETE" });
}

/** Its answer has no body. */
export function answerApproval(id: string, { answer, scope }: Decision): Promise<unknown> {
  return ask(`${APPROVALS}/${part(id)}`, { method: "POST", body: { answer, scope }, bare: true });
}

export async function fetchStanding(signal: AbortSignal): Promise<Standing[]> {
  const { result } = await ask<{ result: { approvals: Standing[] } }>("/api/vox/function/list_approvals", { method: "POST", body: {}, signal });
  return result.approvals;
}

export function revoke(name: string): Promise<unknown> {
  return ask("/api/vox/function/revoke_approval", { method: "POST", body: { args: { approval: name } } });
}

/** Take back what a call did; returns what there is to say. */
export async function undo(call: string): Promise<string> {
  const { result } = await ask<{ result: { spoken: string } }>("/api/vox/function/undo_last", { method: "POST", body: { args: { call } } });
  return result.spoken;
}

export interface Begun {
  task_id?: string;
  status?: string;
  steps?: { step?: string; action?: string; target?: string }[];
}

export function runMacro(id: string, inputs: Record<string, unknown>): Promise<Begun> {
  return ask(`${MACROS}/${part(id)}/run`, { method: "POST", body: { inputs } });
}

export function deleteMacro(id: string): Promise<unknown> {
  return ask(`${MACROS}/${part(id)}`, { method: "DELETE" });
}

export function cancelRun(id: string): Promise<unknown> {
  return ask(`${RUNS}/${part(id)}/cancel`, { method: "POST", bare: true });
}

export function answerRun(id: string, step: string, text: string): Promise<unknown> {
  return ask(`${RUNS}/${part(id)}/answer`, { method: "POST", body: { step, text }, bare: true });
}

/** The page of a run; the run of a task, where it is one. */
export function runOf(task: string): string {
  return `/tools/runs/${part(task.replace(/^task-/, ""))}`;
}
