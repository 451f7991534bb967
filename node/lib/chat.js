// SPDX-License-Identifier: MIT
// What the command snapkv-cpp does: a chat with a model in the terminal.
'use strict';

const readline = require('node:readline');
const {Conversation} = require('./conversation.js');
const {SnapkvError} = require('./errors.js');
const {Model, options, version} = require('./index.js');

const USAGE = `usage: snapkv-cpp MODEL [--system TEXT] [--OPTION VALUE]...

Chats with a model: a GGUF file or a Hugging Face folder that has a chat template. Each line is a
message; Ctrl-C ends an answer, at the prompt the chat.
  /clear   forgets the conversation    /stats   tokens, seconds, bytes of the cache
  /exit    ends the chat, as Ctrl-D

  --system TEXT    the message before the conversation
  --help           this text
  --version        the version
`;

function helpText() {
  const rows = options().filter(({name}) => name !== 'model').map(({name, default: value, help}) =>
      `  --${name.replaceAll('_', '-')}`.padEnd(26) + help + (value && ` (${value})`));
  return `${USAGE}\nOptions, with their defaults:\n${rows.join('\n')}\n`;
}

function refuse(message) {
  throw new SnapkvError(message, 'SNAPKV_ERROR_USAGE');
}

// {model, system, given} of the command line.
function parse(args) {
  const parsed = {given: {}};
  for (let i = 0; i < args.length; ++i) {
    if (!args[i].startsWith('--')) {
      if (parsed.model !== undefined) refuse(`what is ${args[i]}? The model is ${parsed.model}`);
      parsed.model = args[i];
      continue;
    }
    const [name, ...joined] = args[i].slice(2).split('=');
    const value = joined.length > 0 ? joined.join('=') : args[++i];
    if (value === undefined) refuse(`--${name} needs a value`);
    if (name === 'system') parsed.system = value;
    else (parsed.given[`--${name}`] ??= []).push(value);
  }
  if (parsed.model === undefined) {
    refuse('which model? Name a GGUF file or a folder; --help lists the options');
  }
  return parsed;
}

async function answer(conversation, line) {
  const stop = new AbortController();
  const onInterrupt = () => stop.abort();
  process.once('SIGINT', onInterrupt);
  try {
    for await (const piece of conversation.say(line, {signal: stop.signal})) {
      process.stdout.write(piece);
    }
    process.stdout.write('\n');
  } catch (error) {
    if (error.name !== 'AbortError') throw error;
    process.stdout.write(' ... (stopped)\n');
  } finally {
    process.removeListener('SIGINT', onInterrupt);
  }
}

async function printStats(conversation) {
  const s = await conversation.stats();
  process.stdout.write(
      `${s.n_prompt} tokens read in ${s.prefill_seconds.toFixed(2)} s, ${s.n_decoded} written in ` +
      `${s.decode_seconds.toFixed(2)} s; cache ${(s.kv_bytes_used / 2 ** 20).toFixed(1)} MiB of ` +
      `${(s.kv_bytes_full / 2 ** 20).toFixed(1)} MiB\n`);
}

// Whether the chat goes on after a line.
async function obey(conversation, line) {
  if (line === '/exit') return false;
  if (line === '/clear') conversation.clear();
  else if (line === '/stats') await printStats(conversation);
  else if (line.startsWith('/')) process.stdout.write('/clear, /stats and /exit are the commands\n');
  else if (line !== '') await answer(conversation, line);
  return true;
}

async function chat({model: path, system, given}) {
  const isTerminal = process.stdin.isTTY && process.stdout.isTTY;
  const model = await Model.load(path, given);
  const conversation = new Conversation(model, {system});
  const lines = readline.createInterface(
      {input: process.stdin, output: isTerminal ? process.stdout : undefined, prompt: '> '});
  lines.on('SIGINT', () => process.emit('SIGINT') || lines.close());
  if (isTerminal) lines.prompt();
  for await (const line of lines) {
    if (!await obey(conversation, line.trim())) break;
    if (isTerminal) lines.prompt();
  }
  lines.close();
}

async function main(args) {
  if (args.includes('--help')) return void process.stdout.write(helpText());
  if (args.includes('--version')) return void process.stdout.write(`${version}\n`);
  await chat(parse(args));
}

module.exports = {main};
