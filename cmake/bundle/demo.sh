#!/bin/sh
# Runs the main job on this machine, with nothing but the bundle and a POSIX shell: measures codecs and links, plans, synchronises a
# model's gradients between ranks of this machine, and prints predicted beside measured times. Exit status 1 if a tool fails or a
# gradient does not verify.
#   hipress-demo [--model vgg19] [--nnodes 4] [--iterations 3] [--output hipress-demo.out]
set -eu
tools=$(dirname "$(readlink -f "$0")")
model=vgg19 nnodes=4 iterations=3 output=hipress-demo.out
while [ $# -gt 0 ]; do
  case $1 in
    --model) model=${2:?} ;;
    --nnodes) nnodes=${2:?} ;;
    --iterations) iterations=${2:?} ;;
    --output) output=${2:?} ;;
    *)
      echo "hipress-demo: unknown option '$1'; it takes --model, --nnodes, --iterations, --output" >&2
      exit 2
      ;;
  esac
  shift 2
done
algorithm=onebit
# Large gradients lie in huge pages, both while codecs are measured and in replays.
export GLIBC_TUNABLES="${GLIBC_TUNABLES:-glibc.malloc.hugetlb=1}"

# field NAME JSON: prints the value of a number or truth value.
field() { printf '%s\n' "$2" | sed "s/.*\"$1\":\([^,}]*\).*/\1/"; }

# run_case TOPOLOGY PLAN_NAME PLAN: replays a plan and prints its row.
run_case() {
  report=$("$tools/hipress-exec" --input "$model" --plan "$3" --topology "$1" --nnodes "$nnodes" --algorithm $algorithm \
    --profile "$output/profile.yaml" --iterations "$iterations" --json)
  [ "$(field verified "$report")" = true ]
  echo "$1 $2 $(field predicted_iteration_s "$report") $(field median "$report") $(field relative_error "$report")" |
    awk '{ printf "%-8s %-8s %8.3f s %8.3f s %+7.1f %%   verified: yes\n", $1, $2, $3, $4, 100 * $5 }'
}

mkdir -p "$output"
echo "profiling this machine -> $output/profile.yaml"
"$tools/hipress-profile" --quick --nnodes "$nnodes" --algorithm "$algorithm,fp16" --output "$output/profile.yaml" \
  >"$output/profile.txt"
echo "$model, $nnodes ranks on this machine, compressed with $algorithm; median of $iterations iterations"
echo
printf '%-8s %-8s %10s %10s %9s\n' topology plan predicted measured error
for topology in ps ring; do
  for plan in none fp16 all; do
    run_case "$topology" "$plan" "$plan"
  done
  "$tools/hipress-plan" --input "$model" --topology "$topology" --nnodes "$nnodes" --algorithm "$algorithm,fp16" \
    --profile "$output/profile.yaml" --output "$output/plan_$topology.yaml" >"$output/plan_$topology.txt"
  run_case "$topology" planned "$output/plan_$topology.yaml"
done
