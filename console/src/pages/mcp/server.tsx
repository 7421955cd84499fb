// One MCP server: its tools with their approvals, its resources and its prompts.

import { useState } from "preact/hooks";
import type { McpConfinement, McpServerDetail, McpServerSummary, McpToolInfo } from "@redflow/bindings";
import { api, say, sayFailure, shade } from "../../app.js";
import { Act, Age, Confirm, Fact } from "../../parts/controls.js";
import { useLoad } from "../../parts/load.js";
import { Coded, Loaded } from "../../parts/problem.js";
import { Table } from "../../parts/table.js";
import { Name, Quote, Words, writeValue } from "../../parts/text.js";
import { t, tOf } from "../../words.js";
import { Difference } from "./difference.js";
import { Changed, State, approvalOf, isUnapproved } from "./state.js";

interface ServerProps {
  server: McpServerSummary;
  /** Reads the list again. */
  onChange: () => void;
}

export function Server({ server, onChange }: ServerProps) {
  const { key, state, since, tools, changed } = server;
  const [isBusy, setBusy] = useState(false);
  // Such a read connects to the server. It is made again only if the list differs; each failed try has a new time.
  const load = useLoad((signal) => api.mcpServer(key, { signal }), [key, state, state === "ready" ? since : 0, tools, changed]);
  const after = async (act: Promise<unknown>): Promise<void> => {
    await act;
    load.again();
    onChange();
  };
  const connect = async (): Promise<void> => {
    setBusy(true);
    await after(api.connectMcp(key)).catch(sayFailure);
    setBusy(false);
  };
  const approve = (seen: readonly McpToolInfo[]): Promise<void> =>
    after(api.pinMcpTools(key, Object.fromEntries(seen.map((tool) => [tool.name, tool.digest ?? ""]))));
  return (
    <>
      <About server={server} />
      <div class="buttons">
        <Act scope="deploy" isBusy={isBusy} onClick={() => void connect()}>
          {t("mcp.connect")}
        </Act>
        {state === "login_needed" ? <SignIn server={key} /> : null}
      </div>
      <Loaded load={load}>
        {(detail) => (
          <>
            <Approvals tools={detail.tools.filter(isUnapproved)} approve={approve} />
            <Tools tools={detail.tools} />
            <Others detail={detail} />
          </>
        )}
      </Loaded>
    </>
  );
}

/** How far the program is confined, and what the system does not give. */
function Confinement({ confinement: { landlock, gaps } }: { confinement: McpConfinement }) {
  return (
    <>
      {landlock === undefined ? t("no") : gaps.length === 0 ? t("yes") : t("mcp.confined.part")}
      {landlock === undefined ? null : ` (Landlock ${landlock})`}
      {gaps.map((gap) => (
        <p key={gap}>{tOf("mcp.gap", gap)}</p>
      ))}
    </>
  );
}

/** What is known about the server, and what to do if it cannot be used. */
function About({ server: { state, reason, code, target, transport, protocol, server, origin, confinement, since, changed } }: { server: McpServerSummary }) {
  const texts: readonly (readonly [string, string | undefined])[] = [
    [t("mcp.target"), target],
    [t("mcp.protocol"), protocol],
    [t("mcp.software"), server],
  ];
  return (
    <>
      <dl class="facts">
        <Fact name={t("run.status")}>
          <State state={state} />
        </Fact>
        <Fact name={t("mcp.transport")}>{tOf("mcp.transport", transport)}</Fact>
        {texts.map(([title, text]) =>
          text ? (
            <Fact key={title} name={title}>
              <Name text={text} />
            </Fact>
          ) : null,
        )}
        <Fact name={t("tool.origin")}>{tOf("mcp.origin", origin)}</Fact>
        {confinement === undefined ? null : (
          <Fact name={t("mcp.confined")}>
            <Confinement confinement={confinement} />
          </Fact>
        )}
        {since === undefined ? null : (
          <Fact name={t("mcp.since")}>
            <Age at={since} />
          </Fact>
        )}
        <Fact name={t("mcp.changed")}>
          <Changed count={changed} />
        </Fact>
      </dl>
      {reason === undefined ? null : code === undefined ? (
        <p class="problem">
          <Words text={reason} />
        </p>
      ) : (
        <Coded code={code} message={reason} />
      )}
      {state === "ready" ? null : <p>{tOf("mcp.how", state)}</p>}
    </>
  );
}

