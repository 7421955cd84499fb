// A fake edit dialog: the fields of a template by their ids, and how Node-RED fills and reads them.

class Field {
  #value = "";
  indeterminate = false;
  checked = false;

  constructor(tag, id, type, choices) {
    [this.id, this.type] = [id, type];
    if (tag === "select") {
      this.options = choices.map((value) => ({ value }));
    }
  }

  get value() {
    return this.#value;
  }

  /** A select accepts only its own options. */
  set value(text) {
    const isValid = this.options === undefined || this.options.some(({ value }) => value === text);
    this.#value = isValid ? text : "";
  }

  append({ value }) {
    this.options?.push({ value });
  }

  closest() {
    return undefined;
  }

  addEventListener() {}

  replaceChildren() {}
}

/** The fields of the template in the html of a node. */
export function formOf(html) {
  const [, template] = /data-template-name="[^"]*">([\s\S]*?)<\/script>/.exec(html);
  const fields = [...template.matchAll(/<(input|select|textarea)\b([^>]*)>/g)].map(({ 0: whole, 1: tag, 2: attributes, index }) => {
    const attribute = (name) => new RegExp(`\\b${name}="([^"]*)"`).exec(attributes)?.[1] ?? "";
    const [content] = template.slice(index + whole.length).split("</select>");
    const choices = [...content.matchAll(/<option value="([^"]*)"/g)].map(([, value]) => value);
    return new Field(tag, attribute("id"), tag === "input" ? attribute("type") : tag, choices);
  });
  return { byId: (id) => fields.find((field) => field.id === id) ?? null };
}

/** Fills the fields as Node-RED does before `oneditprepare`. */
export function fill(form, node, prefix) {
  for (const name of Object.keys(node._def.defaults)) {
    const field = form.byId(`${prefix}-${name}`);
    if (field?.type === "checkbox") {
      field.checked = Boolean(node[name]);
    } else if (field !== null) {
      field.value = String(node[name] ?? "");
    }
  }
}

/** Reads the fields as Node-RED does after `oneditsave`. */
export function apply(form, node, prefix) {
  for (const name of Object.keys(node._def.defaults)) {
    const field = form.byId(`${prefix}-${name}`);
    const value = field?.type === "checkbox" ? field.checked : field?.value;
    // oxlint-disable-next-line eqeqeq -- Node-RED compares loosely here
    if (field !== null && node[name] != value && JSON.stringify(node[name]) !== JSON.stringify(value)) {
      node[name] = value;
    }
  }
}
