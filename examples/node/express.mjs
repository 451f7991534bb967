// SPDX-License-Identifier: MIT
// An Express server that reads a document once and streams answers to questions about it.
//   npm install express; node express.mjs MODEL DOCUMENT [PORT]
//   curl -N localhost:3000/ask -H 'content-type: application/json' -d '{"question": "Who is the narrator?"}'
import {readFile} from 'node:fs/promises';
import express from 'express';
import {Model} from 'snapkv-cpp';

const [path, documentPath, port = '3000'] = process.argv.slice(2);
if (documentPath === undefined) {
  console.error('usage: node express.mjs MODEL DOCUMENT [PORT]');
  process.exit(2);
}
const model = await Model.load(path, {maxTokens: 60, temperature: 0, stop: '\n'});
const document = await model.prefill(await readFile(documentPath, 'utf8'));

const app = express();
app.use(express.json({limit: '1mb'}));

app.post('/ask', async (request, response, next) => {
  const gone = new AbortController();
  response.on('close', () => gone.abort());
  try {
    const question = `\n${request.body.question}`;
    const answer = document.ask(question, {kvBudget: 512, stream: true, signal: gone.signal});
    response.type('text/plain');
    for await (const piece of answer) response.write(piece);
    response.end();
  } catch (error) {
    if (error.name !== 'AbortError') next(error);
  }
});

app.use((error, _request, response, _next) => {
  const status = error.status ?? (error.code === 'SNAPKV_ERROR_USAGE' ? 400 : 500);
  if (response.headersSent) response.end();
  else response.status(status).json({error: {message: error.message, code: error.code, field: error.field}});
});

const server = app.listen(Number(port), '127.0.0.1', () =>
    console.log(`http://127.0.0.1:${server.address().port}`));
