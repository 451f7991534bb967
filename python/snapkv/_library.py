# SPDX-License-Identifier: MIT
"""The C API (include/snapkv/snapkv.h) through ctypes: functions, errors, texts and tokens."""

import ctypes
import os
import signal
import threading
from array import array
from ctypes import (CFUNCTYPE, POINTER, Structure, byref, c_char_p, c_double, c_float, c_int,
                    c_int32, c_int64, c_size_t, c_void_p, create_string_buffer)
from pathlib import Path


class Error(RuntimeError):
    """What the engine refuses or cannot do; ``code`` is that of the C API."""

    def __init__(self, code, message):
        super().__init__(message)
        self.code = code


class UsageError(Error, ValueError):
    """A value, a name or an order of calls that cannot work."""


class ModelError(Error):
    """A model file or folder that is damaged or not supported."""


class OutOfMemoryError(Error, MemoryError):
    """A prompt, a model or a cache for which there is no room."""


class ContextError(Error):
    """More tokens than the session's context holds."""


class Cancelled(Error):
    """The call was ended by its progress function."""


_ERRORS = {2: UsageError, 3: ModelError, 4: OutOfMemoryError, 5: ContextError, 130: Cancelled}


def error(code, message):
    """The exception of a code of the C API, which is also an exit code of the program."""
    return _ERRORS.get(code, Error)(code, message)


class _Text(Structure):
    _fields_ = [("data", c_void_p), ("n", c_size_t)]


class _Tokens(Structure):
    _fields_ = [("ids", POINTER(c_int32)), ("n", c_size_t)]


class Token(Structure):
    _fields_ = [("id", c_int32), ("text", c_void_p), ("n_text", c_size_t), ("logprob", c_double),
                ("is_last", c_int)]


class View(Structure):
    _fields_ = [("data", c_void_p), ("dtype", c_int), ("head_stride", c_int64),
                ("row_stride", c_int64)]


class Layer(Structure):
    _fields_ = [("n_tokens", c_int64), ("n_window", c_int64), ("n_head", c_int64),
                ("n_head_kv", c_int64), ("head_dim", c_int64), ("q", View), ("k", View),
                ("v", View), ("scale", c_float), ("il", c_int), ("n_layer", c_int)]


class Policy(Structure):
    _fields_ = [("name", c_char_p), ("budget", c_int64), ("ratio", c_double),
                ("window_size", c_int), ("sinks", c_int), ("params", ctypes.c_char * 256)]


_PROGRESS = CFUNCTYPE(c_int, c_void_p, c_char_p, c_double)
_ERROR = (c_char_p, c_size_t)
_IDS = (POINTER(c_int32), c_size_t)
_READING = (_PROGRESS, c_void_p) + _ERROR

