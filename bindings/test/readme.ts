import type { AgentOutput, RunEvent } from "@redflow/bindings";

/** The text for a user: the answer, or the error. */
export function answer(output: AgentOutput): string {
  const { error, message, stopReason } = output.agentResult;
  if (error) {
    return `${error.code}: ${error.message}`;
  }
  return message ?? `(no message, stopped by ${stopReason})`;
}

/** One line per event of a run. */
export function line({ event }: RunEvent): string {
  switch (event.type) {
    case "tool_called":
      return `calls ${event.tool}`;
    case "tool_returned":
      return event.success ? `${event.tool} answered` : `${event.tool} failed: ${event.error ?? "unknown"}`;
    case "run_finished":
      return `finished after ${event.iterations} iterations`;
    default:
      return event.type;
  }
}
