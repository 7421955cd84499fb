// The page of a build without the console: signs in with a token and lists the newest runs. What comes from the
// sidecar becomes text nodes only.

const RUNS = 20;
const element = (id) => document.getElementById(id);

/** Calls the sidecar. The addresses are relative, so that the page works below another path. */
async function call(path, body) {
  const post = { method: "POST", headers: { "content-type": "application/json" }, body: JSON.stringify(body) };
  const response = await fetch(path, body === undefined ? {} : post);
  const answer = await response.json().catch(() => ({}));
  if (!response.ok) {
    throw Object.assign(new Error(answer.message ?? `The sidecar answered ${response.status}.`), { status: response.status });
  }
  return answer;
}

function row({ runId, name, agent, status, code, startedAt }) {
  const link = document.createElement("a");
  link.href = `api/runs/${encodeURIComponent(runId)}`;
  link.append(runId);
  const state = code === undefined ? status : `${status} (${code})`;
  const cells = [link, name || agent.nodeId, state, new Date(startedAt).toLocaleString()].map((content) => {
    const cell = document.createElement("td");
    cell.append(content);
    return cell;
  });
  const line = document.createElement("tr");
  line.append(...cells);
  return line;
}

async function show(session) {
  const { runs } = await call(`api/runs?limit=${RUNS}`);
  element("name").textContent = `You are signed in with the token ${session.name}.`;
  element("runs").replaceChildren(...runs.map(row));
  element("empty").hidden = runs.length > 0;
  element("sign-in").hidden = true;
  element("signed-in").hidden = false;
}

/** Does it, and shows why it failed. */
async function attempt(work) {
  element("problem").textContent = "";
  try {
    await work();
  } catch (error) {
    element("problem").textContent = error.message;
  }
}

element("sign-in").addEventListener("submit", (event) => {
  event.preventDefault();
  const token = element("token").value;
  element("token").value = "";
  attempt(async () => show(await call("sign-in", { token })));
});

element("sign-out").addEventListener("click", () =>
  attempt(async () => {
    // The sidecar answers with a redirect to this page.
    const { type, status } = await fetch("api/sign-out", { method: "POST", redirect: "manual" });
    if (type !== "opaqueredirect") {
      throw new Error(`The sidecar answered ${status}. You are still signed in.`);
    }
    element("signed-in").hidden = true;
    element("sign-in").hidden = false;
  }),
);

attempt(async () => {
  try {
    await show(await call("api/session"));
  } catch (error) {
    element("sign-in").hidden = false;
    if (error.status !== 401) {
      throw error;
    }
  }
});
