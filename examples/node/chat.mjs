// SPDX-License-Identifier: MIT
// Loads a model, asks it a question and prints the answer as it is written.
//   node chat.mjs MODEL [QUESTION]
import {Model} from 'snapkv-cpp';

const [path, question = 'Why is the sky blue?'] = process.argv.slice(2);
if (path === undefined) {
  console.error('usage: node chat.mjs MODEL [QUESTION]');
  process.exit(2);
}

const model = await Model.load(path, {
  temperature: 0,
  maxTokens: 100,
  onProgress: (phase, fraction) => console.error(`${phase} ${Math.round(100 * fraction)}%`),
});
console.error(`${model.info.name}: ${model.info.n_layer} layers, ${model.info.backend}`);

const answer = model.chat([{role: 'user', content: question}], {kvBudget: 1024, stream: true});
for await (const piece of answer) process.stdout.write(piece);
process.stdout.write('\n');

const {n_prompt: nPrompt, n_decoded: nDecoded, compression} = answer.stats;
console.error(`${nPrompt} tokens read, ${nDecoded} decoded, the cache ${compression.toFixed(1)} times smaller`);
