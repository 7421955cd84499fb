// Requests and responses of this module's routes in Node-RED's Admin API.

import { isRecord } from "./record";
import type { AdminHandler } from "./red";

export type AdminRequest = Parameters<AdminHandler>[0];
export type AdminResponse = Parameters<AdminHandler>[1];

/**
 * Whether a request announces JSON. Protects against forms of other web pages: they can send text, but JSON needs the consent
 * of this server (CORS).
 */
export function isJsonRequest(request: AdminRequest): boolean {
  return /^application\/json\s*(;|$)/i.test(request.headers["content-type"] ?? "");
}

/** The parsed body; undefined if it is not an object. Node-RED itself refuses one that is larger than its `apiMaxLength`. */
export function bodyOf(request: AdminRequest): Record<string, unknown> | undefined {
  const { body } = request as AdminRequest & { body?: unknown };
  return isRecord(body) ? body : undefined;
}

/** Sends a JSON text. */
export function sendJson(response: AdminResponse, status: number, text: string): void {
  response.statusCode = status;
  response.setHeader("content-type", "application/json");
  response.setHeader("cache-control", "no-store");
  response.setHeader("x-content-type-options", "nosniff");
  response.end(text);
}
