// The requests of the console. The cookie of the page authenticates them; addresses are relative, so that the console works
// below any path.

import { RedflowClient } from "@redflow/bindings";
import type {
  ConfigView,
  NewToken,
  RunId,
  RunList,
  RunTree,
  Session,
  Stats,
  StatsBy,
  TokenList,
  TokenRequest,
} from "@redflow/bindings";
import { Transport, pathSegment } from "../../bindings/src/http.js";
import type { CallOptions, TransportOptions } from "../../bindings/src/http.js";

/** The runs of one page of a tree. */
const TREE_RUNS = 50;

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

/** The sidecar that serves this page. `client` has the routes for every program. */
export class Api {
  readonly client: RedflowClient;
  readonly #transport: Transport;

  /** `onSignedOut` is called when the session has ended, whatever was requested. */
  constructor(url: string, onSignedOut: () => void) {
    const fetch: TransportOptions["fetch"] = async (address, init) => {
      const response = await globalThis.fetch(address, init);
      if (response.status === 401) {
        onSignedOut();
      }
      return response;
    };
    this.client = new RedflowClient({ url, fetch });
    this.#transport = new Transport({ url, fetch });
  }

  session(options?: CallOptions): Promise<Session> {
    return this.#transport.json({ ...options, path: "/api/session" });
  }

  signIn(token: string): Promise<Session> {
    return this.#transport.json({ method: "POST", path: "/sign-in", body: { token } });
  }

  runs(query: RunQuery, options?: CallOptions): Promise<RunList> {
    return this.#transport.json({ ...options, path: "/api/runs", query: { ...query } });
  }

  tree(id: RunId, after?: RunId, options?: CallOptions): Promise<RunTree> {
    return this.#transport.json({ ...options, path: `/api/runs/${pathSegment(id)}/tree`, query: { after, limit: TREE_RUNS } });
  }

  stats(from: string, to: string, by: StatsBy, options?: CallOptions): Promise<Stats> {
    return this.#transport.json({ ...options, path: "/api/stats", query: { from, to, by } });
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
