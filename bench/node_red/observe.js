// Sends the tool's result to the model. Replaces the headers, which are those of its last response.
const opening = OPENING;
msg.messages.push({ role: "user", content: JSON.stringify({ success: true, output: msg.payload }) });
msg.headers = { Authorization: "Bearer KEY", "Content-Type": "application/json" };
msg.payload = { ...opening, messages: msg.messages };
return msg;
