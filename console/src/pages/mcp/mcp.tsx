// The MCP servers that agents use: their state, and what to do if one cannot be used.

import { useEffect } from "preact/hooks";
import type { McpServerSummary } from "@redflow/bindings";
import { api } from "../../app.js";
import type { Page, PageProps } from "../../page.js";
import { Empty } from "../../parts/controls.js";
import { useLoad } from "../../parts/load.js";
import { Loaded } from "../../parts/problem.js";
import { Heading } from "../../parts/search.js";
import { Table } from "../../parts/table.js";
import { Name } from "../../parts/text.js";
import { formatPlace } from "../../router.js";
import { formatCount, t, tOf } from "../../words.js";
import { Server } from "./server.js";
import { Changed, State } from "./state.js";

/** The time between two reads of the list while the page is seen. */
const POLL_MS = 5_000;

function Mcp({ params: { key } }: PageProps) {
  const load = useLoad((signal) => api.mcpServers({ signal }), []);
  // The list never makes a connection, so it may be read often.
  useEffect(() => {
    const timer = setInterval(() => (document.hidden ? undefined : load.again()), POLL_MS);
    return () => clearInterval(timer);
  }, []);
  return (
    <>
      <Heading name={key} title={t("mcp")} all={t("mcp.all")} href="#/mcp" />
      <Loaded load={load}>
        {({ servers }) => {
          const server = servers.find((one) => one.key === key) ?? servers.find((one) => one.name === key);
          return key === undefined && servers.length > 0 ? (
            <Servers servers={servers} />
          ) : server === undefined ? (
            <Empty title={key === undefined ? t("mcp.empty") : t("mcp.unknown")}>
              <p>{t("mcp.empty.how")}</p>
              <pre>redflow mcp add NAME -- PROGRAM ARGUMENTS</pre>
            </Empty>
          ) : (
            <Server key={server.key} server={server} onChange={load.again} />
          );
        }}
      </Loaded>
    </>
  );
}

function Servers({ servers }: { servers: readonly McpServerSummary[] }) {
  const heads = [t("token.name"), t("run.status"), t("mcp.transport"), t("mcp.protocol"), t("tools"), t("mcp.changed")];
  return (
    <Table label={t("mcp")} heads={heads} numbers={[4, 5]}>
      {servers.map(({ key, state, transport, protocol, tools, changed }) => (
        <tr key={key}>
          <th scope="row">
            <a href={formatPlace(["mcp", key])} data-entry="">
              <Name text={key} />
            </a>
          </th>
          <td>
            <State state={state} />
          </td>
          <td>{tOf("mcp.transport", transport)}</td>
          <td>
            <Name text={protocol ?? ""} />
          </td>
          <td class="number">{formatCount(tools)}</td>
          <td class="number">
            <Changed count={changed} />
          </td>
        </tr>
      ))}
    </Table>
  );
}

export const page: Page = { feature: "mcp", route: "mcp/:key?", title: "mcp", view: Mcp };
