# SPDX-License-Identifier: MIT
"""What the parts of a Serve application need to know of a request."""

import hashlib
import json

#: Bytes of a piece of a prompt; conversations that share fewer are strangers.
PIECE = 512
#: Pieces of a prompt that are looked at: 4 MiB.
MOST_PIECES = 8192

#: Endpoints that write answers, and the names of the fields that their prompts are made of, in the
#: order in which models read them.
PROMPTS = {
    "/v1/chat/completions": ("tools", "messages"),
    "/v1/completions": ("prompt",),
    "/v1/responses": ("tools", "instructions", "input"),
    "/v1/messages": ("tools", "system", "messages"),
    "/api/chat": ("tools", "messages"),
    "/api/generate": ("system", "prompt"),
}


def parse(body):
    """The object of a body; {} where it is none: the server says what is wrong with it."""
    try:
        value = json.loads(body)
    except ValueError:
        return {}
    return value if isinstance(value, dict) else {}


def snapshot(value):
    """The document that a request continues; None: none."""
    kv = value.get("kv")
    name = kv.get("snapshot") if isinstance(kv, dict) else None
    return name if isinstance(name, str) else None


def _texts(path, value):
    yield snapshot(value) or ""
    for name in PROMPTS[path]:
        field = value.get(name)
        for item in field if isinstance(field, list) else [field]:
            if item is not None:
                yield item if isinstance(item, str) else json.dumps(item, ensure_ascii=False)


def pieces(path, value):
    """The prompt's beginning as a chain of hashes: two prompts have as many in common as they have
    pieces, of PIECE bytes each, from the start. [] for other requests."""
    if path not in PROMPTS:
        return []
    chain, last, rest = [], b"", b""
    for text in _texts(path, value):
        rest += text.encode("utf-8", "replace") + b"\0"
        at = 0
        while len(rest) - at >= PIECE and len(chain) < MOST_PIECES:
            last = hashlib.blake2b(last + rest[at:at + PIECE], digest_size=8).digest()
            chain.append(last)
            at += PIECE
        rest = rest[at:]
    return chain


def error(path, message, kind="overloaded_error"):
    """An error in the form that clients of this path expect."""
    if path.startswith("/v1/messages"):
        return {"type": "error", "error": {"type": kind, "message": message}}
    if path.startswith("/api/"):
        return {"error": message}
    return {"error": {"message": message, "type": kind, "param": None, "code": None}}


def error_event(path, content_type, message):
    """The same within an answer that has begun: bytes of an event or a line."""
    text = json.dumps(error(path, message))
    if content_type.startswith("text/event-stream"):
        return f"event: error\ndata: {text}\n\n".encode()
    return f"{text}\n".encode()
