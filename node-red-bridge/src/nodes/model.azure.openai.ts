// `model.azure.openai`: a model of OpenAI at Azure; the sidecar asks it.

import type { Red } from "../red";
import { registerService } from "../service";

export = function (RED: Red): void {
  registerService(RED, "model.azure.openai", ["apiKey"]);
};
