// The sign-in. The address stays, so the page appears as soon as the session is there.

import { useEffect, useRef, useState } from "preact/hooks";
import { api, session } from "./app.js";
import { Problem } from "./parts/problem.js";
import { t } from "./words.js";

export function SignIn() {
  const [token, setToken] = useState("");
  const [error, setError] = useState<unknown>();
  const [isBusy, setBusy] = useState(false);
  const field = useRef<HTMLInputElement>(null);
  useEffect(() => field.current?.focus(), []);
  const send = async (): Promise<void> => {
    if (isBusy) {
      return;
    }
    setBusy(true);
    try {
      session.value = await api.signIn(token.trim());
    } catch (failure) {
      setError(failure);
      setBusy(false);
    }
  };
  return (
    <main class="plain sign-in">
      <h1>Redflow</h1>
      <form
        onSubmit={(event: Event) => {
          event.preventDefault();
          void send();
        }}
      >
        <label for="token">{t("signIn.token")}</label>
        <input
          id="token"
          ref={field}
          type="password"
          autocomplete="current-password"
          required
          value={token}
          onInput={(event: Event) => setToken((event.currentTarget as HTMLInputElement).value)}
        />
        <button type="submit" class="primary" disabled={token.trim() === ""} aria-busy={isBusy}>
          {t("signIn")}
        </button>
      </form>
      <p class="muted">
        {t("signIn.help")} <code>redflow token</code>
      </p>
      <Problem error={error} />
    </main>
  );
}
