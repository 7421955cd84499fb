// A fake OpenAI model with answers and delays that the test controls. The sidecar calls it, never a page.

import { once } from "node:events";
import { createServer } from "node:http";

/** Starts a fake model. */
export async function fakeModel() {
  let answers = [];
  let used = 0;
  let held = null;
  const requests = [];
  const handle = async (request, response) => {
    const parts = [];
    for await (const part of request) {
      parts.push(part);
    }
    requests.push(JSON.parse(Buffer.concat(parts).toString() || "null"));
    const answer = answers[Math.min(used++, answers.length - 1)] ?? "";
    if (held) {
      await new Promise((resolve) => held.push(resolve));
    }
    const content = typeof answer === "string" ? answer : JSON.stringify(answer);
    response.writeHead(200, { "content-type": "application/json" });
    response.end(
      JSON.stringify({
        id: "c",
        object: "chat.completion",
        created: 1,
        model: "gpt-4.1-mini",
        choices: [{ index: 0, finish_reason: "stop", message: { role: "assistant", content } }],
        usage: { prompt_tokens: 11, completion_tokens: 7, total_tokens: 18 },
      }),
    );
  };
  const server = createServer((request, response) => void handle(request, response));
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
  const releaseSome = (count = Infinity) => {
    for (const resolve of held?.splice(0, count) ?? []) {
      resolve();
    }
  };
  return {
    url: `http://127.0.0.1:${server.address().port}/v1`,
    /** The bodies of its requests. */
    requests,
    /** Sets the next answers; the last one repeats. A text is sent as it is. */
    setAnswers: (...next) => {
      [answers, used] = [next, 0];
    },
    /** Holds back answers from now on. */
    hold: () => {
      held ??= [];
    },
    /** How many answers are held back. */
    waiting: () => held?.length ?? 0,
    /** Sends this many of the held answers. */
    releaseSome,
    /** Sends all held answers, and later ones at once. */
    release: () => {
      releaseSome();
      held = null;
    },
    stop: () => {
      server.closeAllConnections();
      server.close();
    },
  };
}
