#!/bin/sh
# SPDX-License-Identifier: MIT
# Makes the tables of docs/quality.md again, one file each, with the commands above them. For who
# changes a model or a policy:
#   eval/quality_tables.sh build/release/bin/snapkv models/needle.gguf FOLDER [TABLE...]
set -eu

if [ $# -lt 3 ]; then
  echo "usage: $0 SNAPKV MODEL FOLDER [budgets|policies|agnostic|stored|facts|pooling|ada|once|ruler|predictions|overlap ...]" >&2
  exit 2
fi
snapkv=$1 model=$2 out=$3
shift 3
[ $# -gt 0 ] || set -- budgets policies agnostic stored facts pooling ada once ruler predictions overlap turns
mkdir -p "$out"

# Runs `snapkv ...` and adds command and table to the table's file.
add() {
  file=$out/$table.md
  {
    printf '```sh\nsnapkv'
    printf ' %s' "$@"
    printf '\n```\n'
  } | tee -a "$file"
  "$snapkv" "$@" --no-progress | tee -a "$file"
  echo >> "$file"
}

# `snapkv eval needle ...` on the model, records in a file of the name $1.
needles() {
  records=$out/$1.jsonl
  shift
  rm -f "$records"
  add eval needle -m "$model" "$@" --out "$records"
}

seconds() { date +%s.%N; }

budgets() {
  needles budgets --depths 11 --samples 3 --budgets 64,128,256 --kernels 1,7,15 --kv-window 16
}

policies() {
  needles needle-policies --lengths 1000,2000,4000,8000 --depths 11 --samples 3 \
    --policies full,snapkv,pyramidkv,ada-snapkv,chunkkv,tova,h2o,expected-attention,streaming-llm,knorm,keydiff,random \
    --budgets 128,256,512 --kernels 15 --kv-window 16
}

agnostic() {
  for mode in aware agnostic; do
    flag=
    [ $mode = aware ] || flag=--question-agnostic
    needles question-$mode $flag --lengths 1000,2000 --depths 11 --samples 5 \
      --policies full,snapkv,streaming-llm,expected-attention,knorm,keydiff,random \
      --budgets 128,256,512 --kernels 15 --kv-window 16
  done
}

stored() {
  for mode in aware stored agnostic; do
    policies=full,snapkv flag= kernels='--kernels 15'
    [ $mode != stored ] || flag=--keep-full
    [ $mode != agnostic ] || policies=keydiff flag=--question-agnostic kernels=
    needles stored-$mode $flag --lengths 1000,2000,4000,8000 --depths 11 --samples 3 \
      --policies $policies --budgets 64,128,256,1024 $kernels --kv-window 16
    needles stored-four-$mode $flag --kind multi-query --lengths 1000,2000 --depths 11 --samples 3 \
      --policies $policies --budgets 64,128,256,1024 $kernels --kv-window 16
  done
}

facts() {
  for kind in multi-key multi-value multi-query; do
    needles $kind --kind $kind --lengths 1000,2000 --depths 11 --samples 5 \
      --policies full,snapkv,ada-snapkv,pyramidkv --budgets 128,256,512 --kernels 15 --kv-window 16
    needles $kind-critical --kind $kind --lengths 1000,2000 --depths 11 --samples 5 \
      --policies snapkv,ada-snapkv --kv-critical --budgets 128,256,512 --kernels 15 --kv-window 16
  done
}

pooling() {
  for window in 8 16 32 64; do
    needles pooling-$window --lengths 1000,2000 --depths 11 --samples 5 \
      --policies snapkv --kv-budget 128 --kernels 1,3,5,7,11,15,23,31 --kv-window $window
  done
}

ada() {
  needles ada --lengths 1000,2000 --depths 11 --samples 5 \
    --policies snapkv,ada-snapkv --budgets 64,128,256 --kernels 7,15 --kv-window 16
}

# Eight configurations: on one prefill, then each with a prefill of its own.
once() {
  begin=$(seconds)
  needles once -t 1 --lengths 4000 --depths 6 --policies snapkv,ada-snapkv,pyramidkv,streaming-llm \
    --budgets 128,256 --kernels 15 --kv-window 16
  middle=$(seconds)
  for policy in snapkv ada-snapkv pyramidkv streaming-llm; do
    for budget in 128 256; do
      kernels='--kernels 15'
      [ $policy != streaming-llm ] || kernels=
      needles once-$policy-$budget -t 1 --lengths 4000 --depths 6 --policies $policy \
        --budgets $budget $kernels --kv-window 16
    done
  done
  echo "$begin $middle $(seconds)" | awk '{
    printf "one prefill for all: %.1f s; a prefill for each: %.1f s; %.1f times faster\n",
           $2 - $1, $3 - $2, ($3 - $2) / ($2 - $1) }' | tee -a "$out/once.md"
}

ruler() {
  rm -f "$out/ruler.jsonl"
  add eval ruler -m "$model" --lengths 2048 --samples 5 --policies full,snapkv --budgets 256 \
    --kernels 15 --kv-window 16 --out "$out/ruler.jsonl"
}

# The text is 31214 tokens of filler: the prompts of a run.
predictions() {
  needles filler --lengths 8000 --depths 1 --samples 4 --policies snapkv --n-predict 1
  python3 -c 'import json, sys
for line in open(sys.argv[1]): print(json.loads(line)["prompt"])' \
    "$out/filler.jsonl" > "$out/filler.txt"
  rm -f "$out/predictions.md" "$out/fidelity.jsonl"
  add eval fidelity -m "$model" --text "$out/filler.txt" --lengths 1000,4000 --samples 8 \
    --policies snapkv,ada-snapkv,tova,h2o,streaming-llm,random --budgets 128,256 --kernels 15 \
    --kv-window 16 --out "$out/fidelity.jsonl"
}

turns() {
  for n in 2 4; do
    add eval turns -m "$model" --questions $n --lengths 1000,2000,4000,7500 --budgets 128,256 \
      --kernels 15 --kv-window 16
  done
  add eval turns -m "$model" --lengths 1000,2000,4000,7500 --policies snapkv --modes append \
    --budgets 128,256 --kernels 15 --kv-window 16 --question-agnostic
}

overlap() {
  rm -f "$out/overlap.jsonl"
  add eval overlap -m "$model" --samples 16 --out "$out/overlap.jsonl"
}

for table in "$@"; do
  case $table in
    budgets | policies | agnostic | stored | facts | pooling | ada | once | ruler | predictions | overlap | turns) ;;
    *) echo "$0: no table $table" >&2; exit 2 ;;
  esac
  rm -f "$out/$table.md"
  $table
done
