// The model hears what the tool gave, and is asked again. The headers are those of its last answer: not to be sent.
const opening = OPENING;
msg.messages.push({ role: "user", content: JSON.stringify({ success: true, output: msg.payload }) });
msg.headers = { Authorization: "Bearer KEY", "Content-Type": "application/json" };
msg.payload = { ...opening, messages: msg.messages };
return msg;
