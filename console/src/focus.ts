// Keeps the focus of the keyboard. Browsers drop it when the focused element disappears or is switched off.

const CONTROLS = "a[href], button, input, select, textarea, summary, [tabindex='0']";

/** How long a part of the page has to set the focus by itself, as a dialog or a new page does. */
export const PATIENCE_MS = 50;

/** The first control in an element that can take the focus. */
function firstControl(element: Element): HTMLElement | undefined {
  return [...element.querySelectorAll<HTMLElement>(CONTROLS)].find((control) => !control.matches(":disabled") && control.getClientRects().length > 0);
}

/** Gives the focus to the nearest place that still exists: a neighbour of the control that has gone, else the page. */
export function keepFocus(document: Document): void {
  let focused: Element | undefined;
  let ancestors: Element[] = [];
  let timer: number | undefined;
  const isLost = (): boolean => focused !== undefined && (!focused.isConnected || focused.matches(":disabled")) && (document.activeElement === document.body || document.activeElement === focused);
  const restore = (): void => {
    timer = undefined;
    if (!isLost()) {
      return;
    }
    const main = document.querySelector("main");
    const inside = ancestors.filter((one) => one.isConnected && one !== main && main?.contains(one));
    const target = inside.map(firstControl).find((control) => control !== undefined) ?? main;
    target?.focus();
  };
  document.addEventListener("focusin", ({ target }) => {
    focused = target as Element;
    ancestors = [];
    for (let one = focused.parentElement; one !== null; one = one.parentElement) {
      ancestors.push(one);
    }
  });
  new MutationObserver(() => {
    if (timer === undefined && isLost()) {
      timer = window.setTimeout(restore, PATIENCE_MS);
    }
  }).observe(document.body, { childList: true, subtree: true, attributeFilter: ["disabled"] });
}
