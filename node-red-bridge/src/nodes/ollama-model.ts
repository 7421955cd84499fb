// `ollama-model`: a model served by Ollama; the sidecar asks it.

import type { Red } from "../red";
import { registerService } from "../service";

export = function (RED: Red): void {
  registerService(RED, "ollama-model", ["apiKey"]);
};
