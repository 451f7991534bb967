# SPDX-License-Identifier: MIT
"""A library exports the functions of its header and nothing else, all of them in the recorded
list: what programs link may be added to and never taken away.

usage: c_symbols_test.py LIBRARY HEADER LIST
"""

import re
import subprocess
import sys

library, header, recorded = sys.argv[1:]
lines = subprocess.run(["nm", "-D", "--defined-only", library], check=True, capture_output=True,
                       text=True).stdout.splitlines()
exported = {line.split()[-1].split("@")[0] for line in lines if line.split()[-2] != "A"}
text = re.sub(r"//[^\n]*", "", open(header, encoding="utf-8").read())
declared = set(re.findall(r"\b(snapkv_\w+)\(", text))
known = set(open(recorded, encoding="utf-8").read().split())
problems = []
for what, names in (("exported but not declared", exported - declared),
                    ("declared but not exported", declared - exported),
                    ("not in the recorded list (add it)", declared - known),
                    ("recorded but gone", known - declared)):
    problems += [f"{name}: {what}" for name in sorted(names)]
print("\n".join(problems) or f"{len(exported)} functions")
sys.exit(bool(problems))
