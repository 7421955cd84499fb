// `ollama-model`: a model served by Ollama, called by the sidecar.

import type { Red } from "../red";
import { registerService } from "../service";

export = function (RED: Red): void {
  registerService(RED, "ollama-model", ["apiKey"]);
};
