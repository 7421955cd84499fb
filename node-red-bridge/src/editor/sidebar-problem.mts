// Shows the problem of a failed request in place.

import type { Problem } from "../admin-api.js";
import { MAX_ROW_CHARS, element, untrusted } from "./dom.mjs";
import { text } from "./text.mjs";

/** Codes with a text of the editor, for problems without a message. */
const WITH_OWN_TEXT = ["FORBIDDEN", "NODE_RED_UNREACHABLE"];

/** The code for a sidecar that is away. */
const AWAY = "RUNTIME_UNREACHABLE";

/** A line with the code and the message. */
export function problemLine({ code, message }: Problem): HTMLElement {
  const hasOwnText = WITH_OWN_TEXT.includes(code) && message === "";
  const sentence = hasOwnText ? element("span", { text: text(`runs.problem.${code}`) }) : untrusted("span", message);
  const name = untrusted("code", code, { class: "redflow-code", maxChars: MAX_ROW_CHARS });
  const old = code === AWAY ? element("div", { class: "redflow-hint", text: text("runs.problem.old") }) : undefined;
  return element("div", { class: "redflow-trouble" }, name, element("span", { text: " " }), sentence, old);
}
