// The tool: evaluates an expression of numbers, + - * / and parentheses.
const { expression } = msg.payload;
if (typeof expression !== "string" || expression.length > 200) {
    throw new Error("not an expression");
}
const parts = expression.match(/[0-9.]+|[-+*/()]|[^ ]/g) ?? [];
let at = 0;
const value = () => {
    const part = parts[at++];
    if (part === "-") {
        return -value();
    }
    if (part === "(") {
        const inner = sum();
        if (parts[at++] !== ")") {
            throw new Error("a parenthesis is not closed");
        }
        return inner;
    }
    const number = Number(part);
    if (Number.isNaN(number)) {
        throw new Error(`${part} is not a number`);
    }
    return number;
};
const product = () => {
    let left = value();
    while (parts[at] === "*" || parts[at] === "/") {
        left = parts[at++] === "*" ? left * value() : left / value();
    }
    return left;
};
const sum = () => {
    let left = product();
    while (parts[at] === "+" || parts[at] === "-") {
        left = parts[at++] === "+" ? left + product() : left - product();
    }
    return left;
};
const result = sum();
if (at < parts.length) {
    throw new Error(`unexpected ${parts[at]}`);
}
msg.payload = { result, expression };
return msg;
