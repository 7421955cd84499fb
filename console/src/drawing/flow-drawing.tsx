// A flow as a drawing, and the same as a list.

import { useMemo, useState } from "preact/hooks";
import type { FlowGraph, GraphNode, RunStatus } from "@redflow/bindings";
import { messageOf } from "../parts/phrases.js";
import { Table } from "../parts/table.js";
import { Name, showText } from "../parts/text.js";
import { t, tOf } from "../words.js";
import { MAX_DRAWN, labelOf, layFlow, outputsOf } from "./flow-layout.js";
import type { PlacedNode } from "./flow-layout.js";

const KINDS = ["data", "model", "tool", "tool_chain", "memory", "reply"] as const;
/** The rows that a list shows at first, and that each click adds. */
const LIST_ROWS = 100;
const ZOOMS = [0.5, 0.75, 1, 1.25, 1.5, 2] as const;

interface FlowDrawingProps {
  graph: FlowGraph;
  /** The status of the newest run of each agent. */
  statuses?: ReadonlyMap<string, RunStatus>;
  chosen?: string | undefined;
  onChoose?: (node: GraphNode) => void;
}

export function FlowDrawing(props: FlowDrawingProps) {
  const { graph } = props;
  const isTooLarge = graph.nodes.length > MAX_DRAWN || graph.omitted > 0;
  const [isListWanted, setListWanted] = useState(false);
  const isList = isTooLarge || isListWanted;
  const [zoom, setZoom] = useState(2);
  return (
    <div class="flow-view">
      <div class="buttons" role="toolbar" aria-label={t("flow.view")}>
        <button type="button" aria-pressed={isList} disabled={isTooLarge} onClick={() => setListWanted(!isListWanted)}>
          {t("flow.list")}
        </button>
        {isList ? null : (
          <>
            <button type="button" aria-label={t("flow.smaller")} disabled={zoom === 0} onClick={() => setZoom(zoom - 1)}>
              −
            </button>
            <button type="button" aria-label={t("flow.larger")} disabled={zoom === ZOOMS.length - 1} onClick={() => setZoom(zoom + 1)}>
              +
            </button>
          </>
        )}
      </div>
      {graph.omittedParts > 0 ? <p class="muted">{t("flow.omitted", { n: graph.omittedParts })}</p> : null}
      {isTooLarge ? <p class="muted">{t("flow.tooLarge", { n: graph.nodes.length + graph.omitted, most: MAX_DRAWN })}</p> : null}
      {graph.omitted > 0 ? <p class="muted">{t("flow.omitted.nodes", { n: graph.omitted })}</p> : null}
      {isList ? <FlowList {...props} /> : <Drawing {...props} zoom={ZOOMS[zoom] ?? 1} />}
    </div>
  );
}

function Drawing({ graph, statuses, chosen, onChoose, zoom }: FlowDrawingProps & { zoom: number }) {
  const laid = useMemo(() => layFlow(graph), [graph]);
  const kinds = KINDS.filter((kind) => graph.wires.some((wire) => wire.kind === kind));
  return (
    <>
      <div class="flow-box" tabIndex={0} role="group" aria-label={t("flow.drawing")}>
        <svg viewBox={`0 0 ${laid.width} ${laid.height}`} width={laid.width * zoom} height={laid.height * zoom}>
          {laid.wires.map(({ wire, path, problems }, index) => (
            <path
              key={index}
              d={path}
              class={`wire kind-${wire.kind}${wire.port === undefined ? " binding" : ""}${problems.length > 0 ? " wrong" : ""}`}
            >
              <title>{showText([tOf("kind", wire.kind), ...problems.map((one) => `${one.code}: ${messageOf(one)}`)].join("\n"))}</title>
            </path>
          ))}
          {laid.nodes.map((placed) => (
            <DrawnNode
              key={placed.node.id}
              placed={placed}
              status={statuses?.get(placed.node.id)}
              isChosen={placed.node.id === chosen}
              onChoose={onChoose}
            />
          ))}
        </svg>
      </div>
      <ul class="legend">
        {kinds.map((kind) => (
          <li key={kind}>
            <svg viewBox="0 0 24 8" aria-hidden="true">
              <path d="M 0 4 L 24 4" class={`wire kind-${kind}`} />
            </svg>{" "}
            {tOf("kind", kind)}
          </li>
        ))}
        {graph.wires.some(({ port }) => port === undefined) ? (
          <li>
            <svg viewBox="0 0 24 8" aria-hidden="true">
              <path d="M 0 4 L 24 4" class="wire binding" />
            </svg>{" "}
            {t("flow.binding")}
          </li>
        ) : null}
      </ul>
    </>
  );
}

