# SPDX-License-Identifier: MIT
"""The C API of libsnapkv_server.so (include/snapkv/snapkv_server.h): the server of ``snapkv serve``
in this process."""

import ctypes
import http.client
import json
import os
import socket
import tempfile
import threading
from ctypes import (CFUNCTYPE, POINTER, byref, c_char_p, c_double, c_int, c_size_t, c_void_p,
                    create_string_buffer)
from pathlib import Path

from . import _library as _c

_RELEASE = CFUNCTYPE(None, c_void_p)
_ERROR = (c_char_p, c_size_t)
_FUNCTIONS = {
    "snapkv_server_start": (c_int, (c_int, POINTER(c_char_p), c_char_p, POINTER(c_void_p)) + _ERROR),
    "snapkv_server_stop": (None, (c_void_p, c_double)),
    "snapkv_server_lend": (c_int, (c_void_p, c_char_p, c_void_p, c_size_t, _RELEASE, c_void_p)
                           + _ERROR),
    "snapkv_server_withdraw": (c_int, (c_void_p, c_char_p) + _ERROR),
}


def _open():
    """The library beside that of the engine, or where SNAPKV_SERVER_LIBRARY says."""
    given = os.environ.get("SNAPKV_SERVER_LIBRARY")
    path = Path(given) if given else Path(_c.lib._name).parent / "libsnapkv_server.so"
    try:
        library = ctypes.CDLL(str(path))
    except OSError as problem:
        raise ImportError(f"{problem}; SNAPKV_SERVER_LIBRARY may name the library") from problem
    for name, (result, arguments) in _FUNCTIONS.items():
        function = getattr(library, name)
        function.restype, function.argtypes = result, arguments
    return library


class _Lent:
    """The buffers that the server reads where they are."""

    def __init__(self):
        self._buffers, self._next, self._lock = {}, 1, threading.Lock()
        self.callback = _RELEASE(self._release)

    def add(self, buffer):
        with self._lock:
            number, self._next = self._next, self._next + 1
            self._buffers[number] = buffer
        return number

    def _release(self, number):
        with self._lock:
            self._buffers.pop(number, None)

    forget = _release

    def __len__(self):
        return len(self._buffers)


_lent = _Lent()  # as long as the process: a server may give a buffer back at its very end


class _Connection(http.client.HTTPConnection):
    """HTTP over a Unix socket."""

    def __init__(self, path):
        super().__init__("localhost")
        self._path = path

    def connect(self):
        self.sock = socket.socket(socket.AF_UNIX)
        self.sock.connect(self._path)


class Server:
    """A running server, with the options of ``snapkv serve`` as words. It listens at :attr:`socket`.

    Raises the package's errors where the options or the model cannot work.
    """

    def __init__(self, words, folder=None):
        self._library = _open()
        self._folder = tempfile.TemporaryDirectory(prefix="snapkv-", dir=folder)
        #: The path of the Unix socket on which HTTP is answered; only this user can use it.
        self.socket = os.path.join(self._folder.name, "http")
        self._pointer = c_void_p()
        words = [str(word).encode() for word in words]
        try:
            self._call("snapkv_server_start", len(words), (c_char_p * len(words))(*words),
                       self.socket.encode(), byref(self._pointer))
        except BaseException:
            self._folder.cleanup()
            raise

    def _call(self, name, *arguments):
        message = create_string_buffer(4096)
        code = getattr(self._library, name)(*arguments, message, len(message))
        if code:
            raise _c.error(code, message.value.decode("utf-8", "replace"))

    def request(self, method, path, body=None, headers=None):
        """(status, bytes) of an answer; ``body``: bytes, or what becomes JSON."""
        if body is not None and not isinstance(body, (bytes, bytearray, memoryview)):
            body = json.dumps(body).encode()
        connection = _Connection(self.socket)
        try:
            connection.request(method, path, body, headers or {})
            response = connection.getresponse()
            return response.status, response.read()
        finally:
            connection.close()

    def lend(self, name, data):
        """Makes a saved cache (a numpy array of uint8, C-contiguous) known by a name: ``kv.snapshot``
        of requests names a document, ``kv.read`` a prompt. It is not copied, and must not change."""
        number = _lent.add(data)
        try:
            self._call("snapkv_server_lend", self._pointer, name.encode(), data.ctypes.data,
                       data.nbytes, _lent.callback, number)
        except BaseException:
            _lent.forget(number)
            raise

    def withdraw(self, name):
        """Forgets what was lent; requests that use it go on."""
        self._call("snapkv_server_withdraw", self._pointer, name.encode())

    @staticmethod
    def n_lent():
        """How many buffers servers of this process still use."""
        return len(_lent)

    def stop(self, seconds=0):
        """Finishes what runs, at most for ``seconds``, and ends the server."""
        pointer, self._pointer = self._pointer, c_void_p()
        if pointer:
            self._library.snapkv_server_stop(pointer, seconds)
            self._folder.cleanup()

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.stop()
        return False