/** Begins a sign-in at the issuer of the server, in another tab. */
function SignIn({ server }: { server: string }) {
  const [address, setAddress] = useState("");
  const signIn = async (): Promise<void> => {
    const { url } = await api.loginMcp(server);
    // An address of a stranger: no script, no file.
    if (!/^https?:[/]{2}/i.test(url)) {
      say(t("mcp.login.refused"));
      return;
    }
    setAddress(url);
    window.open(url, "_blank", "noopener,noreferrer");
  };
  return (
    <>
      <Act scope="admin" kind="primary" onClick={() => void signIn().catch(sayFailure)}>
        {t("mcp.login")}
      </Act>
      {/* For browsers that open no tab by themselves. */}
      {address === "" ? null : (
        <a href={address} target="_blank" rel="noopener noreferrer">
          {t("mcp.login.link")}
        </a>
      )}
    </>
  );
}

interface ApprovalsProps {
  tools: readonly McpToolInfo[];
  /** Approves the definitions with the digests that are shown. */
  approve: (tools: readonly McpToolInfo[]) => Promise<void>;
}

function Approvals({ tools, approve }: ApprovalsProps) {
  const [isAsked, setAsked] = useState(false);
  if (tools.length === 0) {
    return null;
  }
  return (
    <section aria-labelledby="mcp-changed">
      <h2 id="mcp-changed">{t("mcp.changed")}</h2>
      <p>{t("mcp.changed.what")}</p>
      {tools.length === 1 ? null : (
        <Act scope="admin" isOff={shade.value} onClick={() => setAsked(true)}>
          {t("mcp.approve.all", { n: tools.length })}
        </Act>
      )}
      <ul class="hits">
        {tools.map((tool) => (
          <li key={tool.name} class="card">
            <h3>
              <Name text={tool.name} />
            </h3>
            {tool.diff === undefined ? <Definition tool={tool} /> : <Difference text={tool.diff} />}
            {/* Under the shade nobody can read what would be approved. */}
            <Act scope="admin" kind="primary" isOff={shade.value} label={`${t("mcp.approve")}: ${tool.name}`} onClick={() => void approve([tool]).catch(sayFailure)}>
              {t("mcp.approve")}
            </Act>
          </li>
        ))}
      </ul>
      {isAsked ? (
        <Confirm scope="admin" title={t("mcp.approve.all", { n: tools.length })} yes={t("mcp.approve")} act={() => approve(tools)} onClose={() => setAsked(false)}>
          {t("mcp.approve.ask")}
        </Confirm>
      ) : null}
    </section>
  );
}

/** What a model reads of a tool. */
function Definition({ tool: { description, inputSchema } }: { tool: McpToolInfo }) {
  return (
    <>
      <p>
        <Words text={description} />
      </p>
      <Quote text={writeValue(inputSchema)} label={t("tool.schema")} />
    </>
  );
}

function Tools({ tools }: { tools: readonly McpToolInfo[] }) {
  return (
    <section aria-labelledby="mcp-tools">
      <h2 id="mcp-tools">{t("tools")}</h2>
      {tools.length === 0 ? (
        <p class="muted">{t("mcp.noTools")}</p>
      ) : (
        <Table label={t("tools")} heads={[t("tool"), t("tool.effect"), t("run.status"), t("mcp.pin")]}>
          {tools.map((tool) => (
            <tr key={tool.name}>
              <th scope="row">
                <details>
                  <summary>
                    <Name text={tool.name} />
                  </summary>
                  <Definition tool={tool} />
                </details>
              </th>
              <td>{tOf("effect", tool.effect)}</td>
              <td>
                {tool.included ? <span class={`badge tool-${tool.state}`}>{tOf("tool.state", tool.state)}</span> : <span class="muted">{t("mcp.excluded")}</span>}
                {tool.reason === undefined ? null : (
                  <p>
                    <small>
                      <Words text={tool.reason} />
                    </small>
                  </p>
                )}
              </td>
              <td>{approvalOf(tool)}</td>
            </tr>
          ))}
        </Table>
      )}
    </section>
  );
}

/** The resources and the prompts. */
function Others({ detail: { resources, prompts } }: { detail: McpServerDetail }) {
  const lists = [
    { id: "mcp-resources", title: t("mcp.resources"), rows: resources.map(({ uri, name, description }) => ({ key: uri, name: uri, words: description ?? name })) },
    {
      id: "mcp-prompts",
      title: t("mcp.prompts"),
      rows: prompts.map(({ name, description, needsArguments }) => ({ key: name, name, words: needsArguments ? `${description ?? ""} (${t("mcp.prompt.arguments")})`.trim() : (description ?? "") })),
    },
  ];
  return (
    <>
      {lists.map(({ id, title, rows }) =>
        rows.length === 0 ? null : (
          <section key={id} aria-labelledby={id}>
            <h2 id={id}>{title}</h2>
            <ul>
              {rows.map(({ key, name, words }) => (
                <li key={key}>
                  <code>
                    <Name text={name} />
                  </code>{" "}
                  <Words text={words} />
                </li>
              ))}
            </ul>
          </section>
        ),
      )}
    </>
  );
}
