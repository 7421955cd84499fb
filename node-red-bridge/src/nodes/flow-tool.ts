// The beginning of a flow that is a tool: calls leave by its output. It has no work of its own; the sidecar reads
// what it is, and tools.ts sends its calls.

import type { Red } from "../red";
import { registerService } from "../service";

export = (RED: Red): void => {
  registerService(RED, "flow-tool");
};
