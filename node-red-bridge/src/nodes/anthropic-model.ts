// `anthropic-model`: Claude; the sidecar asks it.

import type { Red } from "../red";
import { registerService } from "../service";

export = function (RED: Red): void {
  registerService(RED, "anthropic-model", ["apiKey"]);
};
