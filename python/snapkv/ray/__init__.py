# SPDX-License-Identifier: MIT
"""snapkv on more than one machine, with Ray (``pip install snapkv[ray]``); docs/machines.md.

    import ray, snapkv.ray
    from ray import serve

    engine = snapkv.ray.Engine("model.gguf", kv_budget=1024)         # a model in an actor
    print(engine.chat("Why is the sky blue?", max_tokens=60))

    serve.run(snapkv.ray.app("model.gguf", replicas=4))              # the APIs of `snapkv serve`

    answered = snapkv.ray.ask("documents/", model="model.gguf",      # a batch of documents
                              questions=["Who wrote it?"], out="answers/")

Models are files, which every node must find under the same path.
"""

from ._batch import ask
from ._engine import Engine
from ._serving import app, build

__all__ = ["Engine", "app", "ask", "build"]
