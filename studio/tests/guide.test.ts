import assert from "node:assert/strict";
import { test } from "node:test";
import { type Card, Guide, type Scene, type Tour } from "../src/tour/guide";

const TOUR: Tour = {
  page: "shop",
  name: "Shop",
  description: "The shop.",
  path: "/shop",
  steps: [
    { title: "Door", text: "This is the door.", target: ".door", spoken: "", more: "It opens inwards." },
    { title: "Gone", text: "This is gone.", target: ".gone", spoken: "", more: "" },
    { title: "Till", text: "This is the till.", target: ".till", spoken: "Here you pay.", more: "" },
  ],
};

interface Stage extends Scene {
  shown: Card[];
  closed: number;
}

/** A page on which everything is but what is gone. */
function stage(there = (target: string): boolean => target !== ".gone"): Stage {
  const made: Stage = {
    shown: [],
    closed: 0,
    find: (target) => Promise.resolve(there(target) ? ({} as Element) : null),
    show: (_, card) => made.shown.push(card),
    close: () => (made.closed += 1),
  };
  return made;
}

test("a tour begins with its name, and each step is shown and said", async () => {
  const scene = stage();
  const guide = new Guide(TOUR, scene);
  assert.deepEqual(scene.shown[0], { title: "Shop", text: "The shop.", number: 0, count: 3, explains: false });
  assert.deepEqual(await guide.steer("next"), { success: true, touring: true, page: "shop", step: 1, steps: 3, title: "Door", spoken: "This is the door." });
  assert.deepEqual(scene.shown[1], { title: "Door", text: "This is the door.", number: 1, count: 3, explains: true });
});

test("a step whose target is missing is passed over and said, forth and back", async () => {
  const guide = new Guide(TOUR, stage());
  await guide.steer("next");
  assert.equal((await guide.steer("next"))["spoken"], "“Gone” is not on this page now, so I pass over it. Here you pay.");
  assert.equal((await guide.steer("back"))["spoken"], "“Gone” is not on this page now, so I pass over it. This is the door.");
  assert.equal((await guide.steer("back"))["spoken"], "This is the first step.");
});

test("a page without any of the targets ends the tour and says so", async () => {
  const scene = stage(() => false);
  const told = await new Guide(TOUR, scene).steer("next");
  assert.equal(told["touring"], false);
  assert.match(String(told["spoken"]), /“Door” is not .*“Gone” is not .*“Till” is not .*That was the tour of Shop\.$/);
  assert.equal(scene.closed, 1);
});

test("more is said of a step where there is more, and the step stays", async () => {
  const scene = stage();
  const guide = new Guide(TOUR, scene);
  assert.equal((await guide.steer("explain"))["spoken"], "The shop.");
  await guide.steer("next");
  assert.equal((await guide.steer("explain"))["spoken"], "It opens inwards.");
  assert.deepEqual(scene.shown.at(-1), { title: "Door", text: "It opens inwards.", number: 1, count: 3, explains: false });
  await guide.steer("skip");
  assert.equal((await guide.steer("explain"))["spoken"], "There is no more to it: This is the till.");
});

test("behind the last step the tour is over, and what is said then changes nothing", async () => {
  const scene = stage();
  const guide = new Guide(TOUR, scene);
  await guide.steer("next");
  await guide.steer("next");
  assert.deepEqual(await guide.steer("next"), { success: true, touring: false, page: "shop", step: 3, steps: 3, spoken: "That was the tour of Shop." });
  assert.equal((await guide.steer("next"))["spoken"], "The tour is over.");
  assert.deepEqual([guide.open, scene.closed], [false, 1]);
});

test("orders that come at the same time are taken one after the other", async () => {
  const guide = new Guide(TOUR, stage(() => true));
  const told = await Promise.all([guide.steer("next"), guide.steer("next"), guide.steer("back"), guide.steer("stop"), guide.steer("next")]);
  assert.deepEqual(told.map((one) => [one["step"], one["touring"]]), [[1, true], [2, true], [1, true], [1, false], [1, false]]);
});

test("a tour that is stopped while a step is looked for shows it no more", async () => {
  let come: (element: Element | null) => void = () => undefined;
  const scene = stage();
  scene.find = () => new Promise((resolve) => (come = resolve));
  const guide = new Guide(TOUR, scene);
  const told = guide.steer("next");
  await Promise.resolve();
  guide.stop();
  come({} as Element);
  assert.equal((await told)["touring"], false);
  assert.equal(scene.shown.length, 1);
});
