// `calculator-tool`: arithmetic for agents, in the sidecar.

import type { Red } from "../red";
import { registerService } from "../service";

export = function (RED: Red): void {
  registerService(RED, "calculator-tool");
};
