// A network between a client and a sidecar, with all its faults: it cuts connections, lets them go dead without a word,
// and leads nowhere.

import { connect, createServer } from "node:net";

/** A network that leads nowhere yet. */
export async function network(t) {
  const links = new Set();
  const state = { port: undefined, swallows: false, budget: () => Infinity, made: 0 };
  const server = createServer((near) => {
    near.on("error", () => undefined);
    if (state.port === undefined) {
      near.destroy();
      return;
    }
    state.made += 1;
    const far = connect(state.port, "127.0.0.1");
    const link = { near, far, dead: state.swallows, left: state.budget() };
    links.add(link);
    const cut = () => {
      near.destroy();
      far.destroy();
      links.delete(link);
    };
    far.on("error", () => undefined);
    near.on("data", (data) => link.dead || far.write(data));
    far.on("data", (data) => {
      if (link.dead) {
        return;
      }
      const part = data.subarray(0, Math.min(data.length, link.left));
      link.left -= part.length;
      near.write(part, () => link.left === 0 && cut());
    });
    for (const end of [near, far]) {
      end.on("close", () => link.dead || cut());
    }
  });
  await new Promise((done) => server.listen(0, "127.0.0.1", done));
  const { port } = server.address();
  const cut = () => links.forEach(({ near, far }) => (near.destroy(), far.destroy()));
  t.after(() => {
    cut();
    server.close();
  });
  return {
    host: `127.0.0.1:${port}`,
    url: `http://127.0.0.1:${port}`,
    /** How many connections were made over it. */
    made: () => state.made,
    /** Where it leads from now on. */
    leadTo: (to) => (state.port = to),
    /** Cuts every connection there is. */
    cut,
    /** Every connection there is goes dead: open on both sides, and nothing gets through any more. */
    kill: () => links.forEach((link) => (link.dead = true)),
    /** Whether new connections are dead from the beginning. */
    swallow: (swallows) => (state.swallows = swallows),
    /** Every new connection is cut after as many bytes of answers as this says. */
    cutAfter: (budget) => (state.budget = budget),
  };
}
