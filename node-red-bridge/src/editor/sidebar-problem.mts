// Why something could not be asked or done, in place. Owns its form, and the words for what Node-RED itself refuses.

import type { Problem } from "../admin-api.js";
import { SHOWN_IN_ROW, element, foreign } from "./dom.mjs";
import { text } from "./text.mjs";

/** Problems that come without a sentence, or with one that can be said better here. */
const OURS = ["FORBIDDEN", "NODE_RED_UNREACHABLE"];

/** The sidecar is not there. */
const AWAY = "RUNTIME_UNREACHABLE";

/** With the code, and with what to do. */
export function problemLine({ code, message }: Problem): HTMLElement {
  const known = OURS.includes(code) && message === "";
  const words = known ? element("span", { text: text(`runs.problem.${code}`) }) : foreign("span", message);
  const name = foreign("code", code, { class: "redflow-code", most: SHOWN_IN_ROW });
  const old = code === AWAY ? element("div", { class: "redflow-hint", text: text("runs.problem.old") }) : undefined;
  return element("div", { class: "redflow-trouble" }, name, element("span", { text: " " }), words, old);
}
