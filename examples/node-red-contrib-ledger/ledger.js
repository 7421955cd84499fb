// An ordinary node: it knows nothing of agents. `package.json` describes its operations.

module.exports = (RED) => {
  function LedgerNode(config) {
    RED.nodes.createNode(this, config);
    const records = [];
    this.on("input", (msg, send, done) => {
      if (msg.topic === "create") {
        const { title, amount } = msg.payload;
        records.push({ id: records.length + 1, title, amount });
        send({ ...msg, payload: records.at(-1) });
        done();
      } else if (msg.topic === "list") {
        send({ ...msg, payload: [...records] });
        done();
      } else {
        done(new Error(`the ledger cannot ${msg.topic}: use create or list`));
      }
    });
  }

  RED.nodes.registerType("ledger", LedgerNode);
};
