// `calculator-tool`: arithmetic for agents, run by the sidecar.

import type { Red } from "../red";
import { registerService } from "../service";

export = function (RED: Red): void {
  registerService(RED, "calculator-tool");
};
