# SPDX-License-Identifier: MIT
"""The SentencePiece tokenizer inside a GGUF file of tokenizer type `llama`."""
import struct

import numpy as np
import sentencepiece

USER_DEFINED = 4


def _varint(n):
    out = b""
    while n > 127:
        out, n = out + bytes([n & 127 | 128]), n >> 7
    return out + bytes([n])


def _bytes_field(number, raw):
    return _varint(number << 3 | 2) + _varint(len(raw)) + raw


def _int_field(number, n):
    return _varint(number << 3) + _varint(n)


def model_proto(metadata):
    """A serialized sentencepiece.ModelProto (field numbers from sentencepiece_model.proto)."""
    kind = metadata.get("tokenizer.ggml.model")
    if kind != "llama":
        raise ValueError(f"tokenizer.ggml.model is {kind}, llama expected")
    out = b""
    for piece, score, token_type in zip(metadata["tokenizer.ggml.tokens"],
                                        metadata["tokenizer.ggml.scores"],
                                        metadata["tokenizer.ggml.token_type"]):
        # a line break remains a piece of its own, as in training
        token_type = USER_DEFINED if piece == "\n" else int(token_type)
        out += _bytes_field(1, _bytes_field(1, piece.encode("utf-8")) + b"\x15"
                            + struct.pack("<f", score) + _int_field(3, token_type))
    n = len(metadata["tokenizer.ggml.tokens"])
    trainer = _int_field(3, 2) + _int_field(4, n) + _int_field(35, 1)  # BPE, size, byte fallback
    normalizer = _bytes_field(1, b"identity") + _int_field(3, 1) + _int_field(4, 0)
    return out + _bytes_field(2, trainer) + _bytes_field(3, normalizer)


class Tokenizer:
    def __init__(self, metadata):
        self.sp = sentencepiece.SentencePieceProcessor(model_proto=model_proto(metadata))
        self.n_vocab = self.sp.vocab_size()
        self.bos = int(metadata["tokenizer.ggml.bos_token_id"])
        pieces = [self.sp.id_to_piece(i) for i in range(self.n_vocab)]
        self.begins_word = np.array([piece.startswith("\u2581") for piece in pieces])
        self.words = [p[1:] for p in pieces if p.startswith("\u2581") and p[1:].isalpha() and len(p) > 3]
        self.separators = [i for i, p in enumerate(pieces) if p.strip("\u2581") in (":", "=", "->", "-", ">", "is")]
        self.space, self.newline = self.sp.piece_to_id("\u2581"), self.sp.piece_to_id("\n")

    def begin(self, text):
        """Ids of a text at the beginning of a prompt, without BOS."""
        return self.sp.encode(text)

    def next(self, text):
        """Ids of a text that follows other text, without the space that SentencePiece adds in front."""
        if text.startswith("\n"):
            ids = self.sp.encode(text)
            return ids[1:] if ids[0] == self.space else ids
        if text.startswith(" "):
            return self.sp.encode(text[1:])
        return self.sp.encode("\n" + text)[2:]  # the added space and the line break
