# SPDX-License-Identifier: MIT
"""frameworks.py NAME URL: the checks of one library that is built on other clients, as
python_clients.py has them for the clients. Each of these pins its own versions of others, so each
is run in an environment of its own."""
import json
import os
import subprocess
import sys
import tempfile
from pathlib import Path

from checks import HELLO, MODEL, check, need

os.environ["HAYSTACK_TELEMETRY_ENABLED"] = "False"
os.environ["LITELLM_LOCAL_MODEL_COST_MAP"] = "True"
os.environ["HF_HUB_OFFLINE"] = os.environ["HF_DATASETS_OFFLINE"] = "1"
TASKS = {  # of lm-eval: the output type, then what else each task says
    "colours": "output_type: multiple_choice\ndoc_to_target: label\n"
               "doc_to_choice: '{{choices}}'\nmetric_list:\n- metric: acc\n",
    "answers": "output_type: generate_until\ndoc_to_target: answer\n"
               "generation_kwargs:\n  until: [\"\\n\"]\n  max_gen_toks: 8\n"
               "metric_list:\n- metric: exact_match\n",
}


def get_weather(city: str) -> str:
    """The weather of a city."""
    return "sunny in " + city


def lm_eval(url):
    """Two tasks of its own, with the tokens of the server's /tokenize."""
    documents = [{"question": f"The colour of {thing} is", "choices": ["blue", "red"],
                  "label": label, "answer": "blue"} for thing, label in (("the sky", 0),
                                                                         ("blood", 1))]

    def run(folder):
        result = subprocess.run(
            [sys.executable, "-m", "lm_eval", "--model", "local-completions", "--model_args",
             f"model={MODEL},base_url={url}/v1/completions,tokenizer_backend=remote",
             "--tasks", ",".join(TASKS), "--include_path", folder, "--output_path",
             folder / "results"], capture_output=True, text=True)
        need(result.returncode == 0, (result.stderr.strip().splitlines() or ["no message"])[-1])
        return json.loads(next((folder / "results").rglob("results*.json")).read_text())["results"]

    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        data = folder / "data.jsonl"
        data.write_text("".join(json.dumps(each) + "\n" for each in documents))
        for task, rest in TASKS.items():
            (folder / f"{task}.yaml").write_text(
                f"task: {task}\ndataset_path: json\ntest_split: test\n"
                f"dataset_kwargs:\n  data_files:\n    test: {data}\n"
                f"doc_to_text: '{{{{question}}}}'\n{rest}")
        results = {}
        check("local-completions with the server's tokens", lambda: results.update(run(folder)))
        check("a task of log-likelihoods (multiple_choice)",
              lambda: need(0 <= results["colours"]["acc,none"] <= 1))
        check("a task of answers (generate_until)",
              lambda: need(0 <= results["answers"]["exact_match,none"] <= 1))


def llama_index(url):
    from llama_index.core.llms import ChatMessage
    from llama_index.core.tools import FunctionTool
    from llama_index.llms.openai_like import OpenAILike
    from pydantic import BaseModel

    class City(BaseModel):
        """A city."""
        name: str

    def model(**more):
        return OpenAILike(model=MODEL, api_base=url + "/v1", api_key="any", max_tokens=64,
                          context_window=8192, max_retries=0, is_chat_model=True,
                          is_function_calling_model=True, **more)

    chat = model()

    def tools():
        tool = FunctionTool.from_defaults(get_weather)
        answer = chat.chat_with_tools([tool], user_msg="Weather in Rome?", tool_required=True)
        call = chat.get_tool_calls_from_response(answer)[0]
        need(call.tool_name == "get_weather")
        result = ChatMessage(role="tool", content=str(tool(**call.tool_kwargs)),
                             additional_kwargs={"tool_call_id": call.tool_id})
        need(chat.chat([ChatMessage(role="user", content="Weather in Rome?"), answer.message,
                        result]).message.content is not None)

    hello = [ChatMessage(role="user", content="Say hello.")]
    check("chat", lambda: need(chat.chat(hello).message.content))
    check("stream", lambda: need(list(chat.stream_chat(hello))[-1].message.content))
    check("a tool and its result", tools)
    check("structured output (tool)", lambda: need(isinstance(
        chat.as_structured_llm(City).complete("A city?").raw, City)))
    check("structured output (schema)", lambda: need(isinstance(
        model(should_use_structured_outputs=True).as_structured_llm(City).complete(
            "A city?").raw, City)))
    check("completions", lambda: need(OpenAILike(
        model=MODEL, api_base=url + "/v1", api_key="any", max_tokens=16, max_retries=0,
        is_chat_model=False).complete("The sky is").text))


