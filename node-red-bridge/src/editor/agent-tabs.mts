// Tabs of a dialog that work with a keyboard and a screen reader. Node-RED's own tabs need a mouse. Independent of the
// content of the tabs.

import { element } from "./dom.mjs";

export interface Tab {
  id: string;
  label: string;
  /** The content of the tab. */
  panel: HTMLElement;
}

export interface Tabs {
  show(id: string): void;
  /** Shows a mark behind the label of a tab, such as the number of errors. An empty text removes it. */
  mark(id: string, text: string, title: string): void;
}

/** Creates the tabs in `host`. Calls `onShow` with each tab that becomes visible, also the first. */
export function createTabs(host: HTMLElement, tabs: Tab[], first: string, onShow: (id: string) => void): Tabs {
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
    onShow(id);
  };

  const focusTab = (index: number): void => {
    const { id } = tabs[(index + tabs.length) % tabs.length] as Tab;
    show(id);
    buttons.get(id)?.focus();
  };

  host.classList.add("redflow-tabs");
  host.setAttribute("role", "tablist");
  tabs.forEach((tab, index) => {
    const mark = element("span", { class: "redflow-tab-mark redflow-bad" });
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
        focusTab(to);
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
    mark(id, text, title) {
      const mark = marks.get(id);
      if (mark !== undefined) {
        mark.textContent = text;
        mark.title = title;
        mark.hidden = text === "";
      }
    },
  };
}
