// The requests of the console. The cookie of the page authenticates them; addresses are relative, so that the console works
// below any path.

import { RedflowClient } from "@redflow/bindings";
import type {
  CheckReport,
  ConfigView,
  FlowGraph,
  IterationDetail,
  JournalPage,
  JsonValue,
  NewToken,
  Profile,
  RunId,
  RunList,
  RunSummary,
  RunTree,
  Session,
  Stats,
  StatsBy,
  TokenList,
  TokenRequest,
} from "@redflow/bindings";
import { Transport, pathSegment } from "../../bindings/src/http.js";
import type { CallOptions } from "../../bindings/src/http.js";

/** The runs of one page of a tree. */
const TREE_RUNS = 500;

/** Selects runs. All values are those of the address. */
export interface RunQuery {
  status?: string | undefined;
  agent?: string | undefined;
  instance?: string | undefined;
  code?: string | undefined;
  since?: string | undefined;
  until?: string | undefined;
  prefix?: string | undefined;
  roots?: string | undefined;
  before?: string | undefined;
  limit?: number | undefined;
}

/** A check with its drawing. */
export type CheckedDrawing = CheckReport & { graph?: FlowGraph };

/** A page of runs. `searchedTo` is the time that a search reached before it stopped. */
export type RunPage = RunList & { searchedTo?: number };

/** The sidecar that serves this page. */
export class Api {
  readonly client: RedflowClient;
  readonly #transport: Transport;

  constructor(url: string) {
    this.client = new RedflowClient({ url });
    this.#transport = new Transport({ url });
  }

  session(options?: CallOptions): Promise<Session> {
    return this.#transport.json({ ...options, path: "/api/session" });
  }

  signIn(token: string): Promise<Session> {
    return this.#transport.json({ method: "POST", path: "/sign-in", body: { token } });
  }

  runs(query: RunQuery, options?: CallOptions): Promise<RunPage> {
    return this.#transport.json({ ...options, path: "/api/runs", query: { ...query } });
  }

  summary(id: RunId): Promise<RunSummary> {
    return this.#transport.json({ path: `/api/runs/${pathSegment(id)}`, query: { only: "summary" } });
  }

  iteration(id: RunId, iteration: number, isFull: boolean, options?: CallOptions): Promise<IterationDetail> {
    const path = `/api/runs/${pathSegment(id)}/iterations/${iteration}`;
    return this.#transport.json({ ...options, path, query: { full: isFull ? "true" : undefined } });
  }

  journal(id: RunId, from: number, lines: number): Promise<JournalPage> {
    return this.#transport.json({ path: `/api/runs/${pathSegment(id)}/journal`, query: { from, lines } });
  }

  tree(id: RunId, after?: RunId): Promise<RunTree> {
    return this.#transport.json({ path: `/api/runs/${pathSegment(id)}/tree`, query: { after, limit: TREE_RUNS } });
  }

  stats(from: string, to: string, by: StatsBy, options?: CallOptions): Promise<Stats> {
    return this.#transport.json({ ...options, path: "/api/stats", query: { from, to, by } });
  }

  graph(tab: string | undefined, instance: string | undefined, options?: CallOptions): Promise<FlowGraph> {
    return this.#transport.json({ ...options, path: "/api/flows/graph", query: { tab, instance } });
  }

  check(flows: JsonValue, profile: Profile): Promise<CheckedDrawing> {
    return this.#transport.json({ method: "POST", path: "/api/flows/check", body: { flows, profile, graph: true } });
  }

  tokens(): Promise<TokenList> {
    return this.#transport.json({ path: "/api/tokens" });
  }

  makeToken(request: TokenRequest): Promise<NewToken> {
    return this.#transport.json({ method: "POST", path: "/api/tokens", body: request });
  }

  async removeToken(name: string): Promise<void> {
    await this.#transport.execute({ method: "DELETE", path: `/api/tokens/${pathSegment(name)}` });
  }

  config(): Promise<ConfigView> {
    return this.#transport.json({ path: "/api/config" });
  }

  /** The address of a file of a run that the browser downloads. */
  address(id: RunId, file: "journal" | "report"): string {
    return `api/runs/${encodeURIComponent(id)}/${file}`;
  }
}
