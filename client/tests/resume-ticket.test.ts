import assert from "node:assert/strict";
import { test } from "node:test";
import { type ResumeTicket, ResumeTicketStore } from "../src/resume/resume-ticket";
import { Tab } from "./world";

const TICKET: ResumeTicket = { url: "ws://a/ws/vox", sessionId: "s", token: "t", mode: "local", microphone: "on", pushToTalk: false };

test("a page that was left hands its call to the next one in the tab, within the window", () => {
  const tab = new Tab();
  new ResumeTicketStore(() => tab).leave(TICKET, 1_000);
  assert.deepEqual(new ResumeTicketStore(() => tab).find(false, 61_000, 60_000), TICKET);
  assert.equal(new ResumeTicketStore(() => tab).find(false, 61_001, 60_000), null);
  assert.equal(tab.items.size, 0);
});

test("the copy in a duplicated tab takes no call from the first one; a page that crashed and was reloaded does", () => {
  const tab = new Tab();
  new ResumeTicketStore(() => tab).keep(TICKET);
  assert.equal(new ResumeTicketStore(() => tab).find(false, 0, 60_000), null);
  assert.deepEqual(new ResumeTicketStore(() => tab).find(true, 0, 60_000), TICKET);
});

test("agents of one page have a ticket each", () => {
  const tab = new Tab();
  new ResumeTicketStore(() => tab, "#sales").leave(TICKET, 0);
  new ResumeTicketStore(() => tab, "#help").leave({ ...TICKET, sessionId: "other" }, 0);
  assert.equal(new ResumeTicketStore(() => tab, "#sales").find(true, 0, 60_000)?.sessionId, "s");
  assert.equal(new ResumeTicketStore(() => tab, "#help").find(true, 0, 60_000)?.sessionId, "other");
  assert.equal(new ResumeTicketStore(() => tab).find(true, 0, 60_000), null);
});

test("what cannot be read is no ticket, and is removed", () => {
  for (const stored of ["{", "null", "7", '{"sessionId":"s"}']) {
    const tab = new Tab();
    tab.setItem("voxbridge.call", stored);
    assert.equal(new ResumeTicketStore(() => tab).find(true, 0, 60_000), null);
    assert.equal(tab.items.size, 0);
  }
});

test("a browser that forbids storage costs the reload, not the call", () => {
  const box = new ResumeTicketStore(() => {
    throw new Error("SecurityError");
  });
  box.keep(TICKET);
  assert.equal(box.find(true, 0, 60_000), null);
  assert.equal(new ResumeTicketStore(() => undefined).find(true, 0, 60_000), null);
});
