# SPDX-License-Identifier: MIT
"""An agent in a hundred lines: OpenAI's chat completions with two tools, none of them forced, in a loop
until the model answers without a call. first_hour.py lets it fix a bug."""
import json
import subprocess
import sys
import urllib.error
import urllib.request

FILES = {
    "cart.py": '''"""A shopping cart."""


class Cart:
    def __init__(self):
        self.items = []  # (name, price in cents, quantity)

    def add(self, name, price, quantity=1):
        self.items.append((name, price, quantity))

    def subtotal(self):
        return sum(price + quantity for _, price, quantity in self.items)
''',
    "test_cart.py": '''import unittest

from cart import Cart


class CartTest(unittest.TestCase):
    def test_subtotal(self):
        cart = Cart()
        cart.add("apple", 30, 4)
        cart.add("pear", 45)
        self.assertEqual(cart.subtotal(), 165)


if __name__ == "__main__":
    unittest.main()
''',
}
SYSTEM = ("You are a coding agent. Use the tools to read and change the files; after each call you get its "
          "result. When the task is done, say so in a sentence.")
TASK = ("Read the file cart.py. Its subtotal has a bug: replace price + quantity by price * quantity in the "
        "file.")
TURNS = 6


def tool(name, description, **texts):
    return {"type": "function", "function": {
        "name": name, "description": description, "parameters": {
            "type": "object", "required": list(texts), "additionalProperties": False,
            "properties": {key: {"type": "string", "description": text} for key, text in texts.items()}}}}


TOOLS = [tool("read_file", "Returns the content of a file.", file="the file's name"),
         tool("replace", "Replaces a piece of a file's text by another.", file="the file's name",
              old="the text to replace, as it stands in the file", new="the text to put there")]


def call(folder, name, arguments):
    """What a tool returns."""
    file = arguments["file"]
    if file not in FILES:
        return f"error: there is no file {file}; there are {', '.join(FILES)}"
    if name == "read_file":
        return (folder / file).read_text()
    text = (folder / file).read_text()
    if arguments["old"] not in text:
        return f"error: {file} has no text {arguments['old']}"
    (folder / file).write_text(text.replace(arguments["old"], arguments["new"]))
    return "replaced"


def answer(url, messages, seconds):
    body = {"model": "local", "messages": messages, "tools": TOOLS, "max_tokens": 256}
    request = urllib.request.Request(url + "/v1/chat/completions", json.dumps(body).encode(),
                                     {"Content-Type": "application/json"})
    with urllib.request.urlopen(request, timeout=seconds) as reply:
        return json.load(reply)["choices"][0]["message"]


def fix_bug(url, folder, seconds):
    """Lets the server's model fix the bug. Returns what went wrong, or an empty text."""
    for name, text in FILES.items():
        (folder / name).write_text(text)
    messages = [{"role": "system", "content": SYSTEM}, {"role": "user", "content": TASK}]
    for _ in range(TURNS):
        message = answer(url, messages, seconds)
        messages.append(message)
        if not message.get("tool_calls"):
            break
        for each in message["tool_calls"]:
            function = each["function"]
            messages.append({"role": "tool", "tool_call_id": each["id"], "name": function["name"],
                             "content": call(folder, function["name"], json.loads(function["arguments"]))})
    (folder / "test_cart.py").write_text(FILES["test_cart.py"])
    tests = subprocess.run([sys.executable, "-B", "-m", "unittest", "-q"], cwd=folder, text=True,
                           capture_output=True, timeout=seconds)
    if tests.returncode == 0:
        return ""
    return f"{json.dumps(messages, indent=1)}\n{tests.stderr}"
