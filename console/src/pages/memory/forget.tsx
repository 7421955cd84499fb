// Forgets the data of a user or a session.

import { useState } from "preact/hooks";
import type { ForgetAnswer } from "@redflow/bindings";
import { api } from "../../app.js";
import { Act, Dialog } from "../../parts/controls.js";
import { Choice, Field, Tick } from "../../parts/fields.js";
import { Problem } from "../../parts/problem.js";
import { Words } from "../../parts/text.js";
import { t } from "../../words.js";
import { changes } from "./entry.js";

type Owner = "user" | "session";

/** The button, and the dialog that asks for the name twice. */
export function Forget() {
  const [isOpen, setOpen] = useState(false);
  return (
    <>
      <Act scope="admin" kind="danger" onClick={() => setOpen(true)}>
        {t("forget")}
      </Act>
      {isOpen ? <ForgetDialog onClose={() => setOpen(false)} /> : null}
    </>
  );
}

function ForgetDialog({ onClose }: { onClose: () => void }) {
  const [owner, setOwner] = useState<Owner>("user");
  const [name, setName] = useState("");
  const [again, setAgain] = useState("");
  const [runs, setRuns] = useState(false);
  const [isBusy, setBusy] = useState(false);
  const [error, setError] = useState<unknown>();
  const [answer, setAnswer] = useState<ForgetAnswer | undefined>();
  const forget = async (): Promise<void> => {
    setBusy(true);
    setError(undefined);
    try {
      setAnswer(await api.forget({ owner: owner === "user" ? { user: name } : { session: name }, runs }));
      changes.value += 1;
    } catch (failure) {
      setError(failure);
    }
    setBusy(false);
  };
  return (
    <Dialog title={t("forget")} onClose={onClose}>
      <p>{t("forget.what")}</p>
      <form
        class="stack"
        aria-label={t("forget")}
        onSubmit={(event: Event) => {
          event.preventDefault();
          void forget();
        }}
      >
        <Choice
          label={t("forget.whose")}
          value={owner}
          options={[
            ["user", t("entry.user")],
            ["session", t("entry.session")],
          ]}
          onChoose={setOwner}
        />
        <Field label={t("token.name")} required value={name} onText={setName} />
        <Field label={t("forget.again")} required value={again} onText={setAgain} />
        <Tick label={t("forget.runs")} isOn={runs} onTick={setRuns} />
        <Act scope="admin" kind="danger" type="submit" isBusy={isBusy} isOff={name === "" || name !== again}>
          {t("forget")}
        </Act>
      </form>
      <Problem error={error} />
      <div role="status">
        {answer === undefined ? null : (
          <>
            <p>{t("forget.done", { ...answer.forgotten })}</p>
            {answer.problems.length === 0 ? null : <p>{t("forget.problems")}</p>}
            {answer.problems.map((problem) => (
              <p key={problem} class="problem">
                <Words text={problem} />
              </p>
            ))}
          </>
        )}
      </div>
    </Dialog>
  );
}
