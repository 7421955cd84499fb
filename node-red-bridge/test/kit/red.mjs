// A fake of the parts of Node-RED that the code under test uses. Its nodes record every call.

export class FakeNode {
  constructor(id, type = "agent-core", wires = [[], [], [], ["x"], ["y"]]) {
    Object.assign(this, { id, type, wires, sent: [], received: [], statuses: [], warnings: [], errors: [] });
  }
  send(message) {
    this.sent.push(message);
  }
  receive(message) {
    this.received.push(message);
    this.onInput?.(message);
  }
  status(status) {
    this.statuses.push(status);
  }
  warn(text) {
    this.warnings.push(text);
  }
  error(text) {
    this.errors.push(text);
  }
}

export function fakeRed(nodes = [], definitions = []) {
  let ids = 0;
  const byId = new Map(nodes.map((node) => [node.id, node]));
  const logged = [];
  const log = Object.fromEntries(
    ["info", "warn", "error", "debug"].map((level) => [level, (text) => logged.push(`${level}: ${text}`)]),
  );
  const published = [];
  return {
    byId,
    log,
    logged,
    published,
    comms: { publish: (...args) => published.push(args) },
    nodes: {
      getNode: (id) => byId.get(id) ?? null,
      eachNode: (visit) => definitions.forEach(visit),
      getCredentials: () => undefined,
    },
    settings: { get: () => undefined, available: () => true },
    util: { cloneMessage: (message) => ({ ...message }), generateId: () => `msg-${(ids += 1)}` },
  };
}

/** A session that records the posted messages. */
export class FakeSession {
  connected = true;
  posted = [];
  withdrawn = [];
  limits = { maxFrameBytes: 1e6, maxMessageBytes: 1_000, maxResultBytes: 100, maxValueDepth: 10 };
  post(type, rest, limit) {
    if (this.posted.length >= limit.count) {
      return undefined;
    }
    const entry = { type, rest, bytes: rest.length, seq: this.connected ? this.posted.length + 1 : 0 };
    this.posted.push({ entry, message: JSON.parse(`{"type":"${type}",${rest}`) });
    return entry;
  }
  withdraw(entry) {
    const isUnsent = entry.seq === 0;
    if (isUnsent) {
      this.withdrawn.push(entry);
      entry.seq = -1;
    }
    return isUnsent;
  }
  unacknowledged() {
    return this.posted.length - this.withdrawn.length;
  }
  get messages() {
    return this.posted.map(({ message }) => message);
  }
}
