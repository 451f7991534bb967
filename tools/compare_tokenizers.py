#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""compare_tokenizers.py: token ids of `snapkv tokenize` beside those of llama.cpp's llama-server.

  tools/compare_tokenizers.py --snapkv build/release/bin/snapkv --server llama-server VOCAB.gguf ...

For every file (a vocabulary is enough), COUNT random texts go through llama-server's /tokenize on
the loopback interface and through snapkv; the script prints one line per file and ends with 1 if
any ids differ. `--pre all` gives the file's vocabulary every pre-tokenizer's name in turn, so that
one BPE vocabulary checks all split patterns. `--every-character` needs no file: it sends every
Unicode character, with a made vocabulary in which its neighbours tell whether words end there.

llama-server loads no file without tensors, so a model of one layer with weights of zero is written
around the vocabulary, into --work. SERVER may have arguments; "{work}" in it is replaced by that
folder, where it runs, and it must take model paths relative to the folder.
"""
import argparse
import http.client
import json
import random
import shlex
import socket
import struct
import subprocess
import sys
import tempfile
import time
from pathlib import Path

SCALARS = {0: "B", 1: "b", 2: "H", 3: "h", 4: "I", 5: "i", 6: "f", 7: "?", 10: "Q", 11: "q",
           12: "d"}
STRING, ARRAY = 8, 9


class Reader:
    """The metadata of a GGUF file."""

    def __init__(self, data):
        self.data, self.at = data, 0

    def number(self, code):
        value, = struct.unpack_from("<" + code, self.data, self.at)
        self.at += struct.calcsize("<" + code)
        return value

    def string(self):
        size = self.number("Q")
        self.at += size
        return self.data[self.at - size:self.at]

    def skip(self, kind):
        """Skips a value; returns the number of elements of an array."""
        if kind == STRING:
            self.string()
        elif kind == ARRAY:
            element, count = self.number("I"), self.number("Q")
            if element == STRING:
                for _ in range(count):
                    self.string()
            else:
                self.at += count * struct.calcsize("<" + SCALARS[element])
            return count
        else:
            self.at += struct.calcsize("<" + SCALARS[kind])
        return 0


def read_metadata(path):
    """{key: (type, raw value)} of the tokenizer's keys, and the number of tokens."""
    reader = Reader(Path(path).read_bytes())
    if reader.data[:4] != b"GGUF":
        sys.exit(f"{path}: no GGUF file")
    reader.at = 8
    reader.number("Q")
    entries, n_vocab = {}, 0
    for _ in range(reader.number("Q")):
        key, kind = reader.string().decode(), reader.number("I")
        begin = reader.at
        count = reader.skip(kind)
        if key == "tokenizer.ggml.tokens":
            n_vocab = count
        if key.startswith("tokenizer.") or key == "general.name":
            entries[key] = (kind, reader.data[begin:reader.at])
    entries.pop("tokenizer.chat_template", None)
    return entries, n_vocab


def gguf_string(text):
    raw = text if isinstance(text, bytes) else text.encode()
    return struct.pack("<Q", len(raw)) + raw


