// As much of Node-RED as the parts under test ask for: nodes that take note of what is done with them.

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
  const told = [];
  return {
    byId,
    log,
    logged,
    told,
    comms: { publish: (...args) => told.push(args) },
    nodes: {
      getNode: (id) => byId.get(id) ?? null,
      eachNode: (visit) => definitions.forEach(visit),
      getCredentials: () => undefined,
    },
    util: { cloneMessage: (message) => ({ ...message }), generateId: () => `msg-${(ids += 1)}` },
  };
}

/** A conversation that notes what is posted. */
export class FakeConversation {
  connected = true;
  posted = [];
  takenBack = [];
  limits = { maxFrameBytes: 1e6, maxMessageBytes: 1_000, maxResultBytes: 100, maxValueDepth: 10 };
  post(type, rest, room) {
    if (this.posted.length >= room.count) {
      return undefined;
    }
    const entry = { type, rest, bytes: rest.length, seq: this.connected ? this.posted.length + 1 : 0 };
    this.posted.push({ entry, message: JSON.parse(`{"type":"${type}",${rest}`) });
    return entry;
  }
  takeBack(entry) {
    const waits = entry.seq === 0;
    if (waits) {
      this.takenBack.push(entry);
      entry.seq = -1;
    }
    return waits;
  }
  untaken() {
    return this.posted.length - this.takenBack.length;
  }
  get messages() {
    return this.posted.map(({ message }) => message);
  }
}
