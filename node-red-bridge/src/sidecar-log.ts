// A log line of a managed sidecar as a log line of Node-RED: its level, and its text without JSON around it.

import { isRecord } from "./record";
import type { Red } from "./red";

export interface LogLine {
  level: keyof Red["log"];
  text: string;
}

const LEVELS: Readonly<Record<string, LogLine["level"]>> = {
  ERROR: "error",
  WARN: "warn",
  INFO: "info",
  DEBUG: "debug",
  TRACE: "debug",
};

/** The sidecar prints what it logs as JSON, and notes for people as plain lines. `labelOf` names a node by its id. */
export function readLogLine(line: string, labelOf: (id: string) => string | undefined): LogLine {
  const event = parse(line);
  if (event === undefined) {
    // A long line was cut and is not JSON any more.
    const level = levelOf(/^\{.{0,200}"level":"([A-Z]+)"/.exec(line)?.[1] ?? "");
    return { level: level ?? (line.startsWith("error") ? "error" : line.startsWith("warning") ? "warn" : "info"), text: line };
  }
  const { message, ...others } = event.fields;
  const details = Object.entries(others).map(([key, value]) => {
    const label = typeof value === "string" ? labelOf(value) : undefined;
    return `${key}: ${label ?? (typeof value === "string" ? value : JSON.stringify(value))}`;
  });
  const text = [typeof message === "string" ? message : "", details.length > 0 ? `(${details.join(", ")})` : ""];
  return { level: levelOf(event.level) ?? "info", text: text.filter((part) => part !== "").join(" ") };
}

function levelOf(name: string): LogLine["level"] | undefined {
  return Object.hasOwn(LEVELS, name) ? LEVELS[name] : undefined;
}

function parse(line: string): { level: string; fields: Record<string, unknown> } | undefined {
  try {
    const value: unknown = JSON.parse(line);
    if (isRecord(value) && typeof value["level"] === "string" && isRecord(value["fields"])) {
      return { level: value["level"], fields: value["fields"] };
    }
  } catch {
    // A plain line.
  }
  return undefined;
}
