#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# Runs `snapkv bench` and a llama-bench on the same GGUF file, in turns, and prints the rates and
# their ratios as a Markdown table. docs/performance.md explains the numbers.
set -euo pipefail

usage() {
  cat <<'TEXT'
LLAMA_BENCH=path bench/compare_llama.sh MODEL.gguf [options]
  -p LIST          prompt lengths to compare                              [512]
  -n N             tokens to generate in decode tests                     [32]
  -d LIST          tokens in the context before decode tests              [0]
  -t N             threads of both                                        [all]
  -r N             rounds; a round runs each program once                 [3]
  --budget LIST    rows that snapkv keeps                                 [1024]
  --kv-type TYPE   cache type of both, f16 or bf16                        [f16]
  --weights WHERE  what snapkv decodes from: auto, mapped or huge         [auto]
  --llama-p LIST   prompt lengths that llama-bench runs too               [as -p]
  --llama-d LIST   depths that llama-bench runs too                       [as -d]
  --llama-r N      rounds of llama-bench                                  [as -r]
  --keep DIR       keep every program's JSON there
LLAMA_BENCH  the llama-bench to run; may be several words ("tool.sh DIR llama-bench")
LLAMA_MODEL  the file as LLAMA_BENCH sees it                              [MODEL.gguf]
SNAPKV       the snapkv to run                         [build/release/bin/snapkv]
Rates are each program's best of its rounds. Where llama-bench did not run, the table has a dash.
TEXT
}
die() { echo "compare_llama.sh: $1" >&2; exit 2; }

[[ ${1:-} == -h || ${1:-} == --help ]] && { usage; exit 0; }
[[ $# -ge 1 && ${1:-} != -* ]] || { usage >&2; exit 2; }
model=$1; shift
n_prompt=512 n_gen=32 n_depth=0 threads=$(nproc) rounds=3 budgets=1024 kv_type=f16 weights=auto
llama_p='' llama_d='' llama_r='' keep=''
while [[ $# -gt 0 ]]; do
  [[ $# -ge 2 ]] || die "$1: a value is missing"
  case $1 in
    -p) n_prompt=$2 ;; -n) n_gen=$2 ;; -d) n_depth=$2 ;; -t) threads=$2 ;; -r) rounds=$2 ;;
    --budget) budgets=$2 ;; --kv-type) kv_type=$2 ;; --weights) weights=$2 ;;
    --llama-p) llama_p=$2 ;; --llama-d) llama_d=$2 ;; --llama-r) llama_r=$2 ;;
    --keep) keep=$2 ;;
    *) die "unknown option $1" ;;
  esac
  shift 2
done
llama_p=${llama_p:-$n_prompt} llama_d=${llama_d:-$n_depth} llama_r=${llama_r:-$rounds}
[[ $rounds =~ ^[1-9][0-9]*$ ]] || die "-r: '$rounds' is not a number of rounds"
[[ $llama_r =~ ^[0-9]+$ ]] || die "--llama-r: '$llama_r' is not a number of rounds"
[[ -f $model ]] || die "$model: no such file"
[[ -n ${LLAMA_BENCH:-} ]] || die "LLAMA_BENCH names no llama-bench"
read -ra llama_bench <<<"$LLAMA_BENCH"
snapkv=${SNAPKV:-$(dirname "$0")/../build/release/bin/snapkv}
[[ -x $snapkv ]] || die "$snapkv: no such program; build it or set SNAPKV"
command -v python3 >/dev/null || die "python3 is missing"
if [[ -n $keep ]]; then
  mkdir -p "$keep"; out=$keep
else
  out=$(mktemp -d); trap 'rm -rf "$out"' EXIT
fi