# name: (result, arguments)
_FUNCTIONS = {
    "snapkv_version": (c_char_p, ()),
    "snapkv_error_code": (c_int, ()),
    "snapkv_text_free": (None, (POINTER(_Text),)),
    "snapkv_tokens_free": (None, (POINTER(_Tokens),)),
    "snapkv_options_new": (c_void_p, ()),
    "snapkv_options_free": (None, (c_void_p,)),
    "snapkv_options_set": (c_int, (c_void_p, c_char_p, c_char_p) + _ERROR),
    "snapkv_options_get": (POINTER(_Text), (c_void_p, c_char_p) + _ERROR),
    "snapkv_options_list": (POINTER(_Text), (c_char_p,) + _ERROR),
    "snapkv_model_load": (c_void_p, (c_void_p,) + _READING),
    "snapkv_model_free": (None, (c_void_p,)),
    "snapkv_model_info": (POINTER(_Text), (c_void_p,) + _ERROR),
    "snapkv_tokenize": (POINTER(_Tokens), (c_void_p, c_char_p, c_size_t, c_int, c_int) + _ERROR),
    "snapkv_detokenize": (POINTER(_Text), (c_void_p,) + _IDS + _ERROR),
    "snapkv_chat_text": (POINTER(_Text), (c_void_p, c_char_p) + _ERROR),
    "snapkv_chat_tokens": (POINTER(_Tokens), (c_void_p, c_char_p) + _ERROR),
    "snapkv_is_end_of_generation": (c_int, (c_void_p, c_int32)),
    "snapkv_prefix_read": (c_void_p, (c_void_p, c_void_p) + _IDS + _READING),
    "snapkv_prefix_load": (c_void_p, (c_void_p, c_char_p) + _ERROR),
    "snapkv_prefix_save": (c_int, (c_void_p, c_char_p) + _ERROR),
    "snapkv_prefix_tokens": (c_size_t, (c_void_p,)),
    "snapkv_prefix_free": (None, (c_void_p,)),
    "snapkv_session_new": (c_void_p, (c_void_p, c_void_p) + _ERROR),
    "snapkv_session_free": (None, (c_void_p,)),
    "snapkv_prefill": (c_int, (c_void_p,) + _IDS + _READING),
    "snapkv_prefill_after": (c_int, (c_void_p, c_void_p) + _IDS + _READING),
    "snapkv_decode": (c_int, (POINTER(c_void_p),) + _IDS + _ERROR),
    "snapkv_logits": (POINTER(c_float), (c_void_p, POINTER(c_size_t))),
    "snapkv_n_past": (c_int64, (c_void_p,)),
    "snapkv_n_ctx": (c_int64, (c_void_p,)),
    "snapkv_positions": (POINTER(_Tokens), (c_void_p, c_int, c_int) + _ERROR),
    "snapkv_stats": (POINTER(_Text), (c_void_p,) + _ERROR),
    "snapkv_session_reset": (c_int, (c_void_p,) + _ERROR),
    "snapkv_session_save": (c_int, (c_void_p, c_char_p) + _ERROR),
    "snapkv_session_load": (c_int, (c_void_p, c_char_p) + _ERROR),
    "snapkv_generator_new": (c_void_p, (c_void_p, c_void_p, c_char_p) + _IDS + _ERROR),
    "snapkv_generator_free": (None, (c_void_p,)),
    "snapkv_generator_step": (c_int, (c_void_p, POINTER(Token)) + _ERROR),
    "snapkv_generator_stop_reason": (c_char_p, (c_void_p,)),
    "snapkv_default_policy": (Policy, ()),
    "snapkv_policy_set": (c_int, (POINTER(Policy), c_char_p, c_char_p) + _ERROR),
    "snapkv_compressor_new": (c_void_p, (POINTER(Policy), c_int, c_void_p) + _ERROR),
    "snapkv_compressor_free": (None, (c_void_p,)),
    "snapkv_max_kept": (c_int64, (c_void_p, POINTER(Layer))),
    "snapkv_select": (c_int, (c_void_p, POINTER(Layer), c_int64, POINTER(c_int32),
                              POINTER(c_int32)) + _ERROR),
}


def _find_library():
    path = os.environ.get("SNAPKV_LIBRARY")
    if path:
        return path
    found = Path(__file__).parent / "lib" / "libsnapkv_c.so"
    if not found.exists():
        raise ImportError(f"{found} is missing; SNAPKV_LIBRARY may name the library")
    return str(found)


def _open(path):
    try:
        library = ctypes.CDLL(path)
    except OSError as problem:
        raise ImportError(f"{problem}; the package needs the libraries of Debian and Ubuntu that "
                          f"its README names") from problem
    for name, (result, arguments) in _FUNCTIONS.items():
        function = getattr(library, name)
        function.restype, function.argtypes = result, arguments
    return library


lib = _open(_find_library())


