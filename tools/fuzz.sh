#!/bin/sh
# tools/fuzz.sh MINUTES: runs every fuzz target for that long, one after the other; called by
# `make fuzz`, which has built them. Inputs that reach new code are kept under build/fuzz/found. Ends
# with an error at the first input that crashes, leaks, or takes more than 5 seconds; libFuzzer
# prints the file that it is in.
set -eu
cd "$(dirname "$0")/.."
seconds=$((60 * $1))

SNAPKV_FUZZ_SECONDS=$seconds SNAPKV_FUZZ_SEED=$(date +%s) \
  build/release/bin/engine_hostile_model_test

for target in build/fuzz/bin/fuzz_*; do
  name=${target##*/fuzz_}
  corpus=tests/fuzz/corpus_$name
  [ "$name" = gguf ] && corpus=tests/fuzz/corpus
  found=build/fuzz/found/$name
  mkdir -p "$found"
  [ -d "$corpus" ] || corpus=$found # some make their first inputs themselves
  "$target" -timeout=5 -max_len=8192 -max_total_time="$seconds" "$found" "$corpus"
done
