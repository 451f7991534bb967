# SPDX-License-Identifier: MIT
"""Models, sessions, documents and answers."""

import json
import os
from ctypes import byref

from . import _library as _c


def options(policy=None):
    """Every option there is: dicts of name, group, type, default, range, help and words.

    ``policy``: whose parameters (``kv_...``) are listed too; None: those of the default policy.
    """
    return json.loads(_c.text("snapkv_options_list", policy.encode() if policy else None))


def _value_text(value):
    if isinstance(value, bool):
        return "true" if value else "false"
    return str(value)


class _Options(_c.Handle):
    """Options by name; kv_policy is set first, as it decides which other names there are."""

    def __init__(self, given):
        super().__init__(_c.lib.snapkv_options_new(), "snapkv_options_free")
        if not self:
            raise MemoryError("out of memory")
        self.update(given)

    def update(self, given):
        for name in sorted(given, key=lambda n: n != "kv_policy"):
            value = given[name]
            if value is None:
                continue
            for one in value if isinstance(value, (list, tuple)) else [value]:
                _c.call("snapkv_options_set", self.pointer, name.encode(),
                        _value_text(one).encode("utf-8", "surrogateescape"))


class Model(_c.Closable):
    """A model: a GGUF file or a Hugging Face folder.

    >>> model = snapkv.Model("model.gguf", n_threads=2)
    >>> model.chat("Why is the sky blue?", max_tokens=60)
    'The sky is blue because ...'

    All keyword arguments are options (:func:`options`); those of sessions, samplers and answers
    become the defaults of what is made of the model. ``progress(phase, fraction)`` is called while
    it loads and may return False to stop. A model may be used by several threads. Its memory is
    freed with it, by :meth:`close`, or at the end of a ``with`` block, once its sessions are too.
    """

    def __init__(self, path, progress=None, **given):
        self._defaults = dict(given)
        chosen = _Options({**given, "model": os.fsdecode(path)})
        with _c.Progress(progress) as p:
            self._handle = _c.new("snapkv_model_load", "snapkv_model_free", chosen.pointer,
                                  *p.arguments)

    @property
    def info(self):
        """What the file says: architecture, n_layer, n_ctx_train, chat_templates, ..."""
        return json.loads(_c.text("snapkv_model_info", self._handle.pointer))

    def tokenize(self, text, add_special=True, parse_special=True):
        """The ids of a text. ``add_special``: with the model's token for the beginning of a text;
        ``parse_special``: control tokens spelled out in it become their ids."""
        data = _c.text_argument(text)
        return _c.tokens("snapkv_tokenize", self._handle.pointer, data, len(data), add_special,
                         parse_special)

    def detokenize(self, ids):
        """The text of ids; bytes that are not a whole character are U+FFFD."""
        return _c.text("snapkv_detokenize", self._handle.pointer,
                       *_c.ids_argument(ids)).decode("utf-8", "replace")

    def is_end_of_generation(self, token):
        """Whether an id ends an answer."""
        ids, _ = _c.ids_argument([token])
        return bool(_c.lib.snapkv_is_end_of_generation(self._handle.pointer, ids[0]))

    def chat_text(self, messages, **variables):
        """The prompt that the model's chat template makes of messages (dicts of role, content)."""
        return _c.text("snapkv_chat_text", self._handle.pointer,
                       _conversation(messages, variables)).decode()

    def chat_tokens(self, messages, **variables):
        """The ids of the same. Control tokens spelled out in messages stay text."""
        return _c.tokens("snapkv_chat_tokens", self._handle.pointer,
                         _conversation(messages, variables))

    def session(self, **given):
        """A new :class:`Session`."""
        return Session(self, **given)

    def prefill(self, text, progress=None, **given):
        """Reads a text, or its ids, and keeps every row: a :class:`Document` to ask about."""
        ids = self.tokenize(text) if isinstance(text, str) else list(text)
        chosen = _Options({**self._defaults, **given})
        with _c.Progress(progress) as p:
            handle = _c.new("snapkv_prefix_read", "snapkv_prefix_free", self._handle.pointer,
                            chosen.pointer, *_c.ids_argument(ids), *p.arguments)
        return Document(self, handle)

    def load_document(self, path):
        """A :class:`Document` that :meth:`Document.save` or ``snapkv compress`` has written."""
        return Document(self, _c.new("snapkv_prefix_load", "snapkv_prefix_free",
                                     self._handle.pointer, os.fsencode(path)))

    def generate(self, prompt, stream=False, progress=None, **given):
        """The continuation of a text or of ids; with ``stream`` an iterator of its pieces."""
        session = self.session(**given)
        ids = self.tokenize(prompt) if isinstance(prompt, str) else list(prompt)
        session.prefill(ids, progress)
        return session.generate(stream=stream, history=ids)

    def chat(self, messages, stream=False, progress=None, **given):
        """The answer to a message (a str) or a conversation (dicts of role and content)."""
        if isinstance(messages, str):
            messages = [{"role": "user", "content": messages}]
        return self.generate(self.chat_tokens(messages), stream, progress, **given)


def _conversation(messages, variables):
    return json.dumps({"messages": messages, **variables}).encode()