def call(name, *arguments):
    """Calls a function whose last two arguments are the error buffer; returns its result.

    Functions that return a pointer have failed where it is null, the others where the code is not
    0. Other Python threads run meanwhile.
    """
    message = create_string_buffer(4096)
    result = getattr(lib, name)(*arguments, message, len(message))
    failed = result != 0 if _FUNCTIONS[name][0] is c_int else not result
    if failed:
        raise error(lib.snapkv_error_code(), message.value.decode("utf-8", "replace"))
    return result


def text(name, *arguments):
    """The bytes that a function returns as a text."""
    pointer = call(name, *arguments)
    try:
        return ctypes.string_at(pointer.contents.data, pointer.contents.n)
    finally:
        lib.snapkv_text_free(pointer)


def tokens(name, *arguments):
    """The tokens that a function returns, as a list."""
    pointer = call(name, *arguments)
    try:
        return pointer.contents.ids[:pointer.contents.n]
    finally:
        lib.snapkv_tokens_free(pointer)


def ids_argument(ids):
    """(pointer, n) of a sequence of token ids. ctypes would cut off what is beyond 32 bits."""
    ids = list(ids)
    try:
        ids = array("i", ids)
    except OverflowError:
        raise UsageError(2, "a token id must be a whole number of 32 bits, not "
                         f"{max(ids, key=abs)}") from None
    return (c_int32 * len(ids)).from_buffer(ids), len(ids)


def text_argument(text):
    """The bytes of a text."""
    if not isinstance(text, str):
        raise TypeError(f"a text must be a str, not {type(text).__name__}")
    return text.encode()


class Progress:
    """The progress argument of a call: ``function(phase, fraction)`` may return False to end it.

    Ctrl-C ends the call too, with KeyboardInterrupt. Python's handler would raise that before the
    first line of the callback, where nothing can catch it; so within the call a handler stands in
    that only notes it. Use it around the call: ``with Progress(function) as p: call(name, ...,
    *p.arguments)``.
    """

    def __init__(self, function=None):
        self._function = function
        self._raised = None
        self._handler = None  # Python's own, while another one stands in
        self._callback = _PROGRESS(self._report)
        self.arguments = (self._callback, None)

    def _report(self, _user, phase, fraction):
        try:
            if self._function is not None and self._function(phase.decode(), fraction) is False:
                return 1
        except BaseException as exception:  # pylint: disable=broad-except
            self._raised = exception
        return 0 if self._raised is None else 1

    def _note_interrupt(self, _signal, _frame):
        self._raised = KeyboardInterrupt()

    def __enter__(self):
        if (threading.current_thread() is threading.main_thread()
                and signal.getsignal(signal.SIGINT) is signal.default_int_handler):
            self._handler = signal.signal(signal.SIGINT, self._note_interrupt)
        return self

    def __exit__(self, kind, value, traceback):
        if self._handler is not None:
            signal.signal(signal.SIGINT, self._handler)
        if self._raised is not None:
            raise self._raised
        return False


class Handle:
    """An object of the C API, freed with this one or by close()."""

    def __init__(self, pointer, free, what="object"):
        self._pointer = pointer
        self._free = getattr(lib, free)
        self._what = what

    def __bool__(self):
        return bool(self._pointer)

    @property
    def pointer(self):
        if not self._pointer:
            raise UsageError(2, f"the {self._what} is closed")
        return self._pointer

    def close(self):
        pointer, self._pointer = self._pointer, None
        if pointer:
            self._free(pointer)

    def __del__(self):
        if getattr(self, "_pointer", None):
            self.close()


class Closable:
    """Something with a _handle that close() frees, as does the end of a with block."""

    def close(self):
        """Frees it. What was made of it, and is still open, keeps what it needs of it."""
        self._handle.close()

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.close()


def new(name, free, *arguments):
    what = {"snapkv_prefix_free": "document"}.get(free, free.split("_")[1])
    return Handle(call(name, *arguments), free, what)


def size_of_logits(session):
    """(pointer, n) of a session's logits."""
    n = c_size_t()
    pointer = lib.snapkv_logits(session, byref(n))
    return pointer, n.value
