// `anthropic-model`: a Claude model, called by the sidecar.

import type { Red } from "../red";
import { registerService } from "../service";

export = function (RED: Red): void {
  registerService(RED, "anthropic-model", ["apiKey"]);
};
