// Handles the answer of the model: a tool call (output 1) or the final answer (output 2). Anything else is an error.
if (msg.statusCode !== 200) {
    throw new Error(`the model answers with ${msg.statusCode}`);
}
const content = msg.payload.choices[0].message.content;
const answer = JSON.parse(content);
if (answer.action === "final" && typeof answer.message === "string") {
    msg.payload = answer.message;
    return [null, msg];
}
if (answer.action !== "tool" || answer.tool !== "calculator" || typeof answer.input?.expression !== "string") {
    throw new Error("the model asks for an unknown action");
}
msg.messages.push({ role: "assistant", content });
msg.payload = answer.input;
return [msg, null];
