// The conversation begins: who the model is to be, and what it is asked. What it is told is what the product tells it.
const opening = OPENING;
msg.messages = [...opening.messages.slice(0, -1), { role: "user", content: msg.payload }];
msg.headers = { Authorization: "Bearer KEY", "Content-Type": "application/json" };
msg.payload = { ...opening, messages: msg.messages };
return msg;
