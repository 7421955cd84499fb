// `scripted-model`: a model that answers from a list, run by the sidecar.

import type { Red } from "../red";
import { registerService } from "../service";

export = function (RED: Red): void {
  registerService(RED, "scripted-model");
};
