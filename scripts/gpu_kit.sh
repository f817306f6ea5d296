#!/usr/bin/env bash
# Packs the programs that check and measure a machine with a GPU into one archive. It holds the tools with one shared library and
# kernels for one generation of GPUs, tests, benchmarks, models, the Python package, and run.sh. The machine needs only the driver;
# PyTorch, nvcc, ncu, compute-sanitizer and NCCL are used if it has them.
#   scripts/gpu_kit.sh [--arch 90] [--output gpu_kit.tar.zst] [--build build/gpu_kit]
# On that machine: tar --zstd -xf gpu_kit.tar.zst && gpu_kit/run.sh --minutes 9
# Exit status: 0 packed; 1 it did not build, or is larger than 60 MiB; 2 the request is wrong.
set -euo pipefail
root=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
arch=90 output=gpu_kit.tar.zst build=$root/build/gpu_kit
most_bytes=$((60 << 20))
targets=(tools hipress_c test_kernels test_emulated_kernels test_replay test_runtime bench_codecs bench_replay)

refuse() {
  echo "gpu_kit: $*" >&2
  exit 2
}

while [[ $# -gt 0 ]]; do
  case $1 in
    --arch | --output | --build)
      [[ $# -ge 2 ]] || refuse "$1 needs a value"
      printf -v "${1#--}" '%s' "$2"
      shift 2
      ;;
    *) refuse "unknown option '$1'; it takes --arch, --output, --build" ;;
  esac
done
[[ $arch =~ ^[0-9]+[a-z]?$ ]] || refuse "--arch: '$arch' is no generation of GPUs; give 80 (A100), 90 (H100, H200) or 100 (B200)"
output=$(realpath -m -- "$output")
[[ ! -d $output && -w $(dirname "$output") ]] || refuse "--output: $output cannot be written; choose a file in a folder that exists"

# Output of CMake and the compilers goes to stderr, because stdout has the result.
"$root/scripts/setup.sh" --no-launch >&2
command -v zstd >/dev/null || refuse "no zstd here; install the Debian package zstd"
command -v nvcc >/dev/null || [[ -n ${CUDACXX:-} || -x /usr/local/cuda/bin/nvcc ]] ||
  refuse "no nvcc here; install a CUDA toolkit of 12.4 or later, or set CUDACXX"
if command -v ccache >/dev/null; then
  export CMAKE_CXX_COMPILER_LAUNCHER=ccache CMAKE_CUDA_COMPILER_LAUNCHER=ccache
fi
cd "$root"
began=$SECONDS
cmake --preset release -B "$build" --log-level=WARNING -DHIPRESS_ONE_LIBRARY=ON -DHIPRESS_CUDA=ON \
  -DCMAKE_CUDA_ARCHITECTURES="$arch" >&2
cmake --build "$build" --parallel "$(nproc)" --target "${targets[@]}" >&2

staged=$(mktemp -d)
trap 'rm -rf "$staged"' EXIT
for component in bundle data; do
  cmake --install "$build" --prefix "$staged/gpu_kit" --component $component --strip >/dev/null
done
ln -s bin/hipress-gpu-check "$staged/gpu_kit/run.sh"
tar -C "$staged" --sort=name --owner=0 --group=0 -cf - gpu_kit | zstd -q -19 -T0 -o "$output.$$.part" -f
mv "$output.$$.part" "$output"
bytes=$(stat -c %s "$output")
printf '%s: %.1f MiB, for sm_%s; built and packed in %d s\n' "$output" "$(awk "BEGIN { print $bytes / 1048576 }")" "$arch" \
  $((SECONDS - began))
if [[ $bytes -gt $most_bytes ]]; then
  echo "gpu_kit: larger than $((most_bytes >> 20)) MiB" >&2
  exit 1
fi