def dspy(url):
    """Without ReAct, whose arguments are an object of any form: a small model fills in no form that
    is only described to it."""
    from typing import Literal

    import dspy as library
    import litellm

    # what litellm knows of OpenAI's models, and cannot know of this one
    litellm.register_model({f"openai/{MODEL}": {
        "litellm_provider": "openai", "mode": "chat", "supports_function_calling": True,
        "supports_response_schema": True}})

    class Capital(library.Signature):
        question: str = library.InputField()
        capital: Literal["Rome", "Paris"] = library.OutputField()
        population: int = library.OutputField()

    class Ask(library.Signature):
        question: str = library.InputField()
        tools: list[library.Tool] = library.InputField()
        calls: library.ToolCalls = library.OutputField()

    def lm(**more):
        return library.LM(f"openai/{MODEL}", api_base=url + "/v1", api_key="any", max_tokens=100,
                          cache=False, num_retries=0, **more)

    def predict():
        answer = library.Predict(Capital)(question="The capital of Italy?")
        need(isinstance(answer.population, int) and answer.capital in ("Rome", "Paris"))

    def tools():
        answer = library.Predict(Ask)(
            question="Weather in Rome?", tools=[library.Tool(get_weather)],
            config={"tool_choice": "required", "parallel_tool_calls": False})
        need(answer.calls.tool_calls[0].execute().startswith("sunny in"))

    check("an LM", lambda: need(lm()("Say hello.", max_tokens=16)[0]))
    library.configure(lm=lm(engine="litellm"), adapter=library.JSONAdapter())
    check("Predict with a schema", predict)
    check("Predict with a tool", tools)


def haystack(url):
    from haystack.components.generators.chat import OpenAIChatGenerator
    from haystack.dataclasses import ChatMessage
    from haystack.tools import create_tool_from_function
    from haystack.utils import Secret
    from pydantic import BaseModel

    class City(BaseModel):
        name: str

    tool = create_tool_from_function(get_weather)
    hello = [ChatMessage.from_user("Say hello.")]

    def generator(**more):
        return OpenAIChatGenerator(api_key=Secret.from_token("any"), model=MODEL, timeout=300,
                                   api_base_url=url + "/v1", max_retries=0,
                                   generation_kwargs={"max_tokens": 64, **more})

    def stream():
        parts = []
        need(generator().run(hello, streaming_callback=parts.append)["replies"] and len(parts) > 1)

    def tools():
        reply = generator(tool_choice="required", parallel_tool_calls=False).run(
            hello, tools=[tool])["replies"][0]
        call = reply.tool_calls[0]
        need(call.tool_name == "get_weather", call)
        result = ChatMessage.from_tool(tool.invoke(**call.arguments), origin=call)
        need(generator().run([*hello, reply, result], tools=[tool])["replies"])

    check("chat", lambda: need(generator().run(hello)["replies"][0].text))
    check("stream", stream)
    check("a tool and its result", tools)
    check("structured output", lambda: need(City.model_validate_json(
        generator(response_format=City).run(hello)["replies"][0].text)))


def outlines(url):
    import outlines as library
    from openai import OpenAI
    from pydantic import BaseModel

    class City(BaseModel):
        name: str

    model = library.from_openai(OpenAI(base_url=url + "/v1", api_key="any"), MODEL)
    check("chat", lambda: need(model("Say hello.", max_tokens=16)))
    check("stream", lambda: need("".join(model.stream("Say hello.", max_tokens=16))))
    check("structured output", lambda: need(
        City.model_validate_json(model("A city?", City, max_tokens=64))))
    check("structured output, streamed", lambda: need(
        City.model_validate_json("".join(model.stream("A city?", City, max_tokens=64)))))


if __name__ == "__main__":
    name, base = sys.argv[1:]
    globals()[name.replace("-", "_")](base)
