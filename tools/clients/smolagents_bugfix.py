# SPDX-License-Identifier: MIT
"""smolagents_bugfix.py tools|code URL TASK: smolagents' ToolCallingAgent, which asks for a call in
every answer (tool_choice "required"), or its CodeAgent, which writes Python, on the current folder,
with tools that list, read and edit files."""
import sys
from pathlib import Path

from smolagents import CodeAgent, OpenAIServerModel, ToolCallingAgent, tool


@tool
def list_files() -> str:
    """Lists the names of the files in the repository."""
    return "\n".join(sorted(path.name for path in Path().glob("*.py")))


@tool
def read_file(name: str) -> str:
    """Returns the text of a file.

    Args:
        name: The file's name.
    """
    return Path(name).read_text()


@tool
def replace_in_file(name: str, old: str, new: str) -> str:
    """Replaces a text in a file, which must be in it exactly once.

    Args:
        name: The file's name.
        old: The text to replace, as it is in the file.
        new: What takes its place.
    """
    text = Path(name).read_text()
    if text.count(old) != 1:
        return f"error: {name} has this text {text.count(old)} times"
    Path(name).write_text(text.replace(old, new))
    return "done"


kind, url, task = sys.argv[1:]
model = OpenAIServerModel("local", api_base=url + "/v1", api_key="any", max_tokens=1024)
kinds = {"tools": ToolCallingAgent, "code": CodeAgent}
agent = kinds[kind](tools=[list_files, read_file, replace_in_file], model=model, max_steps=8)
print(agent.run(task))
