// Makes runs: so many, so many of them at any time. The same in every flow that is measured.
// In: an order over HTTP, or a run that has come to its end. Out: 1 the start of a run, 2 the answer to the order.
const start = () => ({ payload: "What is the tax on the order?" });
const report = (order) => {
    order.msg.payload = { ended: order.ended, wrong: order.wrong };
    context.set("order", undefined);
    return [null, order.msg];
};
if (msg.req) {
    const { runs, atOnce } = msg.payload;
    const order = { msg, runs, begun: Math.min(runs, atOnce), ended: 0, wrong: 0 };
    if (runs === 0) {
        return report(order);
    }
    context.set("order", order);
    for (let run = 0; run < order.begun; run += 1) {
        node.send([start(), null], false);
    }
    return;
}
const order = context.get("order");
order.ended += 1;
if (msg.payload !== "The tax is 231.90.") {
    order.wrong += 1;
}
if (order.begun < order.runs) {
    order.begun += 1;
    return [start(), null];
}
return order.ended === order.runs ? report(order) : null;
