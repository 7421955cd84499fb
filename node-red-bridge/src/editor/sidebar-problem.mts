// Shows the problem of a failed request in place.

import type { Problem } from "../admin-api.js";
import type { ShownProblem } from "../timeline/index.js";
import { MAX_ROW_CHARS, element, untrusted } from "./dom.mjs";
import { text } from "./text.mjs";

/** Codes with a text of the editor, for problems without a message. */
const WITH_OWN_TEXT = ["FORBIDDEN", "NODE_RED_UNREACHABLE"];

/** The code for a sidecar that is offline. */
const OFFLINE = "RUNTIME_UNREACHABLE";

/** A problem in the user's language. */
export function describeProblem({ code, message }: Problem): ShownProblem {
  const hasOwnText = WITH_OWN_TEXT.includes(code) && message === "";
  const shown = { code, message: hasOwnText ? text(`runs.problem.${code}`) : message };
  return code === OFFLINE ? { ...shown, hint: text("runs.problem.old") } : shown;
}

/** A line with the code and the message. */
export function problemLine(problem: Problem): HTMLElement {
  const { code, message, hint } = describeProblem(problem);
  const name = untrusted("code", code, { class: "redflow-code", maxChars: MAX_ROW_CHARS });
  const old = hint === undefined ? undefined : element("div", { class: "redflow-hint", text: hint });
  return element("div", { class: "redflow-trouble" }, name, element("span", { text: " " }), untrusted("span", message), old);
}
