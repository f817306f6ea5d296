#!/usr/bin/env bash
# Sets up, configures build/release and builds one build preset there: `release` (everything), `unit` (programs of unit
# tests) or `demo` (the command-line tools). Uses ccache if it is installed.
#   scripts/build.sh release|unit|demo
set -euo pipefail
root=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
preset=${1:?"usage: scripts/build.sh release|unit|demo"}
cd "$root"

# Launchers are needed only by tests of the preset release (ctest -L launch).
if [[ $preset == release ]]; then scripts/setup.sh; else scripts/setup.sh --no-launch; fi
if command -v ccache >/dev/null; then
  export CMAKE_CXX_COMPILER_LAUNCHER=ccache CMAKE_CUDA_COMPILER_LAUNCHER=ccache
  export CCACHE_SLOPPINESS=pch_defines,time_macros  # for precompiled headers
fi
# CUDA kernels take longest to compile. Without a GPU, the demo is built without them, unless this build folder already has them.
cache=build/release/CMakeCache.txt
cuda=()
if [[ $preset == demo && ! -e $cache ]]; then
  cuda=(-DHIPRESS_CUDA=GPU)
elif [[ $preset != demo ]] && grep -qs '^HIPRESS_CUDA:STRING=GPU$' "$cache"; then
  cuda=(-DHIPRESS_CUDA=AUTO)
fi
echo "build: configuring build/release" >&2
cmake --preset release --log-level=WARNING "${cuda[@]}" >&2
echo "build: building preset '$preset'" >&2
cmake --build --preset "$preset" --parallel "$(nproc)" >&2
