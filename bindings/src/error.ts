// The one error class of the client. Independent of the transport.

import type { ApiError, CheckReport, ProblemCode } from "./types.js";

/** Codes of failures that a later retry may not meet again. */
const TRANSIENT_CODES: ReadonlySet<string> = new Set<ProblemCode>([
  "SIDECAR_UNREACHABLE",
  "REQUEST_TIMEOUT",
  "RATE_LIMITED",
  "TOO_MANY_CONNECTIONS",
  "STOPPING",
  "READER_TOO_SLOW",
]);

/** Details of a failure that the sidecar's JSON does not carry. */
export interface FailureDetails {
  /** The HTTP status; 0 if there was no response. */
  status?: number;
  /** Whether a retry may succeed, if the code alone does not decide that. */
  retryable?: boolean;
  /** How long the sidecar asks to wait. */
  retryAfterMs?: number;
}

/**
 * A failed request to a sidecar. Never carries a token.
 *
 * @example
 * ```ts
 * try {
 *   await client.cancel("019b76da-a800-7000-8000-000000000001");
 * } catch (error) {
 *   if (!(error instanceof RedflowError && error.code === "RUN_UNKNOWN")) {
 *     throw error;
 *   }
 *   console.log(error.status, error.retryable);
 * }
 * ```
 */
export class RedflowError extends Error {
  override readonly name = "RedflowError";
  /**
   * The code; `redflow explain CODE` prints a page about it. `SIDECAR_UNREACHABLE`: there was no response, or it came
   * from another server. `REQUEST_TIMEOUT`: no response in time. A newer sidecar may send codes that this type does
   * not have.
   */
  readonly code: ProblemCode;
  /** The HTTP status; 0 if there was no response. */
  readonly status: number;
  /**
   * Whether the same request may succeed later. The sidecar may have executed a start although its response was lost:
   * use an idempotency key before you repeat it.
   */
  readonly retryable: boolean;
  /** How long the sidecar asks to wait before the next request. */
  declare readonly retryAfterMs?: number;
  /** Every problem of the flow, with `FLOW_REFUSED`. */
  declare readonly report?: CheckReport;
  /** The revision of the active flow, with `REVISION_CONFLICT`. */
  declare readonly revision?: string;

  constructor(error: ApiError, details: FailureDetails = {}) {
    super(error.message);
    this.code = error.code;
    this.status = details.status ?? 0;
    this.retryable = details.retryable ?? TRANSIENT_CODES.has(error.code);
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
