#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""record_templates.py FOLDER > templates.json: what transformers makes of the templates in FOLDER.

The golden file of jinja_templates_test: for every template and conversation (conversations.json) the
length and FNV-1a hash of the text, or the error. Templates are compiled by transformers itself; only
the clock is stopped. Needs Python's transformers and jinja2.
"""
import copy
import json
import sys
from datetime import datetime, timezone
from pathlib import Path

from transformers.utils import chat_template_utils

NOW = datetime.fromtimestamp(1721988000, timezone.utc)  # 2024-07-26 10:00:00


def fnv1a(data):
    code = 0xcbf29ce484222325
    for byte in data:
        code = (code ^ byte) * 0x100000001b3 % 2**64
    return f"{code:016x}"


def render(template, variables):
    try:
        text = template.render(**copy.deepcopy(variables)).encode()
    except Exception as e:  # any exception means that an error is expected
        return {"error": f"{type(e).__name__}: {e}"[:100]}
    return {"bytes": len(text), "fnv1a": fnv1a(text)}


def main():
    conversations = json.loads(Path(__file__).with_name("conversations.json").read_text())
    results = {}
    for file in sorted(Path(sys.argv[1]).iterdir()):
        template = chat_template_utils._compile_jinja_template(file.read_bytes().decode())
        template.environment.globals["strftime_now"] = NOW.strftime
        results[file.name] = {name: render(template, variables)
                              for name, variables in conversations.items()}
    lines = (f"  {json.dumps(name)}: {json.dumps(texts)}" for name, texts in results.items())
    print(f'{{"now": {int(NOW.timestamp())}, "templates": {{\n' + ",\n".join(lines) + "\n}}")


if __name__ == "__main__":
    main()
