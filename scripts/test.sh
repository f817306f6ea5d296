#!/usr/bin/env bash
# Sets up, builds everything into build/release and runs all default tests there. --unit runs only the tests of libraries in
# process, in a minute or two. Further arguments go to ctest (`scripts/test.sh -R sim:`). --sanitize address|thread builds the tests
# of code that handles foreign bytes and threads, into build/asan or build/tsan, and runs them; with folders after it (`--sanitize
# address transport`), only the unit tests of these folders. The exit status is ctest's.
set -euo pipefail
root=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
cd "$root"

if [[ ${1:-} == --sanitize ]]; then
  kind=${2:-}
  case $kind in
    address) preset=asan ;;
    thread) preset=tsan ;;
    *)
      echo "test: --sanitize takes address or thread, got '$kind'" >&2
      exit 2
      ;;
  esac
  shift 2
  folders=()
  while [[ ${1:-} == [a-z]* ]]; do
    folders+=("$1")
    shift
  done
  if ((${#folders[@]})); then
    targets=("${folders[@]/#/test_}")
    set -- -L unit "$@"
  else
    folders=(io requests transport job runtime replay replay_matrix)
    targets=("${folders[@]/#/test_}" hipress-exec)
  fi
  scripts/setup.sh --no-launch
  # Some Linux kernels lay out memory in a way that leaves no room for a sanitizer's shadow memory.
  probe=$(mktemp -d)
  trap 'rm -rf "$probe"' EXIT
  if ! { echo 'int main() {}' | "${CXX:-c++}" -x c++ - "-fsanitize=$kind" -o "$probe/program" && "$probe/program"; }; then
    echo "test: programs with the $kind sanitizer do not run here: skipped" >&2
    exit 0
  fi
  echo "test: building the sanitized tests of ${folders[*]} in build/$preset" >&2
  cmake --preset "$preset" --log-level=WARNING >&2
  cmake --build --preset "$preset" --parallel "$(nproc)" --target "${targets[@]}" >&2
  status=0
  ctest --preset "$preset" -j2 -R "^($(IFS='|'; echo "${folders[*]}")): " "$@" || status=$?
  exit "$status"
fi

preset=release
if [[ ${1:-} == --unit ]]; then
  preset=unit
  shift
fi
scripts/build.sh "$preset"
echo "test: running the tests of build/release" >&2
exec env -u HIPRESS_WERROR ctest --preset "$preset" -j2 "$@"  # tests that build programs take warnings as they are
