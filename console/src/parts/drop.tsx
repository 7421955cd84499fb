// A form that files can be dropped on.

import type { ComponentChildren } from "preact";
import { useState } from "preact/hooks";

interface DropProps {
  label?: string;
  onFiles: (files: readonly File[]) => void;
  onSubmit: () => void;
  children: ComponentChildren;
}

export function Drop({ label, onFiles, onSubmit, children }: DropProps) {
  const [isOver, setOver] = useState(false);
  return (
    <form
      class={`drop${isOver ? " over" : ""}`}
      aria-label={label}
      onSubmit={(event: Event) => {
        event.preventDefault();
        onSubmit();
      }}
      onDragOver={(event: DragEvent) => {
        event.preventDefault();
        setOver(true);
      }}
      onDragLeave={() => setOver(false)}
      onDrop={(event: DragEvent) => {
        event.preventDefault();
        setOver(false);
        onFiles([...(event.dataTransfer?.files ?? [])]);
      }}
    >
      {children}
    </form>
  );
}
