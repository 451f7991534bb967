#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# Builds the CUDA backend, checks it and measures the table of docs/performance.md on the first GPU,
# in parts of under ten minutes each.
set -euo pipefail

usage() {
  cat <<'TEXT'
bench/gpu.sh PART...
  build     configures and builds the preset `cuda` for this GPU
  test      the tests of every op and of steps on the device, and of sessions against the CPU
  sanitize  the same kernels under compute-sanitizer: memcheck, racecheck, initcheck
  models    writes the random models (FOLDER below; 13 + 15 GB, and smaller ones)
  machine   copy bandwidth and bf16 product rate of the GPU, which the ratios divide by
  decode    tokens/s after 16384 tokens, 7b-mha bf16, batch 1 and 2: budget 2048 and the full cache
  flat      tokens/s after 4096 to 524288 tokens, budget 1024 (the long ones on 4 layers)
  prefill   8b-gqa bf16, 32768 tokens; score + select + gather at 131072
  longest   1048576 tokens, 7b-mha bf16, budget 1024, in 80 GB: memory at that length on 8 of 32
            layers, with what the other 24 take added
  batch     longest prompt of two sequences in 80 GB: the compressed cache and the full one
  peer      transformers with kvpress' SnapKVPress on the same shape (KVPRESS=folder that holds the
            package kvpress), prefill and decode
  table     prints what the parts have measured
GPU_DIR  folder for models and records         [/tmp/snapkv-gpu]
BUILD    build folder                          [build/cuda]
TEXT
}
[[ $# -ge 1 && $1 != -h && $1 != --help ]] || { usage; exit $(( $# >= 1 ? 0 : 2 )); }
root=$(cd "$(dirname "$0")/.." && pwd)
dir=${GPU_DIR:-/tmp/snapkv-gpu} build=${BUILD:-$root/build/cuda}
snapkv=$build/bin/snapkv
mkdir -p "$dir"

# Runs snapkv bench with these options and saves its records as JSON lines under this name.
bench() {
  local name=$1; shift
  echo "gpu.sh: snapkv bench $*" >&2
  "$snapkv" bench --device cuda --no-progress -o jsonl "$@" >"$dir/$name.jsonl.new"
  mv "$dir/$name.jsonl.new" "$dir/$name.jsonl"
}
model() { echo "$dir/$1.gguf"; }
make_model() {  # shape type [layers [name]]
  local file; file=$(model "${4:-$1-$2}")
  [[ -f $file ]] || "$build/bin/snapkv-make-model" "$1" "$file" "$2" ${3:+"$3"}
}
# The bytes of 80 GB that are left for a prompt beside the weights.
beside_weights() {
  python3 - "$1" <<'PY'
import os, sys
print(80_000_000_000 - os.path.getsize(sys.argv[1]))
PY
}

part_build() {
  cmake -S "$root" -B "$build" --preset cuda -DCMAKE_CUDA_ARCHITECTURES=native \
    -DSNAPKV_PAGES=OFF >"$dir/build.log" 2>&1 || { tail -20 "$dir/build.log"; exit 1; }
  cmake --build "$build" -j "$(nproc)" >>"$dir/build.log" 2>&1 || { tail -40 "$dir/build.log"; exit 1; }
  tail -1 "$dir/build.log"
}
# Ends the script where the tests would skip themselves.
need_device() {
  bench device -m "$root/models/needle.gguf" -p 8 -n 0 -r 1
}
part_test() {
  need_device
  ctest --test-dir "$build" -R '^Cuda|_cuda$' --output-on-failure --no-tests=error -j 4
}
part_sanitize() {
  need_device
  for tool in memcheck racecheck initcheck; do
    for program in "$build"/bin/backend_cuda_*_test; do
      echo "== $tool $(basename "$program")"
      compute-sanitizer --tool "$tool" --error-exitcode 1 "$program" --gtest_brief=1 | tail -4
    done
  done
}
part_models() {
  make_model 7b-mha bf16
  make_model 8b-gqa bf16
  make_model 7b-mha bf16 8 7b-mha-8-layers
  make_model 7b-mha bf16 4 7b-mha-4-layers
  make_model 1b-gqa q8_0
  ls -l "$dir"/*.gguf
}
part_machine() { python3 "$root/bench/gpu_machine.py" | tee "$dir/machine.json"; }
part_decode() {
  local m; m=$(model 7b-mha-bf16)
  bench decode-short -m "$m" -p 0 -n 64 -d 16 -r 3 --kv-policy full --no-check
  bench decode-16k -m "$m" -p 0 -n 64 -d 16384 -b 1,2 -r 3 --chunk 4096 --kv-budget 2048 \
    --kv-policy snapkv,full --no-check
}
part_flat() {
  bench flat -m "$(model 7b-mha-4-layers)" -p 0 -n 64 -d 4096,16384,65536,262144,524288 -r 3 \
    --chunk 4096 --kv-budget 1024 --no-check
}
part_prefill() {
  bench prefill -m "$(model 8b-gqa-bf16)" -p 32768 -n 0 -r 3 --chunk 4096 --kv-budget 1024 --no-check
  bench prefill-128k -m "$(model 8b-gqa-bf16)" -p 131072 -n 0 -r 1 --chunk 4096 --kv-budget 1024 \
    --no-check --no-warmup
}
part_longest() {
  local m; m=$(model 7b-mha-8-layers)
  bench longest -m "$m" -p 1048576 -n 0 -r 1 --chunk 8192 --kv-budget 1024 --no-check --no-warmup \
    --memory-limit "$(beside_weights "$m")"
}
part_batch() {
  local m; m=$(model 7b-mha-bf16)
  "$snapkv" info -m "$m" -c 1048576 --kv-budget 1024 --chunk 8192 --json >"$dir/plan.json"
  python3 "$root/bench/gpu_table.py" batch "$dir" "$(beside_weights "$m")"
}
part_peer() { python3 "$root/bench/gpu_transformers.py" | tee "$dir/peer.json"; }
part_table() { python3 "$root/bench/gpu_table.py" table "$dir"; }

for part in "$@"; do
  declare -F "part_$part" >/dev/null || { echo "gpu.sh: no part $part" >&2; usage >&2; exit 2; }
done
for part in "$@"; do "part_$part"; done
