// Fields of forms: a text and a choice, each with its label.

/** The value of the field that an event is about. */
export function valueOf(event: Event): string {
  return (event.currentTarget as HTMLInputElement | HTMLSelectElement | HTMLTextAreaElement).value;
}

interface FieldProps {
  label: string;
  value: string;
  class?: string;
  type?: "search";
  /** The key `/` goes to the field that has it. */
  "data-filter"?: "" | undefined;
  /** `auto` for words of people, which may run from right to left. */
  dir?: "auto";
  required?: boolean;
  maxLength?: number;
  /** Called for each letter. */
  onText?: (text: string) => void;
  /** Called when the user leaves the field, or presses Enter. */
  onDone?: (text: string) => void;
}

/** A line of text. */
export function Field({ label, class: name, type, onText, onDone, ...more }: FieldProps) {
  // Preact has one type of properties for each type of field.
  const kind = { type: type ?? "text" } as { type: "search" };
  return (
    <label class={name}>
      {label}
      <input {...more} {...kind} onInput={(event: Event) => onText?.(valueOf(event))} onChange={(event: Event) => onDone?.(valueOf(event).trim())} />
    </label>
  );
}

/** A value that can be chosen, with its text. */
export type Option<Value extends string = string> = readonly [value: Value, text: string];

interface ChoiceProps<Value extends string> {
  label: string;
  "data-filter"?: "";
  value: string;
  options: readonly Option<Value>[];
  onChoose: (value: Value) => void;
}

/** One of some values. */
export function Choice<Value extends string>({ label, value, options, onChoose, ...more }: ChoiceProps<Value>) {
  return (
    <label>
      {label}
      <select {...more} value={value} onChange={(event: Event) => onChoose(valueOf(event) as Value)}>
        {options.map(([name, text]) => (
          <option key={name} value={name}>
            {text}
          </option>
        ))}
      </select>
    </label>
  );
}

/** A choice between yes and no. */
export function Tick({ label, isOn, onTick }: { label: string; isOn: boolean; onTick: (isOn: boolean) => void }) {
  return (
    <label class="tick">
      <input type="checkbox" checked={isOn} onChange={(event: Event) => onTick((event.currentTarget as HTMLInputElement).checked)} />
      {label}
    </label>
  );
}
