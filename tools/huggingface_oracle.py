#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""huggingface_oracle.py: token ids of Hugging Face's tokenizers (the Rust library's Python package).

  tools/huggingface_oracle.py record OUT.json
      trains small vocabularies, gives each a set of components, and writes tokenizer.json files,
      texts, ids and decoded texts: tests/text/golden/huggingface.json
  tools/huggingface_oracle.py ids TOKENIZER.json < TEXTS > IDS
      one JSON string per line in, one list of ids per line out, as `snapkv tokenize --json-lines`
  tools/huggingface_oracle.py texts COUNT [SEED] > TEXTS
      random texts for that, of characters that Unicode 14 has

Needs the package `tokenizers` (0.23.1 recorded the file), but for `texts`.
"""
import json
import random
import sys
import unicodedata

TRAINING = """The quick brown fox jumps over the lazy dog. It was the best of times, it was the worst
of times; don't you think? Numbers: 1234567, 3.14, 42. Tabs\tand  spaces   and newlines.
Größe, Übermut, naïve café, élève. Быстрая лиса и ленивая собака. 日本語のテキスト。中文字符。
def main(argc, argv): return argc + 1 if argv else None  # comment
""" * 4

HARD = ["", " ", "  ", "\n", "\t \n", " a", "a ", "  a  b   c    ", "don't can't I'LL IT'S", "'ſ x'K",
        "1234567 12 1 0", "١٢٣ ½ ² Ⅷ", "3.14,42;7", "camelCase HTTPServer", "Größe naïve café",
        "e\u0301 \u212b ﬁ ①", "\u1100\u1161\u11a8", "日本語。中文", "🙂👩‍👩‍👧", "a\u00a0b\u3000c\u180ed",
        "\r\n\r\nx\n\n \n", "x \n", "\u2028y", "!?...--=>(a+b)", "</s> <s> x", "<mask>  x", "x  <mask>",
        "x <mask> <mask> y", "word wordy sword word.", "NORM norm Norm", "ＮＯＲＭ", "<0x0A> ▁▁ ▁x",
        "\x00\x01\x7f", "[CLS] a [SEP]", "user<|end|>user", "<|end|> <|end|>", "éÉ ÀÀ", "a,b.c!d"]


def random_texts(count, seed):
    rng = random.Random(seed)
    words = TRAINING.split(" ")[:60] + HARD
    for _ in range(count):
        parts = []
        for _ in range(rng.randrange(1, 16)):
            if rng.random() < 0.7:
                parts.append(rng.choice(words) + (" " if rng.random() < 0.6 else ""))
                continue
            top = rng.choice([0x80, 0x250, 0x3000, 0xd800, 0x20000, 0x110000])
            codes = [rng.randrange(top) for _ in range(rng.randrange(1, 6))]
            parts.append("".join(chr(c) for c in codes
                                 if unicodedata.category(chr(c)) not in ("Cn", "Cs")))
        yield "".join(parts)


def build():
    """Returns {name: tokenizer}."""
    from tokenizers import (AddedToken, Regex, Tokenizer, decoders, models, normalizers,
                            pre_tokenizers, processors, trainers)

    def bpe(pre, normalizer=None, size=330, alphabet=(), decoder=None, specials=(), **options):
        tokenizer = Tokenizer(models.BPE(**options))
        if normalizer is not None:
            tokenizer.normalizer = normalizer
        tokenizer.pre_tokenizer = pre
        trainer = trainers.BpeTrainer(vocab_size=size, initial_alphabet=list(alphabet),
                                      show_progress=False, special_tokens=list(specials))
        tokenizer.train_from_iterator([TRAINING], trainer)
        if decoder is not None:
            tokenizer.decoder = decoder
        return tokenizer

    byte_level = pre_tokenizers.ByteLevel.alphabet()
    one = {}
    one["byte-level"] = bpe(pre_tokenizers.ByteLevel(add_prefix_space=True), alphabet=byte_level,
                            decoder=decoders.ByteLevel())
    one["byte-level, steps after it"] = bpe(
        pre_tokenizers.Sequence([pre_tokenizers.Punctuation("contiguous"),
                                 pre_tokenizers.ByteLevel(add_prefix_space=False),
                                 pre_tokenizers.Digits(individual_digits=False),
                                 pre_tokenizers.Split(Regex("[0-9][0-9][0-9]"), "isolated")]),
        alphabet=byte_level, decoder=decoders.ByteLevel())
    one["digits, NFC"] = bpe(
        pre_tokenizers.Sequence([pre_tokenizers.Digits(individual_digits=True),
                                 pre_tokenizers.ByteLevel(add_prefix_space=False)]),
        normalizers.NFC(), alphabet=byte_level, decoder=decoders.ByteLevel())
    added = bpe(pre_tokenizers.ByteLevel(add_prefix_space=False), normalizers.NFKC(),
                alphabet=byte_level, decoder=decoders.ByteLevel(), specials=["<s>", "</s>"])
    added.add_special_tokens([AddedToken("<mask>", lstrip=True, special=True),
                              AddedToken("<|end|>", rstrip=True, special=True)])
    added.add_tokens([AddedToken("word", single_word=True), AddedToken("NORM", normalized=True),
                      AddedToken("user", normalized=False), AddedToken("use", normalized=False)])
    added.post_processor = processors.TemplateProcessing(
        single="<s> $A </s>", special_tokens=[("<s>", added.token_to_id("<s>")),
                                              ("</s>", added.token_to_id("</s>"))])
    one["added tokens, template, NFKC"] = added
    bert = bpe(pre_tokenizers.Whitespace(), unk_token="<unk>", specials=["<unk>", "[CLS]", "[SEP]"])
    bert.post_processor = processors.BertProcessing(("[SEP]", 2), ("[CLS]", 1))
    one["whitespace, Bert's processor"] = bert
    for scheme, split in (("always", True), ("first", True), ("never", False)):
        tokenizer = bpe(pre_tokenizers.Metaspace("▁", scheme, split), unk_token="<unk>",
                        fuse_unk=True, specials=["<unk>", "</s>"],
                        decoder=decoders.Metaspace("▁", scheme))
        one[f"metaspace {scheme}"] = tokenizer
    llama = bpe(pre_tokenizers.Metaspace("▁", "never", True), unk_token="<unk>", fuse_unk=True,
                byte_fallback=True, size=560,
                specials=["<unk>", "<s>", "</s>", *(f"<0x{b:02X}>" for b in range(256))])
    llama = json.loads(llama.to_str())
    llama["pre_tokenizer"] = None
    llama["normalizer"] = {"type": "Sequence", "normalizers": [
        {"type": "Prepend", "prepend": "▁"},
        {"type": "Replace", "pattern": {"String": " "}, "content": "▁"}]}
    llama["decoder"] = {"type": "Sequence", "decoders": [
        {"type": "Replace", "pattern": {"String": "▁"}, "content": " "}, {"type": "ByteFallback"},
        {"type": "Fuse"}, {"type": "Strip", "content": " ", "start": 1, "stop": 0}]}
    llama["added_tokens"] = llama["added_tokens"][:3]
    one["Llama 2's way"] = Tokenizer.from_str(json.dumps(llama))
    for behavior in ("removed", "isolated", "merged_with_previous", "merged_with_next",
                     "contiguous"):
        for invert in (False, True):
            one[f"split {behavior}{', inverted' if invert else ''}"] = bpe(
                pre_tokenizers.Split(Regex(r"\s|[.,]+|(?=[A-Z])|\d"), behavior, invert), size=200,
                unk_token="<unk>", specials=["<unk>"])
    one["white space split, normalizers"] = bpe(
        pre_tokenizers.WhitespaceSplit(),
        normalizers.Sequence([normalizers.NFD(), normalizers.Strip(),
                              normalizers.Replace(Regex(r"\p{M}+|o(?=u)"), "")]),
        size=200, unk_token="<unk>", specials=["<unk>"])
    for fallback in (False, True):
        pieces = ["▁", "▁the", "the", "▁t", "he", "o", "ox", "▁fox", "▁b", "est", "e", "s", "t",
                  "▁of", "times", "▁times", "i", "m", "a", "b", "c", "d", "1", "2", "12", "日本",
                  "日", "🙂", "é", "n", "r", "w", "."]
        vocab = [("<unk>", 0.0), ("</s>", 0.0)]
        vocab += [(p, -2.0 - 0.37 * i + 0.8 * len(p)) for i, p in enumerate(pieces)]
        if fallback:
            vocab += [(f"<0x{b:02X}>", -30.0) for b in range(256)]
        unigram = Tokenizer(models.Unigram(vocab, unk_id=0, byte_fallback=fallback))
        unigram.normalizer = normalizers.NFKC()
        unigram.pre_tokenizer = pre_tokenizers.Metaspace("▁", "always", True)
        unigram.decoder = decoders.Sequence([decoders.ByteFallback(),
                                             decoders.Metaspace("▁", "always")])
        unigram.add_special_tokens(["<unk>", "</s>"])
        one[f"Unigram{', byte fallback' if fallback else ''}"] = unigram
    merged = json.loads(one["digits, NFC"].to_str())
    merged["model"]["ignore_merges"] = True
    merged["model"]["merges"] = merged["model"]["merges"][:30]
    one["ignore_merges"] = Tokenizer.from_str(json.dumps(merged))
    return one


def record(path):
    import tokenizers
    texts = HARD + list(random_texts(60, 1))
    cases = []
    for name, tokenizer in build().items():
        results = [tokenizer.encode(text).ids for text in texts]
        decoded = [tokenizer.decode(ids, skip_special_tokens=True) for ids in results]
        cases.append({"name": name, "tokenizer": json.loads(tokenizer.to_str()), "ids": results,
                      "decoded": decoded})
    with open(path, "w", encoding="utf-8") as out:
        out.write('{"made_by": "tools/huggingface_oracle.py record, tokenizers %s",\n"texts": %s,\n'
                  '"cases": [\n' % (tokenizers.__version__, json.dumps(texts)))
        out.write(",\n".join(json.dumps(case, separators=(",", ":")) for case in cases))
        out.write("\n]}\n")


def ids(path):
    from tokenizers import Tokenizer
    tokenizer = Tokenizer.from_file(path)
    for line in sys.stdin:
        print(json.dumps(tokenizer.encode(json.loads(line)).ids))


def main():
    task = sys.argv[1] if len(sys.argv) > 1 else ""
    if task == "record" and len(sys.argv) == 3:
        record(sys.argv[2])
    elif task == "ids" and len(sys.argv) == 3:
        ids(sys.argv[2])
    elif task == "texts" and len(sys.argv) in (3, 4):
        seed = int(sys.argv[3]) if len(sys.argv) > 3 else 1
        for text in random_texts(int(sys.argv[2]), seed):
            print(json.dumps(text))
    else:
        sys.exit(__doc__)


if __name__ == "__main__":
    main()
