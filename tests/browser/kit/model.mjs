// A fake OpenAI model with answers and delays that the test controls. The sidecar calls it, never a page.

import { once } from "node:events";
import { createServer } from "node:http";

/** The tokens of every answer. */
const USAGE = { prompt_tokens: 11, completion_tokens: 7, total_tokens: 18 };

/** Starts a fake model. */
export async function fakeModel() {
  let answers = [];
  let used = 0;
  let held = null;
  let holdsWords = false;
  const requests = [];
  const keys = [];
  const untilReleased = async () => {
    if (held) {
      await new Promise((resolve) => held.push(resolve));
    }
  };
  /** Sends an answer word by word. With `holdWords` it continues with one word for each release. */
  const stream = async (content, response, withUsage) => {
    response.writeHead(200, { "content-type": "text/event-stream" });
    const sendChunk = (rest) => {
      const chunk = { id: "c", object: "chat.completion.chunk", created: 1, model: "gpt-4.1-mini", ...rest };
      response.write(`data: ${JSON.stringify(chunk)}\n\n`);
    };
    const send = (delta, finish_reason = null) => sendChunk({ choices: [{ index: 0, delta, finish_reason }] });
    if (!holdsWords) {
      await untilReleased();
    }
    for (const word of content.match(/\S+\s*/g) ?? []) {
      if (holdsWords) {
        await untilReleased();
      }
      send({ role: "assistant", content: word });
    }
    send({}, "stop");
    if (withUsage) {
      sendChunk({ choices: [], usage: USAGE });
    }
    response.end("data: [DONE]\n\n");
  };
  const handle = async (request, response) => {
    if (request.method === "GET") {
      const isList = request.url === "/v1/models";
      keys.push(request.headers.authorization ?? "");
      response.writeHead(isList ? 200 : 404, { "content-type": "application/json" });
      const models = [{ id: "gpt-4.1-mini", object: "model", owned_by: "test" }, { id: "small <b>", object: "model", owned_by: "test" }];
      response.end(JSON.stringify(isList ? { object: "list", data: models } : {}));
      return;
    }
    const parts = [];
    for await (const part of request) {
      parts.push(part);
    }
    const body = JSON.parse(Buffer.concat(parts).toString() || "null");
    // The test of a model asks for a word that only the schema has.
    const word = body?.response_format?.json_schema?.schema?.properties?.code?.enum?.[0];
    requests.push(body);
    const answer = word !== undefined ? { code: word } : (answers[Math.min(used++, answers.length - 1)] ?? "");
    const content = typeof answer === "string" ? answer : JSON.stringify(answer);
    if (body?.stream) {
      return stream(content, response, body.stream_options?.include_usage === true);
    }
    await untilReleased();
    response.writeHead(200, { "content-type": "application/json" });
    response.end(
      JSON.stringify({
        id: "c",
        object: "chat.completion",
        created: 1,
        model: "gpt-4.1-mini",
        choices: [{ index: 0, finish_reason: "stop", message: { role: "assistant", content } }],
        usage: USAGE,
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
    /** The keys of the requests for its list of models. */
    keys,
    /** Sets the next answers; the last one repeats. A text is sent as it is. */
    setAnswers: (...next) => {
      [answers, used] = [next, 0];
    },
    /** Holds back answers from now on. */
    hold: () => {
      [held, holdsWords] = [held ?? [], false];
    },
    /** Holds back each word of streamed answers from now on. */
    holdWords: () => {
      [held, holdsWords] = [held ?? [], true];
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
