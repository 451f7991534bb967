# SPDX-License-Identifier: MIT
"""python_clients.py NAME URL: one client's checks, each a line of JSON: [what, error or ""]. Run by
tools/client_walk.py with the Python that has the client."""
import json
import sys

from checks import CITY, HELLO, MODEL, TOOL, check, need

CLAUDE_TOOL = {"name": "get_weather", "description": "The weather", "input_schema": CITY}


def openai(url):
    from openai import APIStatusError, BadRequestError, OpenAI
    from pydantic import BaseModel

    class City(BaseModel):
        name: str
        population: int

    client = OpenAI(base_url=url + "/v1", api_key="any", max_retries=0)
    chat, limit = client.chat.completions, {"model": MODEL, "max_tokens": 16}

    def stream():
        parts = list(chat.create(messages=HELLO, stream=True,
                                 stream_options={"include_usage": True}, **limit))
        need(parts[-1].usage.completion_tokens > 0)

    def tools():
        for choice in ("required", {"type": "function", "function": {"name": "get_weather"}}):
            answer = chat.create(messages=HELLO, tools=[TOOL], tool_choice=choice, model=MODEL,
                                 max_tokens=64, parallel_tool_calls=False)
            call = answer.choices[0].message.tool_calls[0]
            need(call.function.name == "get_weather" and answer.choices[0].finish_reason ==
                 "tool_calls")
            result = [*HELLO, answer.choices[0].message.model_dump(exclude_none=True),
                      {"role": "tool", "tool_call_id": call.id, "content": "sunny"}]
            need(chat.create(messages=result, tools=[TOOL], **limit).choices)

    def responses():
        create = client.responses.create
        need(create(model=MODEL, input="Hi", max_output_tokens=16).output)
        types = [event.type for event in create(model=MODEL, input="Hi", max_output_tokens=16,
                                                stream=True)]
        need(types[0] == "response.created" and types[-1] in
             ("response.completed", "response.incomplete"), types)

    def echo():
        choice = client.completions.create(model=MODEL, prompt="The sky is blue.", echo=True,
                                           logprobs=1, max_tokens=1).choices[0]
        values = choice.logprobs.token_logprobs
        need(values[0] is None and all(value <= 0 for value in values[1:]))

    def words():
        try:
            chat.create(messages=[{"role": "user", "content": "word " * 200000}], **limit)
        except BadRequestError as e:
            need("maximum context length is" in str(e) and e.request_id.startswith("req_"))
            return
        raise AssertionError("a long prompt was accepted")

    def embeddings():
        try:
            client.embeddings.create(model=MODEL, input="x")
        except APIStatusError as e:
            need(e.status_code == 501)

    check("models", lambda: need(client.models.list().data[0].id == MODEL))
    check("chat", lambda: need(chat.create(messages=HELLO, **limit).choices[0].message.content))
    check("stream", stream)
    check("tools", tools)
    check("structured output", lambda: need(isinstance(
        chat.parse(messages=HELLO, response_format=City, model=MODEL,
                   max_tokens=128).choices[0].message.parsed, City)))
    check("responses", responses)
    check("echo with logprobs", echo)
    check("context errors", words)
    check("embeddings (501)", embeddings)


def anthropic(url):
    from anthropic import Anthropic, BadRequestError

    client = Anthropic(base_url=url, api_key="any", max_retries=0)
    limit = {"model": "claude-sonnet-4-5", "max_tokens": 16}

    def stream():
        with client.messages.stream(messages=HELLO, **limit) as events:
            need(events.get_final_message().usage.output_tokens > 0)

    def tools():
        answer = client.messages.create(messages=HELLO, tools=[CLAUDE_TOOL], model="claude-x",
                                        tool_choice={"type": "any"}, max_tokens=64)
        need(answer.content[0].type == "tool_use" and answer.stop_reason in
             ("tool_use", "max_tokens"))

    def words():
        try:
            client.messages.create(messages=[{"role": "user", "content": "word " * 200000}],
                                   **limit)
        except BadRequestError as e:
            need("prompt is too long" in str(e))
            return
        raise AssertionError("a long prompt was accepted")

    check("models", lambda: need(client.models.list().data[0].display_name == MODEL))
    check("messages", lambda: need(client.messages.create(messages=HELLO, **limit).content))
    check("stream", stream)
    check("tools", tools)
    check("count_tokens", lambda: need(client.messages.count_tokens(
        model="claude-x", messages=HELLO).input_tokens > 3))
    check("prefill", lambda: need(client.messages.create(
        messages=[*HELLO, {"role": "assistant", "content": "Hel"}], **limit)))
    check("context errors", words)


def ollama(url):
    from ollama import Client

    client = Client(host=url)
    options = {"num_predict": 16}

    def tools():
        answer = client.chat(MODEL, HELLO, tools=[TOOL], options={"num_predict": 32})
        need(answer.message.content is not None)

    check("list, show, ps", lambda: need(
        client.list().models[0].model == MODEL and client.show(MODEL).capabilities and
        client.ps().models))
    check("chat", lambda: need(client.chat(MODEL, HELLO, options=options).message.content))
    check("stream", lambda: need(list(client.chat(MODEL, HELLO, stream=True,
                                                  options=options))[-1].done))
    check("tools", tools)
    check("schema", lambda: need("city" in json.loads(
        client.chat(MODEL, HELLO, format=CITY, options={"num_predict": 64}).message.content)))
    check("generate", lambda: need(client.generate(MODEL, "Hi", options=options).response))


