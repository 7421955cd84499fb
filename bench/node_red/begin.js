// Starts the conversation with the model, with the same prompt as the product.
const opening = OPENING;
msg.messages = [...opening.messages.slice(0, -1), { role: "user", content: msg.payload }];
msg.headers = { Authorization: "Bearer KEY", "Content-Type": "application/json" };
msg.payload = { ...opening, messages: msg.messages };
return msg;
