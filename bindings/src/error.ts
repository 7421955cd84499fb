// The one error of the client. Knows no transport.

import type { ApiError, CheckReport, ProblemCode } from "./types.js";

/** Codes that say: the same again, later, may work. */
const PASSING: ReadonlySet<string> = new Set<ProblemCode>([
  "SIDECAR_UNREACHABLE",
  "REQUEST_TIMEOUT",
  "RATE_LIMITED",
  "TOO_MANY_CONNECTIONS",
  "STOPPING",
  "READER_TOO_SLOW",
]);

/** Whether the same again, later, may work. */
export function isPassing(code: ProblemCode): boolean {
  return PASSING.has(code);
}

/** What else is known of a failure. */
export interface FailureDetails {
  /** The HTTP status; 0 if nothing was answered. */
  status?: number;
  /** Whether the same again may work, if the code alone does not say. */
  retryable?: boolean;
  /** How long the sidecar asks to wait. */
  retryAfterMs?: number;
}

/** Why something asked of a sidecar was not done. Never carries a token. */
export class RedflowError extends Error {
  override readonly name = "RedflowError";
  /**
   * The code; `redflow explain CODE` has a page on it. `SIDECAR_UNREACHABLE`: nothing, or something else, answered.
   * `REQUEST_TIMEOUT`: no answer in time. A newer sidecar may send codes that this type does not have.
   */
  readonly code: ProblemCode;
  /** The HTTP status; 0 if nothing was answered. */
  readonly status: number;
  /**
   * Whether the same request may work later. A start that was not answered may have been done all the same: give it
   * an idempotency key before you repeat it.
   */
  readonly retryable: boolean;
  /** How long the sidecar asks to wait before the next request. */
  declare readonly retryAfterMs?: number;
  /** Every problem of the flow, with `FLOW_REFUSED`. */
  declare readonly report?: CheckReport;
  /** The revision that is in force, with `REVISION_CONFLICT`. */
  declare readonly revision?: string;

  constructor(error: ApiError, details: FailureDetails = {}) {
    super(error.message);
    this.code = error.code;
    this.status = details.status ?? 0;
    this.retryable = details.retryable ?? isPassing(error.code);
    if (details.retryAfterMs !== undefined) {
      this.retryAfterMs = details.retryAfterMs;
    }
    if (error.report !== undefined) {
      this.report = error.report;
    }
    if (error.revision !== undefined) {
      this.revision = error.revision;
    }
  }
}
