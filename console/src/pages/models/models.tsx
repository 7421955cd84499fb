// The models of the flow in force: who binds them, what they can do, what they cost, and a test.

import { useState } from "preact/hooks";
import type { ConfigEntry, JsonValue, ModelTest, NodeType } from "@redflow/bindings";
import { allows, api } from "../../app.js";
import type { Page } from "../../page.js";
import { Act, Empty, Fact, Reading } from "../../parts/controls.js";
import { useLoad } from "../../parts/load.js";
import { Coded, Problem } from "../../parts/problem.js";
import { Name, Quote, writeValue } from "../../parts/text.js";
import { formatPlace } from "../../router.js";
import { formatCount, formatDuration, t, tOf } from "../../words.js";

/** The properties of a node that the test does not send, because they are not the model's. */
const PLACE_KEYS: readonly string[] = ["id", "type", "name", "x", "y", "z", "wires", "g", "d", "credentials"];

export interface ModelNode {
  id: string;
  type: string;
  name: string;
  tab: string;
  config: Record<string, JsonValue>;
  /** The names of the nodes that name it, by a wire or a property. */
  boundBy: string[];
}

/** Whether a type of the catalogue, which may end in `*`, is this type. */
function isType(pattern: string, type: string): boolean {
  return pattern.endsWith("*") ? type.startsWith(pattern.slice(0, -1)) : pattern === type;
}

/** The model nodes of a flow. */
export function modelNodes(flows: readonly JsonValue[], catalogue: readonly NodeType[]): ModelNode[] {
  const types = catalogue.filter(({ role }) => role === "model").map(({ type }) => type);
  return flows.flatMap((node): ModelNode[] => {
    if (node === null || typeof node !== "object" || Array.isArray(node)) {
      return [];
    }
    const [id, type] = [node["id"], node["type"]];
    if (typeof id !== "string" || typeof type !== "string" || !types.some((pattern) => isType(pattern, type))) {
      return [];
    }
    const config = Object.fromEntries(Object.entries(node).filter(([key]) => !PLACE_KEYS.includes(key)));
    const text = (value: JsonValue | undefined): string => (typeof value === "string" ? value : "");
    const boundBy = flows.flatMap((other) => (isBinding(other, id) ? [text(other["name"]) || text(other["id"])] : []));
    return [{ id, type, name: text(node["name"]), tab: text(node["z"]), config, boundBy }];
  });
}

/** Whether a node names another one: in its wires, or as a model in its properties. */
function isBinding(node: JsonValue, id: string): node is { [key: string]: JsonValue } {
  if (node === null || typeof node !== "object" || Array.isArray(node)) {
    return false;
  }
  return [node["wires"], node["model"], node["fallbackModels"]].flat(2).includes(id);
}

/** The settings with the price of a model. Keys such as `prices."gpt-5*".input` name models by a pattern. */
export function pricesOf(settings: readonly ConfigEntry[], model: string): ConfigEntry[] {
  return settings.filter(({ key }) => {
    const pattern = /^prices\.(?:"([^"]*)"|([^.]*))/.exec(key);
    const name = pattern?.[1] ?? pattern?.[2];
    return name !== undefined && model !== "" && isType(name, model);
  });
}

function Models() {
  const { value, error, again } = useLoad(async (signal) => {
    const [deployment, catalogue, config] = await Promise.all([
      api.client.deployment({ signal }),
      api.client.catalogue({ signal }),
      allows("admin") ? api.config().catch(() => ({ settings: [] })) : { settings: [] },
    ]);
    return { models: modelNodes(deployment.flows, catalogue), settings: config.settings };
  }, []);
  return (
    <>
      <h1>{t("models")}</h1>
      {error === undefined ? null : <Problem error={error} onRetry={again} />}
      {value === undefined ? error === undefined ? <Reading /> : null : value.models.length === 0 ? (
        <Empty title={t("models.empty")}>
          <p>{t("models.empty.how")}</p>
        </Empty>
      ) : (
        <div class="cards">
          {value.models.map((model) => (
            <Model key={model.id} model={model} settings={value.settings} />
          ))}
        </div>
      )}
    </>
  );
}

function Model({ model, settings }: { model: ModelNode; settings: readonly ConfigEntry[] }) {
  const { id, type, name, tab, config, boundBy } = model;
  const asked = typeof config["model"] === "string" ? config["model"] : "";
  const prices = pricesOf(settings, asked);
  return (
    <article class="card" aria-label={name || id}>
      <h2>
        <Name text={name} fallback={id} />
      </h2>
      <dl class="facts">
        <Fact name={t("flow.type")}>
          <Name text={type} />
        </Fact>
        {asked === "" ? null : (
          <Fact name={t("step.model")}>
            <Name text={asked} />
          </Fact>
        )}
        {typeof config["baseURL"] === "string" && config["baseURL"] !== "" ? (
          <Fact name={t("models.address")}>
            <Name text={config["baseURL"]} />
          </Fact>
        ) : null}
        {boundBy.length === 0 ? null : (
          <Fact name={t("models.boundBy")}>
            <Name text={boundBy.join(", ")} />
          </Fact>
        )}
        <Fact name={t("models.prices")}>
          {prices.length === 0 ? t("models.noPrice") : prices.map(({ key, value }) => `${key.split(".").at(-1) ?? ""} ${value}`).join(", ")}
        </Fact>
      </dl>
      {config["capabilities"] === undefined || config["capabilities"] === "" ? null : <Quote text={writeValue(config["capabilities"])} label={t("models.abilities")} />}
      <p>
        <a href={formatPlace(tab === "" ? ["flow"] : ["flow", tab], { node: id })}>{t("agent.flow")}</a>
      </p>
      <Test model={model} />
    </article>
  );
}

function Test({ model: { id, type, config } }: { model: ModelNode }) {
  const [result, setResult] = useState<ModelTest | undefined>();
  const [error, setError] = useState<unknown>();
  const [isBusy, setBusy] = useState(false);
  const test = async (): Promise<void> => {
    setBusy(true);
    setError(undefined);
    setResult(undefined);
    try {
      setResult(await api.client.testModel({ type, config, node: id }));
    } catch (failure) {
      setError(failure);
    }
    setBusy(false);
  };
  return (
    <>
      <Act scope="deploy" isBusy={isBusy} onClick={() => void test()}>
        {isBusy ? t("models.testing") : t("models.test")}
      </Act>
      <div role="status">
        {result === undefined ? null : result.ok ? (
          <>
            <p class="proved">✓ {t("models.answered", { duration: formatDuration(result.durationMs) })}</p>
            <dl class="facts">
              {result.server === undefined ? null : <Fact name={t("models.server")}>{result.server}</Fact>}
              {result.answeredBy === undefined ? null : (
                <Fact name={t("step.model")}>
                  <Name text={result.answeredBy} />
                </Fact>
              )}
              {result.schema === undefined ? null : <Fact name="JSON Schema">{tOf("schema", result.schema)}</Fact>}
              {result.contextWindow === undefined ? null : <Fact name={t("models.window")}>{formatCount(result.contextWindow)}</Fact>}
              {result.tokensPerSecond === undefined ? null : <Fact name={t("models.speed")}>{formatCount(result.tokensPerSecond)}</Fact>}
            </dl>
          </>
        ) : (
          <Coded code={result.error?.code ?? "MODEL_ERROR"} message={result.error?.message ?? ""} />
        )}
      </div>
      {error === undefined ? null : <Problem error={error} />}
    </>
  );
}

export const page: Page = { feature: "models", route: "models", title: "models", view: Models };
