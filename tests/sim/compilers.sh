#!/usr/bin/env bash
# Compares, byte for byte, the output of hipress-sim as compiled by g++ and by clang++: reports as JSON, traces and the CSV of a
# sweep, for several models, topologies, networks, clusters and switches, each with --jobs 1 and 2.
#   tests/sim/compilers.sh FOLDER_OF_TOOLS CLANG_BUILD
# FOLDER_OF_TOOLS has the hipress-sim of g++; that of clang++ is built in the folder CLANG_BUILD first.
# Exit status: 0 all outputs are equal; 1 outputs differ, or a tool failed; 3 skipped, with a reason.
set -euo pipefail
root=$(cd "$(dirname "${BASH_SOURCE[0]}")/../.." && pwd)

# Name | arguments of hipress-sim. Cases that depend on jobs run with both numbers.
cases=(
  "ps, fair|--input vgg19 --plan all --topology PS --nnodes 4"
  "ps, port, folded|--input vgg19 --plan all --topology PS --nnodes 8 --network port --algorithm fp16"
  "ring, port|--input resnet50 --plan threshold --topology RING --nnodes 4 --network port --algorithm terngrad"
  "ring, bulk, batches, by need|--input resnet50 --plan all --topology RING --nnodes 4 --algorithm tbq
     --bulk-threshold 64KiB --bulk-wait 2ms --batch-threshold 64KiB --batch-limit 1MiB --transfer-order need"
  "back to back without pipelining|--input lstm --plan dgc --topology PS --nnodes 3 --steady=4 --no-pipelining"
  "all-reduces|--input bert_base --plan none --topology ALLREDUCE --nnodes 5 --profile v100-100g"
  "hosts, racks, GPUs|--input resnet50 --plan all --topology RING --cluster racks.yaml --sensitivity"
  "cores, overlap, bursts, stragglers|--input lstm --plan onebit --topology RING --cluster hosts.yaml --sensitivity"
  "jitter, ring|--input vgg19 --plan all --topology RING --nnodes 4 --jitter lognormal:0.2 --seed 7 --replicas 12"
  "jitter, ps, port|--input lstm --plan all --topology PS --nnodes 4 --network port --jitter uniform:0.3 --replicas 12"
)

main() {
  mkdir -p "$2"
  tools=$(cd "$1" && pwd) clang=$(cd "$2" && pwd)
  build
  scratch=$(mktemp -d)
  trap 'rm -rf "$scratch"' EXIT
  mkdir "$scratch/first" "$scratch/second"
  write_inputs
  cd "$scratch"
  differing=0
  local row
  for row in "${cases[@]}"; do compare_case "${row%%|*}" "${row#*|}"; done
  compare_sweep
  if ((differing > 0)); then
    echo "compilers: $differing outputs differ" >&2
    return 1
  fi
}

build() {
  if ! command -v clang++ >/dev/null; then
    echo "skipped: no clang++ on this machine"
    exit 3
  fi
  if command -v ccache >/dev/null; then export CMAKE_CXX_COMPILER_LAUNCHER=ccache; fi
  if ! cmake -S "$root" -B "$clang" -G Ninja -DCMAKE_BUILD_TYPE=Release -DCMAKE_CXX_COMPILER=clang++ \
    -DCMAKE_C_COMPILER=clang -DHIPRESS_CUDA=OFF --log-level=WARNING >&2 ||
    ! cmake --build "$clang" --target hipress-sim --parallel "$(nproc)" >&2; then
    echo "compilers: cannot build hipress-sim with clang++ in $clang" >&2
    exit 1
  fi
}

write_inputs() {
  cat >"$scratch/racks.yaml" <<'YAML'
name: 6 nodes on 3 hosts in 2 racks
nodes: 6
nodes_per_host: 2
gpus_per_node: 4
gpu_link: {bandwidth: 120GB/s, overhead: 5us}
host_link: {bandwidth: 20GB/s, overhead: 3us, latency: 1us}
link: {bandwidth: 25Gbps, bandwidth_both_ways: 21Gbps, overhead: 10us, latency: 5us}
rack: {hosts: 2, oversubscription: 3, latency: 2us}
YAML
  cat >"$scratch/hosts.yaml" <<'YAML'
name: 5 nodes on hosts of 2 that share cores
nodes: 5
nodes_per_host: 2
cores_per_host: 2
link: {bandwidth: 1Gbps, overhead: 20us, latency: 30us, burst: 96KiB, core_s_per_byte: 1.3e-9, core_time_per_message: 9us}
overlap: {compute_codec: 1.1, compute_transfer: 1.05, codec_transfer: 1.3}
compute_speed: {1: 0.9, 3: 1.25}
YAML
  cat >"$scratch/sweep.yaml" <<'YAML'
model: [resnet50, lstm]
topology: [ps, ring]
algorithm: [onebit, dgc]
nodes: [2, 3, 4]
network: [port, fair]
bandwidth: {from: 1Gbps, to: 64Gbps, times: 8}
compute_speed: [1, 1.7]
YAML
}

# run FOLDER OUTPUT ARGUMENTS...: runs the hipress-sim of g++ (FOLDER first) or clang++ (second). Its output goes to file
# OUTPUT in that folder. If it fails, this script exits with 1.
run() {
  local bin=$tools output=$1/$2
  [[ $1 == first ]] || bin=$clang/bin
  shift 2
  "$bin/hipress-sim" "$@" >"$output" 2>"$output.err" || {
    echo "compilers: $bin/hipress-sim $* failed:" >&2
    cat "$output.err" >&2
    exit 1
  }
}

# Writes both tools' reports for one command line, without wall-clock times. $1: file to write in each folder.
report_both() {
  local name=$1 folder
  shift
  for folder in first second; do
    run "$folder" "$name.raw" "$@"
    sed '/"simulation_s": \|"tasks_per_s": /d' "$folder/$name.raw" >"$folder/$name"
  done
}

# Compares files, which must have the same content. $1: name for messages.
require_same() {
  local name=$1 file
  shift
  for file in "$@"; do
    if ! cmp "$1" "$file" >&2; then
      echo "DIFFERS  $name"
      differing=$((differing + 1))
      return
    fi
  done
  printf 'same  %9d bytes  %s\n' "$(stat -c %s "$1")" "$name"
}

compare_case() {
  local name=$1 arguments jobs
  read -r -d '' -a arguments < <(printf '%s\0' "$2")
  for jobs in 1 2; do report_both "report$jobs" "${arguments[@]}" --jobs "$jobs" --json; done
  require_same "$name: report" first/report1 second/report1 first/report2 second/report2
  local folder
  for folder in first second; do run "$folder" said "${arguments[@]}" --trace "$folder/trace"; done
  require_same "$name: trace" first/trace second/trace
}

compare_sweep() {
  local jobs folder
  for jobs in 1 2; do
    for folder in first second; do run "$folder" said sweep sweep.yaml --output "$folder/sweep$jobs" --jobs "$jobs"; done
  done
  require_same "sweep" first/sweep1 second/sweep1 first/sweep2 second/sweep2
}

main "$@"
