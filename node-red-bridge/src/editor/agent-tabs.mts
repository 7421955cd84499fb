// Tabs of a dialog that can be used with a keyboard and read aloud. Node-RED's own are for the mouse only. Owns which one is
// shown; knows nothing of what is in them.

import { element } from "./dom.mjs";

export interface Tab {
  id: string;
  label: string;
  /** The element that is shown with it. */
  panel: HTMLElement;
}

export interface Tabs {
  show(id: string): void;
  /** What stands behind a tab's label, such as a number; nothing if it is empty. `title` says it in words. */
  mark(id: string, mark: string, title: string, isBad: boolean): void;
}

/** Makes the tabs in `host`. `shown` is called with each that comes to be seen, the first one too. */
export function makeTabs(host: HTMLElement, tabs: Tab[], first: string, shown: (id: string) => void): Tabs {
  const marks = new Map<string, HTMLElement>();
  const buttons = new Map<string, HTMLButtonElement>();
  let current = "";

  const show = (id: string): void => {
    if (id === current || !buttons.has(id)) {
      return;
    }
    current = id;
    for (const tab of tabs) {
      const button = buttons.get(tab.id);
      button?.setAttribute("aria-selected", String(tab.id === id));
      button?.setAttribute("tabindex", tab.id === id ? "0" : "-1");
      tab.panel.hidden = tab.id !== id;
    }
    shown(id);
  };

  const go = (index: number): void => {
    const { id } = tabs[(index + tabs.length) % tabs.length] as Tab;
    show(id);
    buttons.get(id)?.focus();
  };

  host.classList.add("redflow-tabs");
  host.setAttribute("role", "tablist");
  tabs.forEach((tab, index) => {
    const mark = element("span", { class: "redflow-tab-mark" });
    mark.hidden = true;
    const button = element("button", { class: "redflow-tab" }, element("span", { text: tab.label }), mark);
    button.type = "button";
    button.id = `${tab.panel.id}-tab`;
    button.setAttribute("role", "tab");
    button.setAttribute("aria-controls", tab.panel.id);
    button.addEventListener("click", () => show(tab.id));
    button.addEventListener("keydown", (event) => {
      const to = { ArrowLeft: index - 1, ArrowRight: index + 1, Home: 0, End: tabs.length - 1 }[event.key];
      if (to !== undefined) {
        event.preventDefault();
        go(to);
      }
    });
    tab.panel.setAttribute("role", "tabpanel");
    tab.panel.setAttribute("aria-labelledby", button.id);
    tab.panel.hidden = true;
    buttons.set(tab.id, button);
    marks.set(tab.id, mark);
    host.append(button);
  });
  show(buttons.has(first) ? first : (tabs[0]?.id ?? ""));

  return {
    show,
    mark(id, text, title, isBad) {
      const mark = marks.get(id);
      if (mark !== undefined) {
        mark.textContent = text;
        mark.title = title;
        mark.hidden = text === "";
        mark.classList.toggle("redflow-bad", isBad);
      }
    },
  };
}
