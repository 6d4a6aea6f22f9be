/** Shows the steps of a tour over the page, with driver.js. Owns the overlay and its buttons; what they do is the tour's. */
import { driver, type Driver, type PopoverDOM } from "driver.js";
import type { Action, Card, Scene } from "./guide";

const LOOK_MS = 50;

/** The scene of this page; `act` gets what is clicked. */
export function overlay(act: (action: Action) => void): Scene {
  let drawn: Driver | null = null;
  const close = (): void => {
    const old = drawn;
    drawn = null;
    old?.destroy();
  };
  const show = (element: Element | null, card: Card): void => {
    drawn ??= driver({
      animate: !matchMedia("(prefers-reduced-motion: reduce)").matches,
      allowKeyboardControl: false,
      overlayClickBehavior: () => undefined,
      popoverClass: "tour-card",
      stagePadding: 8,
      stageRadius: 16,
    });
    drawn.highlight({
      ...(element === null ? {} : { element }),
      popover: {
        title: card.title,
        description: card.text,
        showButtons: ["next", "previous", "close"],
        disableButtons: card.number <= 1 ? ["previous"] : [],
        nextBtnText: card.number === 0 ? "Begin" : card.number === card.count ? "Done" : "Next",
        prevBtnText: "Back",
        onNextClick: () => act("next"),
        onPrevClick: () => act("back"),
        onCloseClick: () => act("stop"),
        onPopoverRender: (dom) => furnish(dom, card, act),
      },
    });
  };
  return { find, show, close };
}

/** Add what driver.js has not: the place in the tour, more words, and names for who does not see it. */
function furnish({ footer, footerButtons, closeButton, description, title }: PopoverDOM, card: Card, act: (action: Action) => void): void {
  // A header and a footer of the body are landmarks of the page, which a card has none of.
  title.setAttribute("role", "presentation");
  footer.setAttribute("role", "group");
  // Texts of a file are text, never markup.
  title.textContent = card.title;
  description.textContent = card.text;
  closeButton.setAttribute("aria-label", "Stop the tour");
  const place = document.createElement("span");
  place.className = "tour-place";
  place.textContent = card.number === 0 ? `${card.count} steps` : `${card.number} of ${card.count}`;
  footer.prepend(place);
  if (card.explains) {
    const more = document.createElement("button");
    more.type = "button";
    more.className = "tour-more";
    more.textContent = "Explain more";
    more.addEventListener("click", () => act("explain"));
    footerButtons.prepend(more);
  }
}

async function find(target: string, withinMs: number): Promise<Element | null> {
  const until = Date.now() + withinMs;
  for (;;) {
    const found = [...document.querySelectorAll(target)].find((element) => element.getClientRects().length > 0);
    if (found !== undefined) return found;
    if (Date.now() >= until) return null;
    await new Promise((resolve) => setTimeout(resolve, LOOK_MS));
  }
}
