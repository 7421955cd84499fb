// The images that a person chooses in a chat window: checks them before anything is read, and reads them.

import { text } from "./text.mjs";

/** The formats of images that models take. */
export const IMAGE_TYPES = ["image/png", "image/jpeg", "image/gif", "image/webp"];

/** The most images of a message. */
const MAX_IMAGES = 4;

/** The most MiB of all images of a message. In Base64 they then leave room for a text: a message may have 4 MiB. */
const MAX_MIB = 2.9;

/** A file by its properties, which are known before it is read. */
export type ImageFile = Pick<File, "type" | "size">;

/** What is wrong with the chosen files, in the user's language. Undefined if they can be sent. */
export function imageProblem(files: readonly ImageFile[]): string | undefined {
  if (files.length > MAX_IMAGES) {
    return text("nodes.chat.tooMany", { most: MAX_IMAGES });
  }
  if (!files.every(({ type }) => IMAGE_TYPES.includes(type))) {
    return text("nodes.chat.notImage");
  }
  const bytes = files.reduce((sum, { size }) => sum + size, 0);
  return bytes <= MAX_MIB * 1024 * 1024 ? undefined : text("nodes.chat.tooLarge", { most: MAX_MIB });
}

/** The text of a message that has images only. The agent would give it the same one. */
export function imageLabels(count: number): string {
  return Array.from({ length: count }, (_, index) => `[picture ${index + 1}]`).join(" ");
}

/** Reads files as data URLs, in their order. Gives undefined if one cannot be read. */
export function readImages(files: readonly Blob[], done: (images: string[] | undefined) => void, read: string[] = []): void {
  const [first, ...rest] = files;
  if (first === undefined) {
    done(read);
    return;
  }
  const reader = new FileReader();
  reader.addEventListener("load", () => {
    const url = typeof reader.result === "string" ? reader.result : "";
    readImages(rest, done, [...read, url]);
  });
  reader.addEventListener("error", () => done(undefined));
  reader.readAsDataURL(first);
}