interface DrawnNodeProps {
  placed: PlacedNode;
  status: RunStatus | undefined;
  isChosen: boolean;
  onChoose: ((node: GraphNode) => void) | undefined;
}

function DrawnNode({ placed, status, isChosen, onChoose }: DrawnNodeProps) {
  const { node, x, y, width, height, label, problems } = placed;
  const isWrong = problems.some(({ severity }) => severity === "error");
  const name = [tOf("role", node.role), labelOf(node), ...(status === undefined ? [] : [tOf("status", status)]), ...(isWrong ? [t("flow.wrong")] : [])].join(", ");
  return (
    <g
      class={`node role-${node.role}${node.disabled === true ? " disabled" : ""}${isChosen ? " chosen" : ""}${isWrong ? " wrong" : ""}`}
      aria-label={showText(name)}
      {...(onChoose === undefined ? { role: "img" } : buttonProps(isChosen, () => onChoose(node)))}
    >
      <rect x={x} y={y} width={width} height={height} rx="5" />
      <text x={x + 14} y={y + height / 2 + 4}>
        {showText(label)}
      </text>
      {outputsOf(placed).map((at, index) => (
        <rect key={index} class="port" x={x + width - 4} y={at - 4} width="8" height="8" rx="2" />
      ))}
      {status === undefined ? null : <circle class={`dot status-${status}`} cx={x + 4} cy={y + height + 8} r="4" />}
      {isWrong ? (
        <text class="mark" x={x + width - 6} y={y - 4}>
          ▲
        </text>
      ) : null}
    </g>
  );
}

/** What makes a part of a drawing a button. Names of attributes in SVG have no capitals. */
function buttonProps(isPressed: boolean, press: () => void) {
  return {
    role: "button" as const,
    tabindex: 0,
    "aria-pressed": isPressed,
    onClick: press,
    onKeyDown: (event: KeyboardEvent) => {
      if (event.key === "Enter" || event.key === " ") {
        event.preventDefault();
        press();
      }
    },
  };
}

/** The nodes and wires of a flow as a table. */
function FlowList({ graph, statuses, chosen, onChoose }: FlowDrawingProps) {
  const [shown, setShown] = useState(LIST_ROWS);
  const names = new Map(graph.nodes.map((node) => [node.id, node.name || node.id]));
  const at = graph.nodes.findIndex(({ id }) => id === chosen);
  // The chosen node is always among the rows.
  const last = Math.max(shown, at + 1);
  return (
    <Table
      label={t("flow.list")}
      heads={[t("flow.node"), t("flow.type"), t("flow.role"), t("flow.wires"), t("flow.problems")]}
      foot={
        graph.nodes.length > last ? (
          <p>
            {t("flow.shown", { n: last, all: graph.nodes.length })}{" "}
            <button type="button" data-entry="" onClick={() => setShown(last + LIST_ROWS)}>
              {t("flow.more")}
            </button>
          </p>
        ) : null
      }
    >
          {graph.nodes.slice(0, last).map((node) => {
            const wires = graph.wires.filter(({ from }) => from === node.id);
            const problems = graph.diagnostics.filter((one) => one.node?.id === node.id);
            const status = statuses?.get(node.id);
            return (
              <tr key={node.id} aria-current={node.id === chosen ? "true" : undefined}>
                <th scope="row">
                  {onChoose === undefined ? (
                    <Name text={node.name} fallback={node.id} />
                  ) : (
                    <button type="button" class="quiet" data-entry="" aria-pressed={node.id === chosen} onClick={() => onChoose(node)}>
                      <Name text={node.name} fallback={node.id} />
                    </button>
                  )}
                  {status === undefined ? null : <span class={`badge status-${status}`}>{tOf("status", status)}</span>}
                </th>
                <td>
                  <Name text={node.type} />
                </td>
                <td>{tOf("role", node.role)}</td>
                <td>
                  {wires.map((wire, index) => (
                    <div key={index}>
                      {tOf("kind", wire.kind)} → <Name text={names.get(wire.to) ?? wire.to} />
                      {wire.port === undefined ? ` (${t("flow.binding")})` : ""}
                    </div>
                  ))}
                </td>
                <td>
                  {problems.map(({ code }, index) => (
                    <code key={index}>{code} </code>
                  ))}
                </td>
              </tr>
            );
          })}
    </Table>
  );
}
