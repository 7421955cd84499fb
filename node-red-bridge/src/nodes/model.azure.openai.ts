// `model.azure.openai`: an OpenAI model at Azure, called by the sidecar.

import type { Red } from "../red";
import { registerService } from "../service";

export = function (RED: Red): void {
  registerService(RED, "model.azure.openai", ["apiKey"]);
};
