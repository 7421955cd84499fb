// The parts of Node-RED's editor that this plugin uses.

/** A node in the editor's model. */
interface EditorNode {
  id: string;
  type: string;
  z?: string;
  d?: boolean;
  name?: string;
  x?: number;
  y?: number;
  valid?: boolean;
  dirty?: boolean;
  changed?: boolean;
  /** Loaded when a dialog opens; dropped by a deploy. */
  credentials?: Record<string, unknown>;
  _def: { category?: string; label?: unknown; defaults: Record<string, EditorDefault>; credentials?: Record<string, EditorDefault>; set?: { module?: string } };
  [property: string]: unknown;
}

interface EditorDefault {
  value?: unknown;
  /** The type of a config node. */
  type?: string;
  validate?(this: EditorNode, value: unknown, options: object): boolean | string;
}

/** A wire in the editor's model. */
interface EditorLink {
  source: EditorNode;
  sourcePort: number;
  target: EditorNode;
}

/** A step of the undo history. */
interface EditorHistoryEvent {
  t: string;
  /** The ids of added nodes, or removed nodes. */
  nodes?: unknown[];
  changes?: Record<string, unknown>;
  /** The steps of a `multi`. */
  events?: EditorHistoryEvent[];
  dirty?: boolean;
}

interface EditorComms {
  subscribe(topic: string, listener: (topic: string, message: unknown) => void): void;
  unsubscribe(topic: string, listener: (topic: string, message: unknown) => void): void;
}

interface EditorRed {
  _(key: string, values?: Record<string, string | number>): string;
  nodes: {
    id(): string;
    node(id: string): EditorNode | undefined;
    eachNode(visit: (node: EditorNode) => boolean | void): void;
    eachConfig(visit: (node: EditorNode) => boolean | void): void;
    eachLink(visit: (link: EditorLink) => void): void;
    getNodeLinks(node: EditorNode | string, portType?: 0 | 1): EditorLink[];
    filterNodes(filter: { z?: string; type?: string }): EditorNode[];
    createCompleteNodeSet(options?: { credentials?: boolean }): Record<string, unknown>[];
    registerType(type: string, definition: object): void;
    workspace(id: string): { id: string; label: string; disabled?: boolean } | undefined;
    subflow(id: string): { in: EditorNode[] } | null | undefined;
    dirty(): boolean;
  };
  editor: {
    validateNode(node: EditorNode): boolean;
    edit(node: EditorNode, panel?: string): void;
    editJSON(options: { value: string; complete(text: string): void }): void;
  };
  view: {
    redraw(force?: boolean): void;
    redrawStatus(node: EditorNode): void;
    scale(): number;
    reveal(id: string, triggerHighlight?: boolean): void;
    focus(): void;
    annotations: { register(id: string, options: object): void };
  };
  history: {
    list(): EditorHistoryEvent[];
    peek(): EditorHistoryEvent | undefined;
    push(event: EditorHistoryEvent): void;
    replace(event: EditorHistoryEvent): void;
  };
  workspaces: { active(): string };
  hooks: { add(hook: string, listener: (event: any) => void): void };
  events: {
    on(event: string, listener: (...args: any[]) => void): void;
    off(event: string, listener: (...args: any[]) => void): void;
    emit(event: string, ...args: unknown[]): void;
  };
  comms: EditorComms;
  sidebar: {
    addTab(options: object): void;
    show(id: string): void;
  };
  actions: { add(id: string, handler: () => void, options?: object): void };
  keyboard: { add(scope: string, key: string, action: string): void };
  clipboard: { copyText(value: string, target: any, message: string): boolean };
  plugins: { registerPlugin(id: string, definition: object): void };
  notify(text: string | HTMLElement, options?: object): { close(): void };
  popover: { tooltip(target: any, content: string | (() => string)): unknown };
  settings: Record<string, unknown>;
  /** The language of the editor. */
  i18n?: { lang(): string };
  user?: { hasPermission(permission: string): boolean };
  statusBar?: { add(options: object): void };
}

declare const RED: EditorRed;

/** Node-RED's jQuery. Used for its widgets, and for requests, which carry the user's token; otherwise the DOM is used. */
declare const $: any;
