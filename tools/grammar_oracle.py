#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Record what llama.cpp answers by grammars and JSON schemas: tests/engine/grammar_oracle.json.

    grammar_oracle.py            asks for all cases below again and writes the file

The model is models/needle.gguf, the answers are greedy. $LLAMA_SERVER starts a real llama.cpp's server, as for
llama_oracle.py. tests/engine/grammar_oracle_test.cpp compares. A new case is a row here. Standard library only.
"""
import json

from llama_oracle import ROOT, TEXTS, Server

OUT = ROOT / "tests" / "engine" / "grammar_oracle.json"
N_PREDICT = 64
OBJECT = {"type": "object"}


def properties(required=None, **schemas):
    return {"type": "object", "properties": schemas, "required": list(schemas) if required is None else required}


# name, prompt, grammar (text) or schema
CASES = [
    ("choice", TEXTS[0], 'root ::= "yes" | "no" | "maybe"'),
    ("digits", TEXTS[0], 'root ::= " " [0-9]{3} "."'),
    ("free", TEXTS[0], "root ::= [^\\n]+"),
    ("words", TEXTS[1], 'root ::= (" " [a-z]+){4,7} "."'),
    ("recursion", TEXTS[1], 'root ::= "(" root ")" | [a-z] [a-z]? [a-z]?'),
    ("list", TEXTS[3], 'root ::= item+\nitem ::= "- " [A-Z] [a-z ]{2,12} "\\n"'),
    ("not ascii", TEXTS[3], 'root ::= [àéîöü„“—] "x" [^a-z]{2} .{3}'),
    ("exact", TEXTS[4], 'root ::= " The secret number " ("is" | "was") " " [1-9] [0-9]{2,} "!"'),
    ("comments", TEXTS[2], "# numbers\nroot ::= n (sep n)* # several\nsep ::= \", \" |\n  \" and \"\nn ::= [0-9]{2}"),
    ("object", TEXTS[0], properties(city={"type": "string", "maxLength": 12}, number={"type": "integer"})),
    ("range", TEXTS[0], properties(n={"type": "integer", "minimum": 100, "maximum": 54321})),
    ("enum", TEXTS[1], properties(kind={"enum": ["mill", "coin", "old", 3]}, sure={"type": "boolean"})),
    ("optional", TEXTS[1], properties(["a"], a={"type": "null"}, b={"type": "number"}, c={"type": "boolean"})),
    ("array", TEXTS[3], {"type": "array", "items": {"type": "integer", "minimum": 0}, "minItems": 2, "maxItems": 4}),
    ("tuple", TEXTS[3], {"type": "array", "prefixItems": [{"type": "boolean"}, {"type": "string", "minLength": 2, "maxLength": 5}]}),
    ("nested", TEXTS[0], properties(outer=properties(inner={"type": "array", "items": {"enum": ["a", "b"]}, "maxItems": 2}))),
    ("alternatives", TEXTS[2], {"anyOf": [properties(x={"type": "integer"}), {"type": "string", "pattern": "^[A-Z][a-z]{2,5}$"}]}),
    ("reference", TEXTS[2], {"$ref": "#/$defs/n", "$defs": {"n": properties(["v"], v={"type": "integer", "maximum": 9, "minimum": 1},
                                                                             next={"$ref": "#/$defs/n"})}}),
    ("map", TEXTS[4], {"type": "object", "additionalProperties": {"type": "integer"}}),
    ("date", TEXTS[4], properties(day={"type": "string", "format": "date"}, at={"type": "string", "format": "date-time"})),
    ("any object", TEXTS[0], OBJECT),
    ("const", TEXTS[0], properties(v={"const": "\"quoted\" \\ text"})),
]


def ask(server, prompt, rules):
    ids = server.post("/tokenize", {"content": prompt, "add_special": True})["tokens"]
    key = "grammar" if isinstance(rules, str) else "json_schema"
    r = server.post("/completion", {"prompt": ids, "n_predict": N_PREDICT, "temperature": 0.0, "cache_prompt": False,
                                    "return_tokens": True, key: rules})
    return ids, r


def main():
    server = Server(ROOT / "models" / "needle.gguf", "f32")
    cases = []
    try:
        for name, prompt, rules in CASES:
            ids, r = ask(server, prompt, rules)
            print(f"{name}: {r['content']!r} ({r['stop_type']})")
            cases.append({"name": name, "grammar" if isinstance(rules, str) else "schema": rules, "prompt": ids,
                          "tokens": r["tokens"], "text": r["content"], "ended": r["stop_type"] == "eos"})
    finally:
        server.stop()
    document = {"made_by": "tools/grammar_oracle.py, llama.cpp's server, models/needle.gguf, f32 cache", "n_predict": N_PREDICT,
                "cases": cases}
    OUT.write_text(json.dumps(document, ensure_ascii=False, indent=1) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
