#!/bin/sh
# tools/fuzz.sh MINUTES [TARGET...]: runs each fuzz target for MINUTES, one after another; all
# targets if none is named. `make fuzz` builds them first. Inputs that reach new code are kept in
# build/fuzz/found. Stops with an error at the first input that crashes, leaks, or takes more than
# five seconds of processor time (tests/fuzz/time_limit.h) or a minute of real time; libFuzzer
# prints the input's file. Appends to build/fuzz/figures.tsv: time, target, inputs tried, seconds of
# processor time, places reached in the code, inputs kept.
set -eu
cd "$(dirname "$0")/.."
seconds=$((60 * $1))
shift
figures=build/fuzz/figures.tsv
log=build/fuzz/last.$$
folder=
trap 'rm -rf "$log" "$log.times" "$folder"' EXIT

# Sets $now to the processor time of all commands so far, in seconds. (In a command substitution,
# "times" would report the subshell's.)
read_clock() {
  times >"$log.times"
  now=$(sed -n 2p "$log.times" | tr 'ms' '  ' | awk '{ printf "%.1f", $1 * 60 + $2 + $3 * 60 + $4 }')
}

# run NAME COMMAND...: runs the command, copies its output to $log and sets $used to its processor
# time
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

# Sets $folder to a folder for temporary files, in memory if possible: a disk would take longer than
# the code under test.
make_folder() {
  rm -rf "$folder"
  folder=$(mktemp -d -p /dev/shm 2>/dev/null || mktemp -d)
}

record() {
  printf '%s\t%s\t%s\t%s\t%s\t%s\n' "$(date +%FT%T)" "$@" >>"$figures"
}

fuzz_hostile_model() {
  make_folder
  run hostile_model env SNAPKV_FUZZ_SECONDS="$seconds" SNAPKV_FUZZ_SEED="$(date +%s)" \
    TEST_TMPDIR="$folder" build/release/bin/engine_test --gtest_filter='HostileModel*'
  record hostile_model "$(sed -n 's/^\([0-9]*\) models, .*/\1/p' "$log")" "$used" - -
}

# Makes saved sessions of the repository's model.
make_sessions() {
  mkdir -p "$1"
  while read -r name options; do
    build/release/bin/snapkv compress --model models/needle.gguf --prompt "The secret" $options \
      --output "$1/$name" 2>/dev/null
  done <<EOF
plain
every_row --keep-full
q8_0 --kv-policy pyramidkv --kv-type q8_0
queries --kv-policy ada-snapkv --kv-budget 20 --kv-decode-limit 100
EOF
}

# Makes a page, a Word document and a book.
make_documents() {
  mkdir -p "$1"
  python3 - "$1" <<'EOF'
import sys, zipfile
page = ("<!DOCTYPE html><html><meta charset=iso-8859-2><body><p>A <b>page</b>.<pre>x</pre><ul><li>one"
        "<li>two</ul><script>no</script><table><tr><td>1<td>2</table>&amp;&#x41;</body></html>")
container = ('<container><rootfiles><rootfile full-path="b.opf"/></rootfiles></container>')
package = ('<package><manifest><item id="a" href="a.xhtml" media-type="application/xhtml+xml"/>'
           '</manifest><spine><itemref idref="a"/></spine></package>')
w = "http://schemas.openxmlformats.org/wordprocessingml/2006/main"
words = f'<w:document xmlns:w="{w}"><w:body><w:p><w:r><w:t>First.</w:t></w:r></w:p></w:body></w:document>'
def archive(name, files):
    with zipfile.ZipFile(f"{sys.argv[1]}/{name}", "w") as out:
        for path, text in files: out.writestr(path, text)
open(f"{sys.argv[1]}/page", "w").write(page)
open(f"{sys.argv[1]}/utf16", "wb").write("Wörter\n".encode("utf-16"))
open(f"{sys.argv[1]}/latin1", "wb").write("Gr\xf6\xdfe\n".encode("latin-1"))
archive("word", [("[Content_Types].xml", "<Types/>"), ("word/document.xml", words)])
archive("book", [("mimetype", "application/epub+zip"), ("META-INF/container.xml", container),
                 ("b.opf", package), ("a.xhtml", page)])
EOF
}

fuzz() {
  corpus=tests/fuzz/corpus_$1
  most_bytes=8192
  case $1 in
    gguf) corpus=tests/fuzz/corpus ;;
    documents)
      corpus=build/fuzz/documents
      make_documents "$corpus"
      ;;
    session)
      corpus=build/fuzz/sessions
      most_bytes=32768
      make_sessions "$corpus"
      ;;
  esac
  found=build/fuzz/found/$1
  mkdir -p "$found"
  [ -d "$corpus" ] || corpus=$found # some targets make their first inputs themselves
  make_folder
  run "$1" env TMPDIR="$folder" "build/fuzz/bin/fuzz_$1" -timeout=60 -max_len=$most_bytes \
    -close_fd_mask=1 -max_total_time="$seconds" -print_final_stats=1 -artifact_prefix=build/fuzz/ "$found" "$corpus"
  record "$1" "$(sed -n 's/^stat::number_of_executed_units: *//p' "$log")" "$used" \
    $(sed -n 's|^#[0-9]*\tDONE *cov: \([0-9]*\) .* corp: \([0-9]*\)/.*|\1 \2|p' "$log")
}

[ $# -gt 0 ] || set -- hostile_model $(ls build/fuzz/bin | sed -n 's/^fuzz_//p')
for target in "$@"; do
  if [ "$target" = hostile_model ]; then fuzz_hostile_model; else fuzz "$target"; fi
done
