// The models of the deployed flows: who binds them, what they can do, what they cost, and a test.

import { useState } from "preact/hooks";
import type { DeployedModel, ModelDescription, ModelPrice, ModelTest, PriceTier } from "@redflow/bindings";
import { api } from "../../app.js";
import type { Page } from "../../page.js";
import { Act, Empty, Fact, Reading } from "../../parts/controls.js";
import { useLoad } from "../../parts/load.js";
import { Coded, Problem } from "../../parts/problem.js";
import { Name, showName } from "../../parts/text.js";
import { formatPlace } from "../../router.js";
import { formatCost, formatCount, formatDuration, t, tOf } from "../../words.js";

/** What a model can do, in words. */
function abilitiesOf({ tools, vision, streaming }: ModelDescription): string {
  const has = { tools, vision, streaming };
  return (["tools", "vision", "streaming"] as const).filter((name) => has[name]).map((name) => tOf("ability", name)).join(", ");
}

/** The prices, those of larger requests, and where they come from. */
function priceOf({ source, tiers = [], ...price }: ModelPrice): string {
  const larger = tiers.map(({ above, ...tier }) => t("price.above", { n: above, prices: pricesOf(tier) }));
  return `${[pricesOf(price), ...larger].join("; ")} (${tOf("price.source", source)})`;
}

function pricesOf({ input, output, cached, cacheWrite }: Omit<PriceTier, "above">): string {
  return Object.entries({ input, output, cached, cacheWrite })
    .flatMap(([name, price]) => (price === undefined ? [] : [`${tOf("price", name)} ${formatCost(price)}`]))
    .join(", ");
}

function Models() {
  const { value, error, again } = useLoad((signal) => api.models({ signal }), []);
  return (
    <>
      <h1>{t("models")}</h1>
      <Problem error={error} onRetry={again} />
      {value === undefined ? error === undefined ? <Reading /> : null : value.models.length === 0 ? (
        <Empty title={t("models.empty")}>
          <p>{t("models.empty.how")}</p>
        </Empty>
      ) : (
        <div class="cards">
          {value.models.map((model) => (
            <Model key={`${model.instance ?? ""} ${model.node.id}`} model={model} />
          ))}
        </div>
      )}
      {value === undefined || value.omitted === 0 ? null : <p class="muted">{t("more", { n: value.omitted })}</p>}
    </>
  );
}

function Model({ model: deployed }: { model: DeployedModel }) {
  const { node, tab, instance, agents, omittedAgents, model, problem } = deployed;
  return (
    <article class="card" aria-label={showName(node.name, node.id)}>
      <h2>
        <Name text={node.name} fallback={node.id} />
      </h2>
      <dl class="facts">
        <Fact name={t("flow.type")}>
          <Name text={node.type} />
        </Fact>
        {instance === undefined ? null : (
          <Fact name="Node-RED">
            <Name text={instance} />
          </Fact>
        )}
        <Fact name={t("models.boundBy")}>
          {agents.length === 0 ? t("models.unbound") : null}
          {agents.map(({ id, name }, index) => (
            <span key={id}>
              {index === 0 ? "" : ", "}
              <Name text={name} fallback={id} />
            </span>
          ))}
          {omittedAgents === 0 ? null : ` ${t("more", { n: omittedAgents })}`}
        </Fact>
        {model === undefined ? null : (
          <>
            {model.name === "" ? null : (
              <Fact name={t("step.model")}>
                <Name text={model.name} />
              </Fact>
            )}
            {model.server === undefined ? null : (
              <Fact name={t("models.address")}>
                <Name text={model.server} />
              </Fact>
            )}
            <Fact name={t("models.abilities")}>{abilitiesOf(model)}</Fact>
            {model.contextWindow === undefined ? null : <Fact name={t("models.window")}>{formatCount(model.contextWindow)}</Fact>}
            <Fact name={t("models.prices")}>{model.price === undefined ? t("models.noPrice") : priceOf(model.price)}</Fact>
          </>
        )}
      </dl>
      <p>
        <a href={formatPlace(["flow", tab], { node: node.id, ...(instance === undefined ? {} : { instance }) })}>{t("agent.flow")}</a>
      </p>
      {problem === undefined ? (
        <Test model={deployed} />
      ) : (
        <p class="problem">
          {t("models.untestable")} <bdi>{problem}</bdi>
        </p>
      )}
    </article>
  );
}

function Test({ model: { node, instance } }: { model: DeployedModel }) {
  const [result, setResult] = useState<ModelTest | undefined>();
  const [error, setError] = useState<unknown>();
  const [isBusy, setBusy] = useState(false);
  const test = async (): Promise<void> => {
    setBusy(true);
    setError(undefined);
    setResult(undefined);
    try {
      setResult(await api.testModel({ type: node.type, node: node.id, ...(instance === undefined ? {} : { instance }) }));
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
      <Problem error={error} />
    </>
  );
}

export const page: Page = { feature: "models", route: "models", title: "models", view: Models };
