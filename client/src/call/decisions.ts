/**
 * What the person decides in a call: approvals, answers to runs, and tasks that are not wanted any more.
 * Owns nothing: a decision stands in the snapshot until the server says what came of it, so the next socket is told it again.
 */
import type { Approval, Task } from "../entries";
import type { Scope } from "../socket/protocol";
import { answered, cancelling, told } from "../work";
import type { CallCore } from "./core";

export class Decisions {
  constructor(private readonly core: CallCore) {}

  /** Answer a request for approval; false where it is over, was answered here, or there is no call. */
  answer(id: string, yes: boolean, scope: Scope): boolean {
    return this.#decide(answered(this.core.snapshot, id, { answer: yes ? "approved" : "denied", scope }));
  }

  /** Ask for the end of a task; false where it is over, or there is no call. */
  cancel(id: string): boolean {
    return this.#decide(cancelling(this.core.snapshot, id));
  }

  /** Answer the question of a run; false where it asks nothing, was answered here, or there is no call. */
  tell(id: string, text: string): boolean {
    return this.#decide(told(this.core.snapshot, id, text));
  }

  /** Say what the server may not have heard: it was on a socket that was lost. Twice is harmless, since the first one counts. */
  again(): void {
    for (const entry of this.core.snapshot.conversation) if (entry.kind === "approval" || entry.kind === "task") this.#say(entry);
  }

  #decide(after: { snapshot: CallCore["snapshot"]; entry: Approval | Task } | null): boolean {
    if (after === null || !this.core.inCall) return false;
    this.core.become(after.snapshot);
    this.#say(after.entry);
    return true;
  }

  #say(entry: Approval | Task): void {
    if (entry.kind === "task") {
      if (entry.status !== "running") return;
      const { run } = entry;
      if (entry.cancelling) this.core.send({ type: "cancel_task", task_id: entry.id });
      else if (run?.question?.answer) this.core.send({ type: "run_answer", run_id: run.id, text: run.question.answer, step: run.question.step });
    } else if (entry.answer !== null && entry.outcome === null) {
      this.core.send({ type: "approval_answer", approval_id: entry.id, ...entry.answer });
    }
  }
}
