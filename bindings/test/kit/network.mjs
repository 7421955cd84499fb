// A TCP proxy between a client and a sidecar that cuts connections, freezes them and refuses them.

import { connect, createServer } from "node:net";

/** Starts a proxy that refuses connections until `forwardTo` names a port. */
export async function network(t) {
  const connections = new Set();
  const state = { port: undefined, frozen: false, budget: () => Infinity, count: 0 };
  const server = createServer((near) => {
    near.on("error", () => undefined);
    if (state.port === undefined) {
      near.destroy();
      return;
    }
    state.count += 1;
    const far = connect(state.port, "127.0.0.1");
    const connection = { near, far, frozen: state.frozen, bytesLeft: state.budget() };
    connections.add(connection);
    const cut = () => {
      near.destroy();
      far.destroy();
      connections.delete(connection);
    };
    far.on("error", () => undefined);
    near.on("data", (data) => {
      if (!connection.frozen) {
        far.write(data);
      }
    });
    far.on("data", (data) => {
      if (connection.frozen) {
        return;
      }
      const part = data.subarray(0, Math.min(data.length, connection.bytesLeft));
      connection.bytesLeft -= part.length;
      near.write(part, () => {
        if (connection.bytesLeft === 0) {
          cut();
        }
      });
    });
    for (const end of [near, far]) {
      end.on("close", () => {
        if (!connection.frozen) {
          cut();
        }
      });
    }
  });
  await new Promise((resolve) => {
    server.listen(0, "127.0.0.1", resolve);
  });
  const { port } = server.address();
  const cut = () => {
    for (const { near, far } of connections) {
      near.destroy();
      far.destroy();
    }
  };
  t.after(() => {
    cut();
    server.close();
  });
  return {
    host: `127.0.0.1:${port}`,
    url: `http://127.0.0.1:${port}`,
    /** How many connections it has forwarded. */
    count: () => state.count,
    /** Forwards new connections to this port. */
    forwardTo: (to) => {
      state.port = to;
    },
    /** Closes every open connection. */
    cut,
    /** Freezes every open connection: both sides stay open and no byte passes. */
    freeze: () => {
      for (const connection of connections) {
        connection.frozen = true;
      }
    },
    /** Freezes new connections from their start. */
    freezeNew: () => {
      state.frozen = true;
    },
    /** Lets new connections pass bytes again. */
    passNew: () => {
      state.frozen = false;
    },
    /** Cuts every new connection after as many bytes of responses as `budget` returns. */
    cutAfter: (budget) => {
      state.budget = budget;
    },
  };
}
