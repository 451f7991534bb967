# SPDX-License-Identifier: MIT
"""snapkv: long prompts in little memory.

    import snapkv

    model = snapkv.Model("model.gguf")
    document = model.prefill(open("book.txt").read())      # read once
    print(document.ask("\\nQuestion: Who is the captain?\\nAnswer:", max_tokens=20))
    for piece in model.chat("Tell me a story.", stream=True):
        print(piece, end="", flush=True)

``snapkv.options()`` lists what can be set by keyword. ``snapkv.hf`` compresses the cache of
transformers' models.
"""

from ._library import (Cancelled, ContextError, Error, ModelError, OutOfMemoryError, UsageError,
                       lib as _lib)
from ._model import Answer, Document, Model, Session, decode, options

__version__ = _lib.snapkv_version().decode()
__all__ = ["Answer", "Cancelled", "ContextError", "Document", "Error", "Model", "ModelError",
           "OutOfMemoryError", "Session", "UsageError", "decode", "options"]