def write_model(path, entries, n_vocab, pre):
    """Writes a llama model with one layer, all zeros, and this vocabulary."""
    width, ff = 32, 32
    uint, text = lambda v: (4, struct.pack("<I", v)), lambda v: (STRING, gguf_string(v))
    metadata = {"general.architecture": text("llama"), "general.alignment": uint(32),
                "llama.block_count": uint(1), "llama.context_length": uint(64),
                "llama.embedding_length": uint(width), "llama.feed_forward_length": uint(ff),
                "llama.attention.head_count": uint(1), "llama.vocab_size": uint(n_vocab),
                "llama.rope.dimension_count": uint(width),
                "llama.attention.layer_norm_rms_epsilon": (6, struct.pack("<f", 1e-5)), **entries}
    if pre is not None:
        metadata["tokenizer.ggml.pre"] = text(pre)
        metadata["tokenizer.ggml.add_bos_token"] = (7, b"\0")
    square = [(f"blk.0.attn_{n}.weight", (width, width)) for n in ("q", "k", "v", "output")]
    tensors = [("token_embd.weight", (width, n_vocab)), ("output_norm.weight", (width,)),
               ("blk.0.attn_norm.weight", (width,)), ("blk.0.ffn_norm.weight", (width,)),
               ("blk.0.ffn_gate.weight", (width, ff)), ("blk.0.ffn_up.weight", (width, ff)),
               ("blk.0.ffn_down.weight", (ff, width)), *square]
    with open(path, "wb") as out:
        out.write(b"GGUF" + struct.pack("<IQQ", 3, len(tensors), len(metadata)))
        for key, (kind, raw) in metadata.items():
            out.write(gguf_string(key) + struct.pack("<I", kind) + raw)
        offset, sizes = 0, []
        for name, shape in tensors:
            kind, bytes_each = (0, 4) if len(shape) == 1 else (1, 2)
            out.write(gguf_string(name) + struct.pack("<I", len(shape)))
            out.write(struct.pack(f"<{len(shape)}Q", *shape) + struct.pack("<IQ", kind, offset))
            size = bytes_each
            for extent in shape:
                size *= extent
            sizes.append(size)
            offset += (size + 31) // 32 * 32
        out.write(b"\0" * (-out.tell() % 32))
        for size in sizes:
            out.write(b"\0" * ((size + 31) // 32 * 32))


def byte_spellings():
    """The characters that represent bytes in byte-level vocabularies."""
    itself = [*range(0x21, 0x7f), *range(0xa1, 0xad), *range(0xae, 0x100)]
    moved = [b for b in range(256) if b not in itself]
    return [chr(b) if b in itself else chr(256 + moved.index(b)) for b in range(256)]


def character_entries():
    """A vocabulary of bytes whose merges join a letter, a digit, ... to a character's bytes."""
    byte = byte_spellings()
    merges = [(p, byte[lead]) for p in "a1!'" for lead in range(0xc2, 0xf5)]
    merges += [(byte[last], p) for p in "b2?," for last in range(0x80, 0xc0)]
    tokens = byte + [a + b for a, b in merges] + ["<|endoftext|>"]
    strings = lambda texts: (ARRAY, struct.pack("<IQ", STRING, len(texts)) +
                             b"".join(gguf_string(t) for t in texts))
    types = [1] * (len(tokens) - 1) + [3]
    end = (4, struct.pack("<I", len(tokens) - 1))
    return {"tokenizer.ggml.model": (STRING, gguf_string("gpt2")),
            "tokenizer.ggml.pre": (STRING, gguf_string("gpt-2")),
            "tokenizer.ggml.tokens": strings(tokens),
            "tokenizer.ggml.merges": strings([f"{a} {b}" for a, b in merges]),
            "tokenizer.ggml.token_type":
                (ARRAY, struct.pack(f"<IQ{len(types)}i", 5, len(types), *types)),
            "tokenizer.ggml.bos_token_id": end, "tokenizer.ggml.eos_token_id": end}, len(tokens)


WORDS = ["the", " of", " and", "don't", " I'll", "WE'VE", "'S", "x'D", "camelCase", "HTTPServer",
         "  ", "   ", "\n", "\n\n", "\r\n", "\t", " \n", "\n ", "123", "4567890", "3.14", "-", "...",
         "!?", "(a+b)", "</s>", "<s>", "<|endoftext|>", "<|im_start|>", "<|user|>", "<unk>",
         "Ünï", "żółć", "нещо", "中文字", "日本語です", "한국어", "ไทย", "हिन्दी", "עברית",
         "عربي", "🚀", "👩‍👩‍👧", "e\u0301", "ﬁ", "²³", "½", "Ⅷ", "\u00a0", "\u3000", "\u200b",
         "\u2581", "\ufeff", "ſ", "K", "Σς", "ǅ", "０１２", "١٢٣"]


def random_character(rng):
    plane = rng.random()
    if plane < 0.5:
        return chr(rng.randrange(0x20, 0x7f))
    if plane < 0.6:
        return chr(rng.randrange(0, 0x20))
    if plane < 0.75:
        return chr(rng.randrange(0x80, 0x3000))
    if plane < 0.9:
        return chr(rng.randrange(0x3000, 0xd800))
    code = rng.randrange(0xe000, 0x110000)
    return chr(code)


def random_text(rng):
    parts = []
    for _ in range(rng.randrange(1, 24)):
        if rng.random() < 0.6:
            parts.append(rng.choice(WORDS) + (" " if rng.random() < 0.4 else ""))
        else:
            parts.append("".join(random_character(rng) for _ in range(rng.randrange(1, 8))))
    return "".join(parts)


def every_character():
    codes = [c for c in range(1, 0x110000) if not 0xd800 <= c < 0xe000]
    for begin in range(0, len(codes), 64):
        yield "".join(f"a{chr(c)}b {chr(c)} 1{chr(c)}2 !{chr(c)}?\n" for c in codes[begin:begin + 64])


class Server:
    """llama-server with one model."""

    def __init__(self, command, work, model):
        with socket.socket() as probe:
            probe.bind(("127.0.0.1", 0))
            self.port = probe.getsockname()[1]
        arguments = [a.replace("{work}", str(work)) for a in shlex.split(command)]
        self.log = open(work / "server.log", "w+b")
        self.process = subprocess.Popen(
            [*arguments, "-m", model, "--host", "127.0.0.1", "--port", str(self.port), "-c", "64",
             "-np", "1", "--no-warmup"], cwd=work, stdout=self.log, stderr=self.log)

    def wait(self):
        for _ in range(600):
            if self.process.poll() is not None:
                break
            try:
                if self.ask("GET", "/health")[0] == 200:
                    return
            except OSError:
                pass
            time.sleep(0.1)
        self.log.seek(0)
        tail = self.log.read().decode(errors="replace")[-2000:]
        self.stop()
        raise RuntimeError(f"the server does not start:\n{tail}")

    def ask(self, method, path, body=None, connection=None):
        connection = connection or http.client.HTTPConnection("127.0.0.1", self.port, timeout=60)
        connection.request(method, path, body, {"Content-Type": "application/json"})
        response = connection.getresponse()
        return response.status, response.read()

    def tokenize(self, texts, parse_special):
        connection = None
        for text in texts:
            body = json.dumps({"content": text, "add_special": True,
                               "parse_special": parse_special})
            for attempt in range(5):  # the server closes idle connections
                connection = connection or http.client.HTTPConnection("127.0.0.1", self.port,
                                                                      timeout=600)
                try:
                    status, answer = self.ask("POST", "/tokenize", body, connection)
                    break
                except (OSError, http.client.HTTPException):
                    connection = None
                    if attempt == 4:
                        raise
            yield json.loads(answer)["tokens"] if status == 200 else answer.decode()

    def stop(self):
        self.process.terminate()
        self.process.wait()
        self.log.close()


def compare(arguments, work, path, pre):
    """Prints one line; returns whether all ids are equal."""
    label = (path.name if path else "every character") + (f" as {pre}" if pre else "")
    entries, n_vocab = read_metadata(path) if path else character_entries()
    write_model(work / "model.gguf", entries, n_vocab, pre)
    rng = random.Random(arguments.seed)
    texts = (list(every_character()) if arguments.every_character
             else [random_text(rng) for _ in range(arguments.count)])
    server = Server(arguments.server, work, "model.gguf")
    try:
        server.wait()
        different = 0
        for parse_special in (True, False):
            command = [arguments.snapkv, "tokenize", "-m", str(work / "model.gguf"),
                       "--json-lines", "-f", "-"] + ([] if parse_special else ["--no-special"])
            lines = "".join(json.dumps(t) + "\n" for t in texts)
            ours = subprocess.run(command, input=lines.encode(), stdout=subprocess.PIPE,
                                  check=True).stdout.decode().splitlines()
            for text, line, ids in zip(texts, ours, server.tokenize(texts, parse_special)):
                if json.loads(line) == ids:
                    continue
                different += 1
                if different <= arguments.show:
                    print(f"  {text!r}\n    snapkv    {line}\n    llama.cpp {ids}")
    except (RuntimeError, subprocess.CalledProcessError) as error:
        print(f"{label:<40} failed: {error}")
        return False
    finally:
        server.stop()
    print(f"{label:<40} {2 * len(texts)} texts, {different} different", flush=True)
    return different == 0


def names_of(snapkv, path, work):
    """All names of pre-tokenizers, taken from the error message for an unknown one."""
    entries, n_vocab = read_metadata(path) if path else character_entries()
    write_model(work / "model.gguf", entries, n_vocab, "?")
    result = subprocess.run([snapkv, "tokenize", "-m", str(work / "model.gguf"), "-p", "x"],
                            stderr=subprocess.PIPE, check=False)
    return result.stderr.decode().rsplit("supported: ", 1)[1].strip().split(", ")


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n\n", maxsplit=1)[0])
    parser.add_argument("--snapkv", required=True, help="the program")
    parser.add_argument("--server", required=True, help="the command that runs llama-server")
    parser.add_argument("--count", type=int, default=10000, help="random texts per file")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--show", type=int, default=3, help="differences to print per file")
    parser.add_argument("--pre", default="", help="pre-tokenizers to put into the file, or all")
    parser.add_argument("--every-character", action="store_true")
    parser.add_argument("--work", type=Path, help="folder for models [a temporary one]")
    parser.add_argument("files", nargs="*", type=Path)
    arguments = parser.parse_args()
    if bool(arguments.files) == arguments.every_character:
        parser.error("give either files or --every-character")
    arguments.snapkv = str(Path(arguments.snapkv).resolve())
    with tempfile.TemporaryDirectory() as temporary:
        work = (arguments.work or Path(temporary)).resolve()
        work.mkdir(parents=True, exist_ok=True)
        equal = True
        for path in arguments.files or [None]:
            names = [n for n in arguments.pre.split(",") if n] or [None]
            if names == ["all"]:
                names = names_of(arguments.snapkv, path, work)
            for name in names:
                equal = compare(arguments, work, path, name) and equal
    return 0 if equal else 1


if __name__ == "__main__":
    sys.exit(main())
