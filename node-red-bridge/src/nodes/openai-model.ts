// `openai-model`: a model of OpenAI, or of a server that speaks its language; the sidecar asks it.

import type { Red } from "../red";
import { registerService } from "../service";

export = function (RED: Red): void {
  registerService(RED, "openai-model", ["apiKey"]);
};
