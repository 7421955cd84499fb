// `openai-model`: a model of OpenAI, or of a server with a compatible API, called by the sidecar.

import type { Red } from "../red";
import { registerService } from "../service";

export = function (RED: Red): void {
  registerService(RED, "openai-model", ["apiKey"]);
};
