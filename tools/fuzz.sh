#!/bin/sh
# tools/fuzz.sh MINUTES [TARGET...]: runs fuzz targets for that long each, one after the other, all
# of them where none is named; called by `make fuzz`, which has built them. Inputs that reach new
# code are kept under build/fuzz/found. Ends with an error at the first input that crashes, leaks,
# or takes more than SNAPKV_FUZZ_TIMEOUT seconds (5); libFuzzer prints the file that it is in. Adds
# what was done to build/fuzz/figures.tsv: time, target, inputs tried, seconds of processor time,
# places reached in the code, inputs kept.
set -eu
cd "$(dirname "$0")/.."
seconds=$((60 * $1))
shift
figures=build/fuzz/figures.tsv
log=build/fuzz/last.$$
trap 'rm -f "$log" "$log.times"' EXIT

# Sets $now to the seconds of processor time of all commands so far. (In a substitution, "times"
# would tell those of the subshell.)
read_clock() {
  times >"$log.times"
  now=$(sed -n 2p "$log.times" | tr 'ms' '  ' | awk '{ printf "%.1f", $1 * 60 + $2 + $3 * 60 + $4 }')
}

# run NAME COMMAND...: the command, its output in $log too, its processor time in $used
run() {
  echo "fuzz: $1" >&2
  shift
  read_clock
  before=$now
  status=0
  "$@" >"$log" 2>&1 || status=$?
  if [ "$status" -ne 0 ]; then
    cat "$log"
    exit "$status"
  fi
  read_clock
  used=$(awk -v now="$now" -v before="$before" 'BEGIN { printf "%.1f", now - before }')
  echo "$used seconds of processor time, $(grep -a DONE "$log" || tail -n 3 "$log")"
}

record() {
  printf '%s\t%s\t%s\t%s\t%s\t%s\n' "$(date +%FT%T)" "$@" >>"$figures"
}

fuzz_hostile_model() {
  run hostile_model env SNAPKV_FUZZ_SECONDS="$seconds" SNAPKV_FUZZ_SEED="$(date +%s)" \
    build/release/bin/engine_hostile_model_test
  record hostile_model "$(sed -n 's/^\([0-9]*\) models, .*/\1/p' "$log")" "$used" - -
}

fuzz() {
  corpus=tests/fuzz/corpus_$1
  [ "$1" = gguf ] && corpus=tests/fuzz/corpus
  found=build/fuzz/found/$1
  mkdir -p "$found"
  [ -d "$corpus" ] || corpus=$found # some make their first inputs themselves
  run "$1" "build/fuzz/bin/fuzz_$1" -timeout="${SNAPKV_FUZZ_TIMEOUT:-5}" -max_len=8192 \
    -max_total_time="$seconds" -print_final_stats=1 -artifact_prefix=build/fuzz/ "$found" "$corpus"
  record "$1" "$(sed -n 's/^stat::number_of_executed_units: *//p' "$log")" "$used" \
    $(sed -n 's|^#[0-9]*\tDONE *cov: \([0-9]*\) .* corp: \([0-9]*\)/.*|\1 \2|p' "$log")
}

[ $# -gt 0 ] || set -- hostile_model $(ls build/fuzz/bin | sed -n 's/^fuzz_//p')
for target in "$@"; do
  if [ "$target" = hostile_model ]; then fuzz_hostile_model; else fuzz "$target"; fi
done
