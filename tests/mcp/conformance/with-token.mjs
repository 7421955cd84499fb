// Adds the token of a sidecar to each request. The conformance suite cannot send one.
//
//   node with-token.mjs ADDRESS     the token is in REDFLOW_TOKEN
//
// A `Host` or `Origin` that names this program becomes the one of the sidecar. Every other one arrives as it was sent.

import http from "node:http";

const target = new URL(process.argv[2]);
const token = process.env.REDFLOW_TOKEN;

const server = http.createServer((request, response) => {
  const headers = { ...request.headers, authorization: `Bearer ${token}` };
  const own = new RegExp(`^(http://)?(localhost|127\\.0\\.0\\.1):${server.address().port}$`);
  for (const name of ["host", "origin"]) {
    if (headers[name]) headers[name] = headers[name].replace(own, `$1${target.host}`);
  }
  const options = { host: target.hostname, port: target.port, path: request.url, method: request.method, headers };
  const forwarded = http.request(options, (answer) => {
    response.writeHead(answer.statusCode, answer.rawHeaders);
    response.flushHeaders();
    answer.pipe(response);
  });
  forwarded.on("error", () => response.destroy());
  response.on("close", () => forwarded.destroy());
  request.pipe(forwarded);
});
server.listen(0, "127.0.0.1", () => console.log(`listening on http://127.0.0.1:${server.address().port}`));
