// The HTTP status of a message that came from an `http in` node and failed, for the `http response` node behind the agent.

import { HTTP_STATUSES } from "./http-statuses";
import { isRecord } from "./record";
import type { Msg } from "./red";

/** The status for a code that this module does not know. */
const UNKNOWN_STATUS = 500;

/** Sets `msg.statusCode` by the code of a failure, if an HTTP request waits for the message. */
export function setHttpStatus(message: Msg, code: string): void {
  if (isRecord(message["res"]) && Object.isExtensible(message)) {
    message["statusCode"] = statusOf(code);
  }
}

/** Removes the status of an earlier failure: a Catch node may have sent the message to an agent again. */
export function clearHttpStatus(message: Msg): void {
  const { res, error, statusCode } = message;
  const code = isRecord(error) ? error["code"] : undefined;
  if (isRecord(res) && typeof code === "string" && statusCode === statusOf(code)) {
    delete message["statusCode"];
  }
}

function statusOf(code: string): number {
  return Object.hasOwn(HTTP_STATUSES, code) ? (HTTP_STATUSES[code] ?? UNKNOWN_STATUS) : UNKNOWN_STATUS;
}
