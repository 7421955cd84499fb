// The words and formats that the shared timeline takes from the console.

import { RedflowError } from "@redflow/bindings";
import { shade } from "../app.js";
import type { TimelineEnvironment } from "../timeline/index.js";
import { formats, tKey } from "../words.js";

export const environment: TimelineEnvironment = {
  words: (key, values) => tKey(key, values),
  formats,
  describeProblem: (error) =>
    error instanceof RedflowError ? { code: error.code, message: error.message } : { code: "INTERNAL", message: String(error) },
  isShaded: () => shade.value,
  buttons: { plain: "", primary: "primary" },
};
