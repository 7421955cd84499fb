// English texts with the phrases by which the editor shows them in the user's language.

import type { Phrase } from "@redflow/bindings";

/** Characters of a status, with the ellipsis: more does not fit under a node. The tab Errors has the whole sentence. */
export const STATUS_LENGTH = 40;

/** A text in English, and its phrase if the editor's catalogues have it. */
export interface Sentence {
  text: string;
  phrase?: Phrase | undefined;
}

/** The phrases that only the palette uses, in English. The sidecar declares the others. */
export const ENGLISH = {
  status_connecting: "connecting",
  status_connecting_waiting: "connecting ({waiting} waiting)",
  status_offline: "sidecar offline: {reason}",
  status_offline_waiting: "sidecar offline ({waiting} waiting): {reason}",
  status_not_ready: "the agent is not ready",
  refused_wire: "dropped a message from a refused wire: {code}: {message}. {help}",
  refused_again: "dropped a message that an agent had refused already, because this agent is refused too",
  no_runtime: "the agent has no runtime; choose a redflow-runtime in it and deploy",
  flow_over_limit: "the flow has {bytes} bytes; the sidecar accepts {limit}",
  node_too_deep: "{node} nests deeper than {levels} levels in `{property}`; make it flatter and deploy",
  choose_runtime: "choose a runtime",
  status_refused: "{code}: {message}",
  token_refused: "the sidecar does not accept this token; enter what `redflow token` prints in the redflow-runtime",
  token_invalid: "the token has characters that an HTTP header cannot carry",
  instance_refused: "the sidecar does not accept this Node-RED",
  no_bridge: "the server at this URL has no bridge: it is not a sidecar, or an older one",
  offline_nothing_listens: "nothing listens there",
  offline_host_unknown: "there is no host with this name",
  offline_lookup_failed: "the name of the host cannot be looked up",
  offline_cut: "the connection was cut",
  offline_host_unreachable: "the host cannot be reached",
  offline_network: "the network cannot be reached",
  offline_host_silent: "the host does not answer",
  offline_sidecar_silent: "the sidecar does not answer",
  offline_status: "the sidecar answered with status {status}",
  offline_closed: "the sidecar closed the connection ({number})",
  offline_ended: "it ended with {how}",
  offline_ended_error: "it ended with {how}: {error}",
  url_invalid: "the URL of the runtime is not http:// or https://",
  program_help: "Enter its path in the redflow-runtime node or in REDFLOW_BINARY, or put it on the PATH.",
  program_foreign: "{program} exists but was not built for this system ({system}, or its C library). {help}",
  program_nowhere:
    "there is no program {program}: the redflow-runtime node and REDFLOW_BINARY name none, {missing}, and it is not on the PATH. One of the four is needed.",
  package_missing: "the package {packages} is not installed",
  program_missing: "there is no program {program}. {help}",
  program_not_executable: "{program} is not executable. {help}",
  program_failed: "{program} could not be started ({code}). {help}",
} as const;

/** Fills in a phrase of the palette. */
export function sentence(key: keyof typeof ENGLISH, values: Record<string, Sentence> = {}): Sentence {
  const text = ENGLISH[key].replace(/\{(\w+)\}/g, (place, name: string) => values[name]?.text ?? place);
  const args = Object.fromEntries(Object.entries(values).map(([name, value]) => [name, value.phrase ?? value.text]));
  return { text, phrase: { key, args } };
}
