// The pictures that a person chooses in a chat window: checks them before anything is read, and reads them.

import { text } from "./text.mjs";

/** The formats of pictures that models take. */
export const PICTURE_TYPES = ["image/png", "image/jpeg", "image/gif", "image/webp"];

/** The most pictures of a message. */
const MAX_PICTURES = 4;

/** The most MiB of all pictures of a message. In Base64 they then leave room for a text: a message may have 4 MiB. */
const MAX_MIB = 2.9;

/** A file by its properties, which are known before it is read. */
export type PictureFile = Pick<File, "type" | "size">;

/** What is wrong with the chosen files, in the user's language. Undefined if they can be sent. */
export function pictureProblem(files: readonly PictureFile[]): string | undefined {
  if (files.length > MAX_PICTURES) {
    return text("nodes.chat.tooMany", { most: MAX_PICTURES });
  }
  if (!files.every(({ type }) => PICTURE_TYPES.includes(type))) {
    return text("nodes.chat.notPicture");
  }
  const bytes = files.reduce((sum, { size }) => sum + size, 0);
  return bytes <= MAX_MIB * 1024 * 1024 ? undefined : text("nodes.chat.tooLarge", { most: MAX_MIB });
}

/** The text of a message that has pictures only. The agent would give it the same one. */
export function pictureLabels(count: number): string {
  return Array.from({ length: count }, (_, index) => `[picture ${index + 1}]`).join(" ");
}

/** Reads files as data URLs, in their order. Gives undefined if one cannot be read. */
export function readPictures(files: readonly Blob[], done: (images: string[] | undefined) => void, read: string[] = []): void {
  const [first, ...rest] = files;
  if (first === undefined) {
    done(read);
    return;
  }
  const reader = new FileReader();
  reader.addEventListener("load", () => {
    const url = typeof reader.result === "string" ? reader.result : "";
    readPictures(rest, done, [...read, url]);
  });
  reader.addEventListener("error", () => done(undefined));
  reader.readAsDataURL(first);
}