class Document(_c.Closable):
    """Every row of a text that was read once; each question chooses its own.

    >>> document = model.prefill(open("book.txt").read())
    >>> document.ask("Who is the captain?", kv_budget=512)
    """

    def __init__(self, model, handle):
        self._model, self._handle = model, handle

    def __len__(self):
        """Tokens."""
        return _c.lib.snapkv_prefix_tokens(self._handle.pointer)

    def save(self, path):
        """Writes the rows to a file for :meth:`Model.load_document`."""
        _c.call("snapkv_prefix_save", self._handle.pointer, os.fsencode(path))

    def session(self, question, progress=None, **given):
        """A :class:`Session` that has read the text and, after it, a question (a text, or ids)."""
        session = self._model.session(**given)
        ids = (self._model.tokenize(question, add_special=False) if isinstance(question, str)
               else list(question))
        with _c.Progress(progress) as p:
            _c.call("snapkv_prefill_after", session.pointer, self._handle.pointer,
                    *_c.ids_argument(ids), *p.arguments)
        return session

    def ask(self, question, stream=False, progress=None, **given):
        """What the model writes after the text and the question, which follows it as it is."""
        return self.session(question, progress, **given).generate(stream=stream)


class Session(_c.Closable):
    """What a model has read, in a compressed cache. One thread at a time may use it."""

    def __init__(self, model, **given):
        self._model = model
        self._given = {**model._defaults, **given}
        self._options = _Options(self._given)
        self._handle = _c.new("snapkv_session_new", "snapkv_session_free", model._handle.pointer,
                              self._options.pointer)

    @property
    def pointer(self):
        return self._handle.pointer

    def prefill(self, ids, progress=None):
        """Reads a prompt or a further turn (ids) and compresses the cache."""
        with _c.Progress(progress) as p:
            _c.call("snapkv_prefill", self.pointer, *_c.ids_argument(ids), *p.arguments)

    def decode(self, token):
        """Reads one token; :attr:`logits` are those after it."""
        decode([self], [token])

    @property
    def logits(self):
        """A numpy array [n_vocab] f32 of the last token: a view, until the session is used again."""
        import numpy  # pylint: disable=import-outside-toplevel
        pointer, n = _c.size_of_logits(self.pointer)
        return numpy.ctypeslib.as_array(pointer, (n,)) if n else numpy.zeros(0, numpy.float32)

    @property
    def n_past(self):
        """Tokens read so far."""
        return _c.lib.snapkv_n_past(self.pointer)

    @property
    def n_ctx(self):
        """Most tokens that it may read."""
        return _c.lib.snapkv_n_ctx(self.pointer)

    @property
    def stats(self):
        """Counts, times in seconds and bytes of the cache, as a dict."""
        return json.loads(_c.text("snapkv_stats", self.pointer))

    def positions(self, layer, head):
        """The positions whose rows are in the cache of a layer and KV head, ascending."""
        return _c.tokens("snapkv_positions", self.pointer, layer, head)

    def reset(self):
        """Forgets everything that was read."""
        _c.call("snapkv_session_reset", self.pointer)

    def save(self, path):
        """Writes the compressed cache to a file."""
        _c.call("snapkv_session_save", self.pointer, os.fsencode(path))

    def load(self, path):
        """Continues from such a file of the same model and options."""
        _c.call("snapkv_session_load", self.pointer, os.fsencode(path))

    def generate(self, stream=False, grammar=None, history=(), **given):
        """The answer as a str, or with ``stream`` an :class:`Answer` to iterate over.

        ``grammar``: GBNF, or a JSON schema (a dict or its text), that the answer follows.
        ``history``: ids that penalties count as written already. Further arguments are options of
        samplers and answers.
        """
        answer = Answer(self, grammar, history, given)
        return answer if stream else "".join(answer)


def decode(sessions, tokens):
    """Lets each session read its token, all in one step. They must be of one model."""
    if len(sessions) != len(tokens):
        raise _c.UsageError(2, f"{len(sessions)} sessions and {len(tokens)} tokens: each session "
                            "reads one")
    array = (_c.c_void_p * len(sessions))(*(s.pointer for s in sessions))
    ids, n = _c.ids_argument(tokens)
    _c.call("snapkv_decode", array, ids, n)


class Answer:
    """Iterates over the pieces of an answer as they are written."""

    def __init__(self, session, grammar, history, given):
        if isinstance(grammar, dict):
            grammar = json.dumps(grammar)
        self._session = session  # keeps it alive
        chosen = session._options
        if given:
            chosen = _Options({**session._given, **given})
        self._handle = _c.new("snapkv_generator_new", "snapkv_generator_free", session.pointer,
                              chosen.pointer, grammar.encode() if grammar else None,
                              *_c.ids_argument(list(history)))
        self._done = False
        #: Ids so far.
        self.ids = []
        #: With ``top_logprobs`` of at least 0: the natural logarithm of each id's probability.
        self.logprobs = []

    def __iter__(self):
        return self

    def __next__(self):
        token = _c.Token()
        while not self._done:
            _c.call("snapkv_generator_step", self._handle.pointer, byref(token))
            self._done = bool(token.is_last)
            if token.id >= 0:
                self.ids.append(token.id)
                self.logprobs.append(token.logprob)
            if token.n_text:
                return _c.ctypes.string_at(token.text, token.n_text).decode()
        raise StopIteration

    @property
    def stop_reason(self):
        """"eos", "stop", "paragraph", "length" or "context"; None while the answer is written."""
        reason = _c.lib.snapkv_generator_stop_reason(self._handle.pointer)
        return reason.decode() if reason else None
