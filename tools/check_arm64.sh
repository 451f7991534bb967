#!/bin/sh
# tools/check_arm64.sh [TEST-REGEX]: builds the library and its tests for ARM64 on another processor and
# runs the tests of formats, ops, caches and sessions with qemu, or those that the regular expression
# matches. Takes more than an hour. Needs Debian with the packages g++-aarch64-linux-gnu and
# qemu-user-static; Debian's ARM64 libraries come into build/arm64-root, the build into build/arm64. Not
# part of ctest.
set -eu
cd "$(dirname "$0")/.."
for program in aarch64-linux-gnu-g++ qemu-aarch64-static; do
  command -v "$program" >/dev/null || {
    echo "$program not found: apt-get install g++-aarch64-linux-gnu qemu-user-static" >&2
    exit 1
  }
done

root=$PWD/build/arm64-root
if [ ! -f "$root/complete" ]; then
  rm -rf "$root"
  mkdir -p "$root/usr/lib" "$root/apt/lists/partial" "$root/apt/archives/partial"
  ln -s usr/lib "$root/lib"
  : >"$root/apt/status"
  # this system's sources, but for another processor and without what is installed here
  arm64_apt() {
    apt-get -qq -o APT::Architecture=arm64 -o APT::Architectures=arm64 -o Dir::State="$root/apt" \
      -o Dir::State::status="$root/apt/status" -o Dir::Cache="$root/apt" -o Debug::NoLocking=1 "$@"
  }
  arm64_apt update
  arm64_apt install --download-only --no-install-recommends --yes libc6-dev libstdc++-12-dev libgomp1 \
    libdnnl-dev ocl-icd-opencl-dev libhwy-dev libfmt-dev nlohmann-json3-dev libpcre2-dev libutf8proc-dev \
    libxxhash-dev libsentencepiece-dev libgtest-dev >/dev/null
  for package in "$root"/apt/archives/*.deb; do
    # this system's tar, since a link may stand where the package has a folder
    dpkg-deb --fsys-tarfile "$package" | tar -x --keep-directory-symlink -C "$root"
  done
  # links from the root of a system would lead out of this one
  find "$root/usr" -type l -lname '/*' | while read -r link; do
    ln -sfnr "$root$(readlink "$link")" "$link"
  done
  rm -r "$root/apt/archives"
  touch "$root/complete"
fi

programs="base_test format_test backend_op_test backend_ops_test backend_sequence_ops_test
  backend_stream_ops_test backend_matmul_test backend_score_ops_test backend_cpu_kernels_test
  cache_kv_layer_test cache_layer_state_test policy_test engine_test engine_targets_test
  snapkv_c_consumer"
cmake --preset release -B build/arm64 --toolchain cmake/arm64-linux.cmake -DSNAPKV_ARM64_ROOT="$root" \
  -DSNAPKV_BUILD_APP=OFF -DSNAPKV_BUILD_BENCH=OFF -DSNAPKV_PAGES=OFF -DSNAPKV_C_LIBRARY=OFF
# shellcheck disable=SC2086  # words
cmake --build build/arm64 --parallel "${JOBS:-$(nproc)}" --target $programs
# What other programs would have comes out as tests that were not built. Large products and random models
# take minutes each here; qemu's processes do not end as tests of deaths expect, do not start others, and
# have memory of their own.
never='_NOT_BUILT|Death|Signals|SharedProductTest|RandomModelHasTheSameBytes|BytesDoNotDependOnThreads'
never="$never|OpTest.*project_(cpu|packed)|MemoryPromise|ControlGroup"
export OMP_WAIT_POLICY=passive  # else threads that wait take the processor from the others
run_tests() {  # run_tests NEVER [TEST-REGEX]
  ctest --test-dir build/arm64 --parallel "$(nproc)" --output-on-failure --timeout 900 \
    --exclude-regex "$1" ${2:+--tests-regex "$2"}
}
if [ $# -gt 0 ]; then
  run_tests "$never" "$1"
else
  run_tests "$never|^Models/"
  # of the families' tests those of one model for each kind of layer: the others differ in what is not
  # the processor's
  models='needle|llama_yarn|mixtral|gemma3|gemma4_e|gemma3n|gpt_oss|deepseek2|qwen35moe|lfm2moe'
  models="$models|granitehybrid|llama4_chunks"
  run_tests "$never" "^Models/.*(LogProbabilities|ComputesTheSame|StaysClose|ReadWhat).*/($models)$"
fi
