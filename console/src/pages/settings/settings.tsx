// The choices of this browser, the tokens, the configuration and the Node-REDs.

import { letters, session, shade, theme, THEMES, allows, api, changeLanguage, sayFailure } from "../../app.js";
import type { Page } from "../../page.js";
import { Act, Empty, Fact, Reading } from "../../parts/controls.js";
import { Choice, Tick, valueOf } from "../../parts/fields.js";
import { useLoad } from "../../parts/load.js";
import { Problem } from "../../parts/problem.js";
import { Table } from "../../parts/table.js";
import { Name, Words } from "../../parts/text.js";
import { LANGUAGES, formatCount, language, t, tOf } from "../../words.js";
import type { Language } from "../../words.js";
import { Tokens } from "./tokens.js";

function Settings() {
  return (
    <>
      <h1>{t("settings")}</h1>
      <div class="cards">
        <Choices />
        <SessionCard />
        <NodeReds />
      </div>
      <Tokens />
      <Configuration />
    </>
  );
}

function Choices() {
  return (
    <section class="card" aria-labelledby="settings-choices">
      <h2 id="settings-choices">{t("settings.browser")}</h2>
      <form class="stack" onSubmit={(event: Event) => event.preventDefault()}>
        <label>
          {t("settings.language")}
          <select value={language.value} onChange={(event: Event) => void changeLanguage(valueOf(event) as Language)}>
            {LANGUAGES.map((name) => (
              <option key={name} value={name} lang={name}>
                {{ en: "English", es: "Español", de: "Deutsch" }[name]}
              </option>
            ))}
          </select>
        </label>
        <Choice label={t("settings.theme")} value={theme.value} options={THEMES.map((name) => [name, tOf("theme", name)])} onChoose={(name) => (theme.value = name)} />
        <Tick label={t("settings.letters")} isOn={letters.value} onTick={(isOn) => (letters.value = isOn)} />
        <Tick label={t("settings.shade")} isOn={shade.value} onTick={(isOn) => (shade.value = isOn)} />
      </form>
    </section>
  );
}

function SessionCard() {
  const signOut = async (): Promise<void> => {
    try {
      await api.signOut();
      session.value = null;
    } catch (error) {
      sayFailure(error);
    }
  };
  return (
    <section class="card" aria-labelledby="settings-session">
      <h2 id="settings-session">{t("settings.session")}</h2>
      <dl class="facts">
        <Fact name={t("token.name")}>
          <Name text={session.value?.name ?? ""} />
        </Fact>
        <Fact name={t("token.scopes")}>{session.value?.scopes.join(", ")}</Fact>
        <Fact name={t("settings.version")}>{session.value?.version}</Fact>
      </dl>
      <Act onClick={() => void signOut()}>{t("settings.signOut")}</Act>
    </section>
  );
}

function NodeReds() {
  const { value, error, again } = useLoad((signal) => api.instances({ signal }), []);
  return (
    <section class="card" aria-labelledby="settings-node-red">
      <h2 id="settings-node-red">Node-RED</h2>
      <Problem error={error} onRetry={again} />
      {value === undefined ? error === undefined ? <Reading /> : null : value.instances.length === 0 ? (
        <Empty title={t("settings.noNodeRed")}>
          <p>{t("settings.noNodeRed.how")}</p>
        </Empty>
      ) : (
        <ul class="newest">
          {value.instances.map(({ instance, connected, nodeRed, bridge, agents }) => (
            <li key={instance}>
              <Name text={instance} />
              <span class={`badge status-${connected ? "completed" : "failed"}`}>{connected ? t("settings.connected") : t("settings.notConnected")}</span>
              <small class="muted">
                Node-RED {nodeRed} · {bridge} · {t("home.agents")}: {formatCount(agents.length)}
              </small>
            </li>
          ))}
        </ul>
      )}
    </section>
  );
}

function Configuration() {
  const isAllowed = allows("admin");
  const { value, error, again } = useLoad(async () => (isAllowed ? api.config() : undefined), [isAllowed]);
  return (
    <section aria-labelledby="settings-config">
      <h2 id="settings-config">{t("settings.config")}</h2>
      <p class="muted">{isAllowed ? t("settings.config.what") : t("act.scope", { scope: "admin" })}</p>
      <Problem error={error} onRetry={again} />
      {value === undefined ? null : (
        <Table label={t("settings.config")} heads={[t("settings.key"), t("settings.value")]}>
              {value.settings.map((entry) => (
                <tr key={entry.key} class={entry.isSet ? "set" : "muted"}>
                  <th scope="row">
                    <code>{entry.key}</code>
                  </th>
                  <td>
                    <Words text={entry.value} /> {entry.isSet ? null : <small>{t("settings.default")}</small>}
                  </td>
                </tr>
              ))}
        </Table>
      )}
    </section>
  );
}

export const page: Page = { feature: "settings", route: "settings", title: "settings", view: Settings };
