#!/usr/bin/env bash
# Builds libFuzzer programs by clang and runs each for some seconds, from inputs of the project and those kept in
# tests/corpus.tar.gz. HIPRESS_WERROR=ON makes warnings errors.
#   scripts/fuzz.sh [SECONDS [NAME...]]     10 seconds each of greeting, records, redis, trace, chakra_graph and compll
#   scripts/fuzz.sh --keep [SECONDS [NAME...]]   and keeps the inputs that reach more code in tests/corpus.tar.gz
# The fuzzers decode and files need more of the project, and are built only if they are named. Findings are left in
# build/fuzz/found.
# Exit status: 0 nothing was found; 1 something was, or it does not build; 2 the request is wrong; 3 skipped, with the reason.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
known=(greeting records redis trace chakra_graph compll decode files)
keeps=false
if [[ ${1:-} == --keep ]]; then
  keeps=true
  shift
fi
seconds=${1:-10}
[[ $seconds =~ ^[1-9][0-9]*$ ]] || {
  echo "fuzz: '$seconds' is no number of seconds; give one from 1 on" >&2
  exit 2
}
names=("${@:2}")
((${#names[@]})) || names=("${known[@]:0:6}")
for name in "${names[@]}"; do
  [[ " ${known[*]} " == *" $name "* ]] || {
    echo "fuzz: unknown program '$name' (known: ${known[*]})" >&2
    exit 2
  }
done
probe=$(mktemp -d)
trap 'rm -rf "$probe"' EXIT
if ! command -v clang++ >/dev/null; then
  echo "skipped: there is no clang++; install the Debian package clang" >&2
  exit 3
fi
if ! { echo 'extern "C" int LLVMFuzzerTestOneInput(const unsigned char*, unsigned long) { return 0; }' |
  clang++ -x c++ - -fsanitize=fuzzer,address -o "$probe/program" && "$probe/program" -runs=1; } >"$probe/said" 2>&1; then
  echo "skipped: programs of libFuzzer do not build or run here: $(tail -1 "$probe/said")" >&2
  exit 3
fi

if command -v ccache >/dev/null; then export CMAKE_CXX_COMPILER_LAUNCHER=ccache; fi
began=$SECONDS
cmake --preset fuzz --log-level=WARNING -DHIPRESS_WERROR="${HIPRESS_WERROR:-OFF}" >/dev/null
cmake --build build/fuzz --parallel "$(nproc)" --target "${names[@]/#/fuzz_}" >&2
echo "fuzz: built in $((SECONDS - began)) s"

corpus=$probe/corpus
mkdir -p "$corpus" build/fuzz/found
[[ ! -e tests/corpus.tar.gz ]] || tar -xzf tests/corpus.tar.gz -C "$corpus"
# run NAME: runs one fuzzer. Besides the kept inputs, it begins with sources and data of the project.
run() {
  local name=$1 inputs=("$corpus/$1") program
  mkdir -p "${inputs[0]}"
  if [[ $name == trace ]]; then  # the first byte says how the trace is cut into pieces
    find tests/data/traces -type f -size -8k | while read -r trace; do
      { printf 1 && cat "$trace"; } >"${inputs[0]}/$(basename "$trace")"
    done
  fi
  [[ $name != compll ]] || inputs+=(kernels/algorithms tests/compll/data)
  program=$(find build/fuzz/tests -name "fuzz_$name" -type f)
  if ! "$program" -max_total_time="$seconds" -max_len=8192 -artifact_prefix="build/fuzz/found/$name-" -print_final_stats=0 \
    "${inputs[@]}" >"$probe/$name" 2>&1; then
    tail -40 "$probe/$name"
    echo "fuzz: $name: failed; its input is in build/fuzz/found"
    return 1
  fi
  echo "fuzz: $name: $(grep -o 'Done .*' "$probe/$name")"
  if $keeps; then
    mkdir "$corpus/kept" && "$program" -merge=1 -max_len=8192 "$corpus/kept" "${inputs[@]}" >/dev/null 2>&1
    rm -r "${inputs[0]}"
    mv "$corpus/kept" "${inputs[0]}"
  fi
}
status=0
for name in "${names[@]}"; do run "$name" || status=1; done
if $keeps; then
  tar -C "$corpus" --sort=name --owner=0 --group=0 --mtime=@0 -cf - . | gzip -9n >tests/corpus.tar.gz
fi
exit "$status"
