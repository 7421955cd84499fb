// `flow-tool`: the start of a flow tool. The sidecar reads its properties, and tools.ts sends its calls from its output.

import type { Red } from "../red";
import { registerService } from "../service";

export = (RED: Red): void => {
  registerService(RED, "flow-tool");
};
