// A model of OpenAI's kind that says what it was told to say, and when. It is asked by the sidecar, never by a page.

import { once } from "node:events";
import { createServer } from "node:http";

/** Starts one. */
export async function model() {
  let says = [];
  let used = 0;
  let held = null;
  const asked = [];
  const server = createServer(async (request, response) => {
    const parts = [];
    for await (const part of request) {
      parts.push(part);
    }
    asked.push(JSON.parse(Buffer.concat(parts).toString() || "null"));
    const said = says[Math.min(used++, says.length - 1)] ?? "";
    if (held) {
      await new Promise((go) => held.push(go));
    }
    const content = typeof said === "string" ? said : JSON.stringify(said);
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
  });
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
  const letGo = (count = Infinity) => {
    for (const go of held?.splice(0, count) ?? []) {
      go();
    }
  };
  return {
    url: `http://127.0.0.1:${server.address().port}/v1`,
    /** What it was asked. */
    asked,
    /** What it says from now on: one after the other, and the last one again and again. A text goes out as it is. */
    says: (...answers) => {
      [says, used] = [answers, 0];
    },
    /** From now on its answers wait. */
    hold: () => {
      held ??= [];
    },
    /** How many answers wait. */
    waiting: () => held?.length ?? 0,
    /** Lets that many of those that wait go. */
    letGo,
    /** Lets all go, and later ones at once. */
    release: () => {
      letGo();
      held = null;
    },
    stop: () => {
      server.closeAllConnections();
      server.close();
    },
  };
}
