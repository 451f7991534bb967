# SPDX-License-Identifier: MIT
"""What the clients' checks have in common: the model's name, a message, a tool, and check(), which
prints what was checked as a line of JSON: [what, error or ""]."""
import json
import os

os.environ.setdefault("OTEL_SDK_DISABLED", "true")
os.environ.setdefault("OPENAI_AGENTS_DISABLE_TRACING", "1")
os.environ.setdefault("OPENAI_API_KEY", "any")
os.environ.setdefault("ANTHROPIC_API_KEY", "any")
MODEL = "local"
HELLO = [{"role": "user", "content": "Say hello."}]
CITY = {"type": "object", "properties": {"city": {"type": "string", "maxLength": 20}},
        "required": ["city"], "additionalProperties": False}
TOOL = {"type": "function", "function": {"name": "get_weather", "description": "The weather",
                                         "parameters": CITY}}


def check(what, function):
    try:
        function()
        error = ""
    except Exception as e:  # whatever a client throws is its answer
        error = (f"{type(e).__name__}: {e}".splitlines() or [type(e).__name__])[0][:200]
    print(json.dumps([what, error]), flush=True)


def need(condition, what="not as expected"):
    if not condition:
        raise AssertionError(what)