def langchain(model, structured=True):
    from langchain_core.tools import tool
    from pydantic import BaseModel

    class City(BaseModel):
        """A city."""
        name: str

    @tool
    def get_weather(city: str) -> str:
        """The weather of a city."""
        return "sunny in " + city

    check("invoke", lambda: need(model.invoke("Say hello.").content is not None))
    check("stream", lambda: need(list(model.stream("Say hello."))))
    check("a tool", lambda: need(model.bind_tools([get_weather]).invoke("Weather in Rome?")))
    if structured:
        check("structured output", lambda: need(isinstance(
            model.with_structured_output(City).invoke("A city?"), City)))


def langchain_openai(url):
    from langchain_openai import ChatOpenAI

    langchain(ChatOpenAI(base_url=url + "/v1", api_key="any", model=MODEL, max_tokens=64))


def langchain_anthropic(url):
    from langchain_anthropic import ChatAnthropic

    langchain(ChatAnthropic(base_url=url, api_key="any", model=MODEL, max_tokens=64))


def langchain_ollama(url):
    from langchain_ollama import ChatOllama

    langchain(ChatOllama(base_url=url, model=MODEL, num_predict=64))


def pydantic_ai(url):
    from pydantic import BaseModel
    from pydantic_ai import Agent
    from pydantic_ai.models.openai import OpenAIChatModel
    from pydantic_ai.providers.openai import OpenAIProvider

    class City(BaseModel):
        name: str

    model = OpenAIChatModel(MODEL, provider=OpenAIProvider(base_url=url + "/v1", api_key="any"))
    settings = {"max_tokens": 64, "parallel_tool_calls": False}
    check("an agent", lambda: need(Agent(model, model_settings=settings).run_sync("Hi").output))
    check("an output type", lambda: need(isinstance(
        Agent(model, output_type=City, model_settings=settings).run_sync("A city?").output, City)))


def instructor(url):
    import instructor as library
    from openai import OpenAI
    from pydantic import BaseModel

    class City(BaseModel):
        name: str

    for mode in (library.Mode.TOOLS, library.Mode.JSON_SCHEMA):
        client = library.from_openai(OpenAI(base_url=url + "/v1", api_key="any"), mode=mode)
        check(f"response_model ({mode.name})", lambda: need(isinstance(
            client.chat.completions.create(model=MODEL, messages=HELLO, response_model=City,
                                           max_tokens=64, max_retries=0), City)))


def litellm(url):
    import litellm as library

    def words(model, base):
        try:
            library.completion(model=model, api_base=base, api_key="any", max_tokens=5,
                               messages=[{"role": "user", "content": "word " * 200000}])
        except library.ContextWindowExceededError:
            return
        raise AssertionError("no ContextWindowExceededError")

    for model, base in ((f"openai/{MODEL}", url + "/v1"), ("anthropic/claude-x", url),
                        (f"ollama_chat/{MODEL}", url)):
        provider = model.split("/")[0]
        check(f"{provider}: completion", lambda: need(library.completion(
            model=model, api_base=base, api_key="any", messages=HELLO,
            max_tokens=16).choices[0].message.content is not None))
        if provider != "ollama_chat":
            check(f"{provider}: context errors", lambda: words(model, base))


def openai_agents(url):
    from agents import Agent, ModelSettings, OpenAIChatCompletionsModel, Runner, function_tool
    from agents import OpenAIResponsesModel, set_tracing_disabled
    from openai import AsyncOpenAI

    set_tracing_disabled(True)

    @function_tool
    def get_weather(city: str) -> str:
        """The weather of a city."""
        return "sunny in " + city

    client = AsyncOpenAI(base_url=url + "/v1", api_key="any")
    for kind in (OpenAIChatCompletionsModel, OpenAIResponsesModel):
        agent = Agent(name="a", instructions="Be brief.", tools=[get_weather],
                      model=kind(MODEL, client),
                      model_settings=ModelSettings(max_tokens=64, tool_choice="get_weather"))
        check(f"a tool ({kind.__name__})", lambda: need(
            Runner.run_sync(agent, "Weather in Rome?", max_turns=4).new_items))


def smolagents(url):
    from smolagents import OpenAIServerModel, tool

    @tool
    def get_weather(city: str) -> str:
        """The weather of a city.

        Args:
            city: Its name.
        """
        return "sunny in " + city

    model = OpenAIServerModel(MODEL, api_base=url + "/v1", api_key="any", max_tokens=64)
    check("a model's tool call", lambda: need(model(
        HELLO, tools_to_call_from=[get_weather]).tool_calls[0].function.name == "get_weather"))


if __name__ == "__main__":
    name, base = sys.argv[1:]
    globals()[name.replace("-", "_")](base)
