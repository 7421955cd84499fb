// The tokens: made, shown once, and removed. An administrator can also let another browser in.

import { useState } from "preact/hooks";
import type { NewToken, Scope, SignInCode } from "@redflow/bindings";
import { allows, api, copy, sayFailure } from "../../app.js";
import { Act, Confirm, Dialog, Reading } from "../../parts/controls.js";
import { Choice, Field } from "../../parts/fields.js";
import { useLoad } from "../../parts/load.js";
import { Problem } from "../../parts/problem.js";
import { Table } from "../../parts/table.js";
import { Name } from "../../parts/text.js";
import { formatClock, t } from "../../words.js";

/** The token of the data directory. `redflow token --rotate` replaces it. */
const MAIN = "main";
const SCOPES: readonly Scope[] = ["read", "run", "deploy", "admin"];

export function Tokens() {
  const isAllowed = allows("admin");
  const { value, error, again } = useLoad(async () => (isAllowed ? api.tokens() : undefined), [isAllowed]);
  const [removed, setRemoved] = useState<string | undefined>();
  const [code, setCode] = useState<SignInCode | undefined>();
  const remove = async (name: string): Promise<void> => {
    await api.removeToken(name);
    again();
  };
  const letIn = async (): Promise<void> => {
    try {
      setCode(await api.signInCode());
    } catch (failure) {
      sayFailure(failure);
    }
  };
  return (
    <section aria-labelledby="settings-tokens">
      <div class="head">
        <h2 id="settings-tokens">{t("tokens")}</h2>
        <Act scope="admin" onClick={() => void letIn()}>
          {t("tokens.letIn")}
        </Act>
      </div>
      {isAllowed && value === undefined && error === undefined ? <Reading /> : null}
      <Problem error={error} onRetry={again} />
      {value === undefined ? null : (
        <Table label={t("tokens")} heads={[t("token.name"), t("token.scopes"), t("token.remove")]}>
            {value.tokens.map(({ name, scopes, isOwn }) => (
              <tr key={name}>
                <th scope="row">
                  <Name text={name} /> {isOwn ? <small class="muted">{t("token.own")}</small> : null}
                </th>
                <td>{scopes.join(", ")}</td>
                <td>
                  {name === MAIN ? (
                    <code>redflow token --rotate</code>
                  ) : (
                    <Act scope="admin" kind="danger" label={t("token.remove.of", { name })} onClick={() => setRemoved(name)}>
                      {t("token.remove")}
                    </Act>
                  )}
                </td>
              </tr>
            ))}
        </Table>
      )}
      <MakeToken onMade={again} />
      {removed === undefined ? null : (
        <Confirm scope="admin" title={t("token.remove.of", { name: removed })} yes={t("token.remove")} act={() => remove(removed)} onClose={() => setRemoved(undefined)}>
          {t("token.remove.ask")}
        </Confirm>
      )}
      {code === undefined ? null : <LetIn code={code} onClose={() => setCode(undefined)} />}
    </section>
  );
}

function LetIn({ code, onClose }: { code: SignInCode; onClose: () => void }) {
  // Relative to the page, so that it holds below a path too.
  const address = new URL(code.path.replace(/^\//, ""), window.location.href.replace(/#.*$/, "")).href;
  return (
    <Dialog title={t("tokens.letIn")} onClose={onClose}>
      <p>{t("tokens.letIn.what", { at: formatClock(code.expiresAt) })}</p>
      <pre class="secret" tabIndex={0} aria-label={t("tokens.letIn")}>
        {address}
      </pre>
      <button type="button" class="primary" onClick={() => void copy(address)}>
        {t("copy")}
      </button>
    </Dialog>
  );
}

function MakeToken({ onMade }: { onMade: () => void }) {
  const [name, setName] = useState("");
  const [scope, setScope] = useState<Scope>("read");
  const [made, setMade] = useState<NewToken | undefined>();
  const [error, setError] = useState<unknown>();
  const make = async (): Promise<void> => {
    setError(undefined);
    try {
      setMade(await api.addToken({ name: name.trim(), scopes: SCOPES.slice(0, SCOPES.indexOf(scope) + 1) }));
      setName("");
      onMade();
    } catch (failure) {
      setError(failure);
    }
  };
  return (
    <>
      <form
        class="filters"
        aria-label={t("token.make")}
        onSubmit={(event: Event) => {
          event.preventDefault();
          void make();
        }}
      >
        <Field label={t("token.name")} required maxLength={64} value={name} onText={setName} />
        <Choice label={t("token.may")} value={scope} options={SCOPES.map((one) => [one, one])} onChoose={setScope} />
        <Act scope="admin" type="submit" kind="primary" isOff={name.trim() === ""}>
          {t("token.make")}
        </Act>
      </form>
      <Problem error={error} />
      {made === undefined ? null : (
        <Dialog title={t("token.made", { name: made.name })} onClose={() => setMade(undefined)}>
          <p>{t("token.once")}</p>
          <pre class="secret" tabIndex={0} aria-label={t("tokens")}>
            {made.token}
          </pre>
          <button type="button" class="primary" onClick={() => void copy(made.token)}>
            {t("copy")}
          </button>
        </Dialog>
      )}
    </>
  );
}
