# SPDX-License-Identifier: MIT
"""Questions about many documents, on Ray Data."""

import concurrent.futures
import hashlib
import json
import os
import time
from pathlib import Path
from urllib.parse import quote

import pyarrow
import pyarrow.fs
import pyarrow.parquet
import ray

from .. import _server
from .._library import UsageError
from ._serving import words

#: The column by which a row is known again.
KEY = "snapkv_key"
#: Half of the caches' memory may keep the beginning that a document's questions share.
_PREFIX_SHARE = 2
_DEFAULT_MEMORY = 2 << 30


class _Asker:
    """An actor's work: one document after the other, each read once for all its questions."""

    def __init__(self, command, settings):
        self._server = _server.Server(command)
        self._settings = settings

    def __call__(self, row):
        begin = time.monotonic()
        row = dict(row)
        result = {"answers": None, "read_tokens": 0, "written_tokens": 0, "error": None}
        try:
            text = self._text(row)
            questions = _questions(row, self._settings)
            if questions:
                answers = [self._ask(text, questions[0])]
                with concurrent.futures.ThreadPoolExecutor(8) as pool:
                    answers += pool.map(lambda q: self._ask(text, q), questions[1:])
                result["answers"] = [a for a, _, _ in answers]
                result["read_tokens"] = sum(n for _, n, _ in answers)
                result["written_tokens"] = sum(n for _, _, n in answers)
            else:
                result["answers"] = []
        except _Refused as refused:  # one document's error is not the job's
            result["error"] = str(refused)
        row.pop("bytes", None)
        return {**row, **result, "seconds": time.monotonic() - begin}

    def _text(self, row):
        value = row.get("bytes")
        if value is None:
            value = row[self._settings["document"]]
        if isinstance(value, str):
            return value
        name = os.path.basename(row.get("path") or "document")
        return self._call(f"/v1/documents/text?name={quote(name)}", bytes(value))["text"]

    def _ask(self, text, question):
        body = {"temperature": 0, **self._settings["fields"],
                "messages": [{"role": "user", "content": f"{text}\n\n{question}"}]}
        answer = self._call("/v1/chat/completions", body)
        usage = answer["usage"]
        read = usage["prompt_tokens"] - usage["prompt_tokens_details"]["cached_tokens"]
        return answer["choices"][0]["message"]["content"] or "", read, usage["completion_tokens"]

    def _call(self, path, body):
        status, answer = self._server.request("POST", path, body)
        value = json.loads(answer)
        if status >= 400:
            raise _Refused(value["error"]["message"])
        return value


class _Refused(Exception):
    """The server's message about one document."""


def _questions(row, settings):
    found = row[settings["questions"]] if isinstance(settings["questions"], str) else \
        settings["questions"]
    if isinstance(found, str):
        return [found]
    return [str(q) for q in (found if found is not None else ())]


class _Key:
    """Adds the key: the same document, questions and settings have the same."""

    def __init__(self, settings):
        self._settings = settings

    def __call__(self, row):
        value = row["bytes"] if "bytes" in row else row[self._settings["document"]]
        data = value.encode() if isinstance(value, str) else bytes(value)
        key = hashlib.sha256(data)
        key.update(json.dumps([_questions(row, self._settings), self._settings["fields"],
                               self._settings["command"]]).encode())
        return {**row, KEY: key.hexdigest()}


def _read(path):
    """A dataset of a path: parquet, lines of JSON, or a folder of documents."""
    files = [path]
    if os.path.isdir(path):
        files = sorted(str(f) for f in Path(path).rglob("*") if f.is_file()
                       and not f.name.startswith("."))
        if not files:
            raise UsageError(2, f"'{path}': there are no files in this folder")
    endings = {os.path.splitext(f)[1].lower() for f in files}
    if endings == {".parquet"}:
        return ray.data.read_parquet(files)
    if endings <= {".jsonl", ".ndjson"}:
        return ray.data.read_json(files, lines=True)
    if endings & {".parquet", ".jsonl", ".ndjson"}:
        raise UsageError(2, f"'{path}': documents and tables ({', '.join(sorted(endings))}) are "
                            "together in it; keep them in folders of their own")
    return ray.data.read_binary_files(files, include_paths=True)


def _done(out):
    """Keys of the rows that are there already."""
    files, root = pyarrow.fs.FileSystem.from_uri(out) if "://" in out else (
        pyarrow.fs.LocalFileSystem(), os.path.abspath(out))
    info = files.get_file_info(pyarrow.fs.FileSelector(root, recursive=True, allow_not_found=True))
    names = [f.path for f in info if f.path.endswith(".parquet")]
    keys = set()
    for name in names:
        table = pyarrow.parquet.read_table(name, columns=[KEY, "error"], filesystem=files)
        keys.update(k for k, error in zip(*[table[c].to_pylist() for c in (KEY, "error")])
                    if error is None)
    return keys, bool(names)


def _pool(workers):
    if isinstance(workers, int):
        return ray.data.ActorPoolStrategy(size=workers)
    return ray.data.ActorPoolStrategy(min_size=workers[0], max_size=workers[1])


def ask(dataset, model, document="text", questions="questions", out=None, workers=1, cpus=1,
        gpus=0, rows_per_file=32, fields=None, kv_memory=_DEFAULT_MEMORY, **given):
    """Answers questions about many documents; each document is read once for all its questions.

    >>> snapkv.ray.ask("reports/", model="model.gguf", questions=["Who signed it?"], out="answers/")

    dataset: a ``ray.data.Dataset``, or a path: files of parquet or JSON lines, or a folder of
    documents (PDF, HTML, EPUB, Word, text). document: the column of the text (or of a document's
    bytes). questions: the column of a row's questions (a list, or one text), or the list of those
    that are asked about every document. model: a file that every node has under this path.

    out: a folder or URL for the answers as parquet. Rows that are there already are not computed
    again, but for those with an error; the dataset of all rows in it is returned. None: the dataset
    of the answers, which is computed when it is used. rows_per_file: rows after which answers are
    safe in a file.

    workers: processes with the model, a number or (least, most); cpus and gpus: of each. fields: of
    the requests, as of /v1/chat/completions ({"max_tokens": 100}; ``temperature`` is 0 unless
    given). Further arguments are options of ``snapkv serve``; ``kv_memory``: bytes for the caches
    of a process, of which half may hold a document's rows.

    New columns: answers (a list), error (None, or why there are none), read_tokens, written_tokens,
    seconds.
    """
    if isinstance(questions, (list, tuple)):
        questions = [str(q) for q in questions]
    given.setdefault("prefix_cache", int(kv_memory) // _PREFIX_SHARE)
    command = words(model, cpus, kv_memory=int(kv_memory), **given)
    settings = {"document": document, "questions": questions, "fields": dict(fields or {}),
                "command": command}
    rows = _read(os.fspath(dataset)) if isinstance(dataset, (str, os.PathLike)) else dataset
    rows = rows.map(_Key(settings))
    if out is not None:
        out = os.fspath(out)
        done, _ = _done(out)
        rows = rows.filter(lambda row: row[KEY] not in done)
    rows = rows.repartition(target_num_rows_per_block=rows_per_file)
    answered = rows.map(_Asker, fn_constructor_args=(command, settings), num_cpus=cpus,
                        num_gpus=gpus or None, compute=_pool(workers))
    if out is None:
        return answered
    answered.write_parquet(out)
    _, is_there = _done(out)
    return ray.data.read_parquet(out) if is_there else answered
