// Starts runs: a given number in all, and a given number at once. The same in every measured flow.
// Input: an order over HTTP, or the end of a run. Output 1: the start of a run; output 2: the response to the order.
const start = () => ({ payload: "What is the tax on the order?" });
const report = (order) => {
    order.msg.payload = { ended: order.ended, wrong: order.wrong };
    context.set("order", undefined);
    return [null, order.msg];
};
if (msg.req) {
    const { runs, atOnce } = msg.payload;
    const order = { msg, runs, started: Math.min(runs, atOnce), ended: 0, wrong: 0 };
    if (runs === 0) {
        return report(order);
    }
    context.set("order", order);
    for (let run = 0; run < order.started; run += 1) {
        node.send([start(), null], false);
    }
    return;
}
const order = context.get("order");
order.ended += 1;
if (msg.payload !== "The tax is 231.90.") {
    order.wrong += 1;
}
if (order.started < order.runs) {
    order.started += 1;
    return [start(), null];
}
return order.ended === order.runs ? report(order) : null;
