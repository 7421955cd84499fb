// Adds files to a knowledge base, one after the other. What became of each is shown until others are added, also after the page
// was left.

import { signal } from "@preact/signals";
import { useRef, useState } from "preact/hooks";
import { type DocumentStatus, RedflowError } from "@redflow/bindings";
import { api } from "../../app.js";
import { Act } from "../../parts/controls.js";
import { Drop } from "../../parts/drop.js";
import { environment } from "../../parts/environment.js";
import { Field } from "../../parts/fields.js";
import { Coded } from "../../parts/problem.js";
import { Name } from "../../parts/text.js";
import { formatPlace } from "../../router.js";
import { t, tOf } from "../../words.js";

/** The largest document that the sidecar takes. */
const MAX_BYTES = 32 * 1024 * 1024;
/** The most files that are listed. */
const MAX_SHOWN = 100;
const KINDS = ".md,.markdown,.txt,.text,.log,.rst,.html,.htm,.pdf,.csv,.tsv,.json,.jsonl,.ndjson";

interface Upload {
  id: number;
  base: string;
  file: string;
  status: DocumentStatus | "queued" | "adding" | "failed";
  passages?: number;
  error?: unknown;
}

const uploads = signal<readonly Upload[]>([]);
let lastId = 0;

/** Changes when a knowledge base was changed here, so that it must be read again. */
export const changes = signal(0);

/** The tags of a text with commas. */
export function tagsOf(text: string): string[] {
  return text.split(",").flatMap((tag) => tag.trim() || []);
}

async function addFiles(base: string, files: readonly File[], tags: readonly string[]): Promise<void> {
  const added = files.map((file): [Upload, File] => [{ id: (lastId += 1), base, file: file.name, status: "queued" }, file]);
  const isPending = ({ status }: Upload): boolean => status === "queued" || status === "adding";
  uploads.value = [...uploads.value.filter(isPending), ...added.map(([upload]) => upload)];
  for (const [upload, file] of added) {
    const put = (more: Partial<Upload>): void => {
      uploads.value = uploads.value.map((one) => (one.id === upload.id ? { ...one, ...more } : one));
    };
    put({ status: "adding" });
    try {
      if (file.size > MAX_BYTES) {
        throw new RedflowError({ code: "DOCUMENT_TOO_LARGE", message: t("kb.tooLarge") });
      }
      const { status, passages } = await api.addDocument(base, file.name, file, { tags });
      put({ status, passages });
    } catch (error) {
      put({ status: "failed", error });
    }
    changes.value += 1;
  }
}

/** The form, and what became of the files. Without a base it asks for the name of the knowledge base. */
export function AddFiles({ base }: { base: string | undefined }) {
  const [name, setName] = useState("");
  const [tags, setTags] = useState("");
  const input = useRef<HTMLInputElement>(null);
  const target = base ?? name.trim();
  const add = (files: readonly File[]): void => {
    // The browser says which field is empty.
    if (input.current?.form?.reportValidity() !== false) {
      void addFiles(target, files, tagsOf(tags));
    }
  };
  const shown = uploads.value.filter((upload) => upload.base === (base ?? upload.base)).toSorted((a, b) => Number(b.status === "failed") - Number(a.status === "failed"));
  return (
    <section aria-labelledby="kb-add">
      <h2 id="kb-add">{t("kb.add")}</h2>
      <Drop label={t("kb.add")} onFiles={add} onSubmit={() => input.current?.click()}>
        <p>{t("kb.add.what")}</p>
        <div class="filters">
          {base === undefined ? (
            <Field label={t("kb.name")} required maxLength={64} value={name} onText={setName} />
          ) : null}
          <Field label={t("kb.add.tags")} dir="auto" value={tags} onText={setTags} />
          <Act scope="deploy" kind="primary" type="submit" isOff={target === ""}>
            {t("kb.choose")}
          </Act>
          <input
            ref={input}
            hidden
            type="file"
            multiple
            accept={KINDS}
            aria-label={t("kb.choose")}
            onChange={(event: Event) => {
              const field = event.currentTarget as HTMLInputElement;
              add([...(field.files ?? [])]);
              // The same file can be chosen again.
              field.value = "";
            }}
          />
        </div>
      </Drop>
      <ul class="newest" aria-live="polite">
        {shown.slice(0, MAX_SHOWN).map((upload) => (
          <li key={upload.id}>
            {upload.passages === undefined ? (
              <Name text={upload.file} />
            ) : (
              <a href={formatPlace(["knowledge", upload.base], { document: upload.file })}>
                <Name text={upload.file} />
              </a>
            )}
            <span class={`badge upload-${upload.status}`}>{tOf("kb.status", upload.status)}</span>
            {upload.passages === undefined ? null : `${t("kb.passages")}: ${upload.passages}`}
            {upload.error === undefined ? null : <Coded {...environment.describeProblem(upload.error)} />}
          </li>
        ))}
      </ul>
      {shown.length > MAX_SHOWN ? <p class="muted">{t("more", { n: shown.length - MAX_SHOWN })}</p> : null}
    </section>
  );
}
