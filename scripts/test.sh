#!/usr/bin/env bash
# Sets up, builds everything into build/release and runs all default tests there, or with --unit what tests libraries in
# process, in a minute or two; further arguments go to ctest (`scripts/test.sh -R sim:`). With --sanitize address|thread it
# builds, into build/asan or build/tsan, the tests of what handles foreign bytes and threads, and runs them. The exit
# status is ctest's.
set -euo pipefail
root=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
cd "$root"

if [[ ${1:-} == --sanitize ]]; then
  case ${2:-} in
    address) preset=asan ;;
    thread) preset=tsan ;;
    *)
      echo "test: --sanitize takes address or thread, got '${2:-}'" >&2
      exit 2
      ;;
  esac
  shift 2
  scripts/setup.sh --no-launch
  echo "test: building the sanitized tests of io, requests, transport, job, runtime and replay in build/$preset" >&2
  cmake --preset "$preset" --log-level=WARNING >&2
  cmake --build --preset "$preset" --parallel "$(nproc)" \
    --target test_io test_requests test_transport transport_rank test_job test_runtime runtime_rank test_replay test_replay_matrix hipress-exec >&2
  exec ctest --preset "$preset" -j2 -R '^(io|requests|transport|job|runtime|replay|replay_matrix): ' "$@"
fi

preset=release
if [[ ${1:-} == --unit ]]; then
  preset=unit
  shift
fi
scripts/build.sh "$preset"
echo "test: running the tests of build/release" >&2
exec ctest --preset "$preset" -j2 "$@"
