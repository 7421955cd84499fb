// Images in the chat window: which ones it takes, and that the model gets them once.

import assert from "node:assert/strict";

import { example, withRuntime } from "./dialogs.mjs";
import { model } from "./flows.mjs";

/** The image of the example: a display that shows 42. */
const [, PNG] = /data:image\/png;base64,([A-Za-z0-9+/=]+)/.exec(JSON.stringify(example("16-images")));

/** The most bytes of the images of a message. */
const MOST_BYTES = Math.floor(2.9 * 1024 * 1024);

const image = (bytes = Buffer.from(PNG, "base64")) => ({ name: "display.png", mimeType: "image/png", buffer: bytes });

/** A chat with the agent of the example, and a model that takes images. */
function flow(fixture) {
  const vision = { ...model(fixture, "rf07-tab", 140, 100), capabilities: { vision: true }, wires: [["rf07-agent"]] };
  const chat = { id: "chat", type: "chat-node", z: "rf07-tab", name: "Chat", maxHistory: 100, x: 140, y: 460, wires: [["rf07-agent"]] };
  const [agent] = withRuntime(fixture, "07-ai-agent").filter(({ id }) => id === "rf07-agent");
  const rest = withRuntime(fixture, "07-ai-agent").filter(({ type }) => type === "tab" || type === "redflow-runtime");
  return [...rest, { ...agent, tools: [], wires: [["chat"], []] }, vision, chat];
}

/** The text and the images of the last message in a request. */
function lastMessage({ messages }) {
  const parts = messages.at(-1).content;
  const images = parts.filter(({ type }) => type === "image_url").map(({ image_url: { url } }) => url);
  return { text: parts.find(({ type }) => type === "text").text, images };
}

export async function chatImages(fixture, t) {
  const editor = await fixture.deployAndOpen(t, flow(fixture));
  await editor.press("chat");
  const window = editor.page.locator(".redflow-chat");
  await window.waitFor();
  const [field, files] = [window.getByRole("textbox"), window.locator("input[type=file]")];
  const [log, choose] = [window.getByRole("log"), window.getByRole("button", { name: /^Images/ })];
  const asked = fixture.model.requests.length;
  const requests = () => fixture.model.requests.slice(asked);

  const refused = [
    [Array.from({ length: 5 }, () => image()), /at most 4 images/],
    [[{ name: "a.svg", mimeType: "image/svg+xml", buffer: Buffer.from("<svg/>") }], /Only PNG, JPEG, GIF and WebP/],
    [[image(Buffer.alloc(MOST_BYTES + 1))], /2\.9 MiB together/],
  ];
  for (const [chosen, reason] of refused) {
    await files.setInputFiles(chosen);
    await editor.waitForText(window.getByRole("status"), reason);
    assert.equal(await choose.innerText(), "Images…");
  }

  // Two presses at once send one message.
  fixture.model.setAnswers("It shows 42.");
  await files.setInputFiles([image(), image()]);
  assert.equal(await choose.innerText(), "Images: 2");
  assert.equal(await window.getByRole("status").count(), 0, "the reason is gone");
  await editor.screenshot("chat-images");
  await field.fill("Read the display.");
  await window.locator("form").evaluate((form) => {
    form.requestSubmit();
    form.requestSubmit();
  });
  await editor.waitForText(log, /Read the display\.[\s\S]*It shows 42\./);
  assert.deepEqual([await field.inputValue(), await choose.innerText()], ["", "Images…"]);
  const url = `data:image/png;base64,${PNG}`;
  assert.deepEqual(requests().map(lastMessage), [{ text: "Read the display.", images: [url, url] }]);

  // An image without a text.
  fixture.model.setAnswers("It is a display.");
  await files.setInputFiles([image()]);
  await window.getByRole("button", { name: "Send" }).click();
  await editor.waitForText(log, /\[picture 1\][\s\S]*It is a display\./);
  assert.deepEqual(lastMessage(requests()[1]), { text: "[picture 1]", images: [url] });

  // The agent finds out that a file is no image.
  await files.setInputFiles([image(Buffer.from("hello"))]);
  await field.fill("And this?");
  await field.press("Enter");
  await editor.waitForText(log, /And this\?[\s\S]*IMAGE_INVALID/);
  assert.equal((await log.innerText()).match(/Read the display\./g).length, 1);
  assert.equal(requests().length, 2);
}