# run NAME COMMAND...: runs the command and saves its JSON as $out/NAME.json
run() {
  local name=$1; shift
  echo "compare_llama.sh: $name" >&2
  "$@" -o json >"$out/$name.json" 2>"$out/$name.log" || {
    local code=$?
    tail -n 20 "$out/$name.log" >&2
    echo "compare_llama.sh: exit code $code of: $*" >&2
    exit 1
  }
}
ours() {  # ROUND POLICY [OPTION...]
  local round=$1 policy=$2; shift 2
  local common=(-m "$model" -t "$threads" -r 1 --no-limits --kv-policy "$policy" --kv-type "$kv_type" "$@")
  [[ $checked == yes ]] && common+=(--no-check)  # one check, in the first run, is enough
  run "snapkv-$policy-prefill-$round" "$snapkv" bench "${common[@]}" -p "$n_prompt" -n 0
  [[ $checked == yes ]] || common+=(--no-check)
  checked=yes
  run "snapkv-$policy-decode-$round" "$snapkv" bench "${common[@]}" -p 0 -n "$n_gen" -d "$n_depth" \
    --weights "$weights"
}
theirs() {  # ROUND
  local common=(-m "${LLAMA_MODEL:-$model}" -t "$threads" -r 1)
  local types=(-ctk "$kv_type" -ctv "$kv_type")
  [[ $kv_type == f16 ]] && types=()  # llama-bench's default
  run "llama-prefill-$1" "${llama_bench[@]}" "${common[@]}" "${types[@]}" -p "$llama_p" -n 0
  run "llama-decode-$1" "${llama_bench[@]}" "${common[@]}" "${types[@]}" -p 0 -n "$n_gen" \
    -d "$llama_d"
}

rm -f "$out"/{llama,snapkv}-*.json
checked=no
for ((round = 1; round <= rounds; ++round)); do
  [[ $round -le $llama_r ]] && theirs "$round"
  ours "$round" full
  ours "$round" snapkv --kv-budget "$budgets"
done

python3 - "$out" <<'PYTHON'
import glob, json, os, sys

best = {}      # (program, budget) -> test -> best tokens per second
builds = {}    # program -> its own description
machine = ""
for path in sorted(glob.glob(os.path.join(sys.argv[1], "*.json"))):
    program = os.path.basename(path).split("-")[0]
    with open(path, encoding="utf-8") as file:
        for r in json.load(file):
            column = (program, None)
            if program == "snapkv":
                column = (r["kv_policy"], r["kv_budget"])
                machine = f'{r["cpu_info"]}, {r["n_threads"]} threads; {r["model_type"]}'
            test = ("prefill", r["n_prompt"], 0) if r["n_prompt"] else ("decode", r["n_depth"], 1)
            rate = max(r["samples_ts"])
            tests = best.setdefault(column, {})
            tests[test] = max(tests.get(test, 0), rate)
            builds[program] = f'{r["build_commit"]} ({r["backends"]})'

llama = best.get(("llama", None), {})
columns = sorted((c for c in best if c[0] != "llama"), key=lambda c: (c[0] != "full", -c[1]))
tests = sorted({t for tests in best.values() for t in tests}, key=lambda t: (t[2], t[1]))


def number(value):
    return f"{value:.2f}" if value < 100 else f"{value:.1f}"


def ratio(a, b):
    return f"{a / b:.2f}x" if a and b else "-"


header = ["test", "llama.cpp t/s"]
for policy, budget in columns:
    header += [f"{policy} {budget or ''}".strip() + " t/s", "ratio"]
rows = []
for test in tests:
    name = f"prefill {test[1]}" if test[0] == "prefill" else f"decode after {test[1]}"
    row = [name, number(llama[test]) if test in llama else "-"]
    for column in columns:
        rate = best[column].get(test)
        row += [number(rate) if rate else "-", ratio(rate, llama.get(test))]
    rows.append(row)
widths = [max(len(r[i]) for r in [header] + rows) for i in range(len(header))]


def line(cells):
    return "| " + " | ".join(c.rjust(w) if i else c.ljust(w)
                             for i, (c, w) in enumerate(zip(cells, widths))) + " |"


print(line(header))
print("|" + "|".join("-" * (w + 1) + (":" if i else "-") for i, w in enumerate(widths)) + "|")
print("\n".join(line(row) for row in rows))
print("\n" + "; ".join([machine] + [f"{p} {b}" for p, b in sorted(builds.items())]))
PYTHON
