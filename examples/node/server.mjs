// SPDX-License-Identifier: MIT
// A server on Node's own http: answers stream as server-sent events, and end when the client goes.
//   node server.mjs MODEL [PORT]
//   curl -N localhost:3000/chat -d '{"messages": [{"role": "user", "content": "Hello"}]}'
import {createServer} from 'node:http';
import {Model} from 'snapkv-cpp';

const [path, port = '3000'] = process.argv.slice(2);
if (path === undefined) {
  console.error('usage: node server.mjs MODEL [PORT]');
  process.exit(2);
}
const model = await Model.load(path, {maxTokens: 200});
const MOST_BYTES = 1 << 20;

async function readJson(request) {
  let body = '';
  for await (const piece of request.setEncoding('utf8')) {
    body += piece;
    if (body.length > MOST_BYTES) throw new SyntaxError(`the body has more than ${MOST_BYTES} bytes`);
  }
  return JSON.parse(body);
}

async function chat(request, response) {
  const gone = new AbortController();
  response.on('close', () => gone.abort());
  const {messages, options} = await readJson(request);
  const answer = model.chat(messages, {...options, stream: true, signal: gone.signal});
  const first = await answer.next();  // errors of the request come before the status is sent
  response.writeHead(200, {'content-type': 'text/event-stream', 'cache-control': 'no-cache'});
  for (let piece = first; !piece.done; piece = await answer.next()) {
    response.write(`data: ${JSON.stringify({text: piece.value})}\n\n`);
  }
  response.end(`data: ${JSON.stringify({stop_reason: answer.stopReason})}\n\n`);
}

function fail(response, error) {
  if (error.name === 'AbortError') return;  // nobody listens
  const ofClient = error instanceof SyntaxError || error.code === 'SNAPKV_ERROR_USAGE' ||
      error.code === 'SNAPKV_ERROR_CONTEXT';
  const body = JSON.stringify({error: {message: error.message, code: error.code, field: error.field}});
  if (response.headersSent) return void response.end(`data: ${body}\n\n`);
  response.writeHead(ofClient ? 400 : 500, {'content-type': 'application/json'}).end(body);
}

const server = createServer((request, response) => {
  if (request.method === 'POST' && request.url === '/chat') {
    chat(request, response).catch((error) => fail(response, error));
  } else {
    response.writeHead(404).end('POST /chat\n');
  }
});
server.listen(Number(port), '127.0.0.1', () => console.log(`http://127.0.0.1:${server.address().port}`));
