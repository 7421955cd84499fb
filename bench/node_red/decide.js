// What the model wants: a tool it has (output 1), or to say the last word (output 2). Anything else is an error.
if (msg.statusCode !== 200) {
    throw new Error(`the model answers with ${msg.statusCode}`);
}
const said = msg.payload.choices[0].message.content;
const wanted = JSON.parse(said);
if (wanted.action === "final" && typeof wanted.message === "string") {
    msg.payload = wanted.message;
    return [null, msg];
}
if (wanted.action !== "tool" || wanted.tool !== "calculator" || typeof wanted.input?.expression !== "string") {
    throw new Error("the model wants something that is not there");
}
msg.messages.push({ role: "assistant", content: said });
msg.payload = wanted.input;
return [msg, null];
