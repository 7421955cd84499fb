// Keeps the focus of the keyboard. Browsers drop it when the focused element disappears or is switched off.

const CONTROLS = "a[href], button, input, select, textarea, summary, [tabindex='0']";

/** How long a part of the page has to set the focus by itself, as a dialog or a new page does. */
const PATIENCE_MS = 50;

/** Whether an element can have the focus. */
function isUsable(element: Element): boolean {
  return element.isConnected && !element.matches(":disabled") && element.getClientRects().length > 0;
}

/** Gives the focus to the nearest place that still exists: a neighbour of the control that has gone, else the page. */
export function keepFocus(document: Document): void {
  let focused: Element | undefined;
  let ancestors: Element[] = [];
  let timer: number | undefined;
  const restore = (): void => {
    timer = undefined;
    if (focused === undefined || (document.activeElement !== document.body && document.activeElement !== focused)) {
      return;
    }
    if (isUsable(focused)) {
      // The user has left it.
      focused = document.activeElement === focused ? focused : undefined;
      return;
    }
    const main = document.querySelector("main");
    const near = ancestors.filter((one) => one !== main && main?.contains(one));
    const controls = near.map((one) => [...one.querySelectorAll<HTMLElement>(CONTROLS)].find(isUsable));
    const target = controls.find((control) => control !== undefined) ?? main;
    target?.focus({ preventScroll: target === main });
  };
  const checkSoon = (): void => {
    timer ??= window.setTimeout(restore, PATIENCE_MS);
  };
  document.addEventListener("focusin", ({ target }) => {
    focused = target as Element;
    ancestors = [];
    for (let one = focused.parentElement; one !== null; one = one.parentElement) {
      ancestors.push(one);
    }
  });
  document.addEventListener("focusout", checkSoon);
  new MutationObserver(checkSoon).observe(document.body, { childList: true, subtree: true, attributeFilter: ["class", "disabled"] });
}
