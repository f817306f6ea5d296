#!/usr/bin/env bash
# Checks on a machine with a GPU what cannot be checked without one, from a build or as bin/hipress-gpu-check of the
# bundle. Prints one table; writes one JSON file and the log of every step.
#   scripts/gpu_check.sh [--build build/cuda] [--output gpu_check.out] [--json FILE] [--only STEP,STEP] [--list]
# Exit status: 0 all steps passed; 1 a step failed; 2 the request is wrong; 3 none failed, but some were skipped (for
# want of a GPU, of compute-sanitizer, or of tests in the bundle), each with its reason.
set -euo pipefail
# Where CUDA shows no GPU, tests that need one fail instead of passing unrun.
export HIPRESS_REQUIRE_GPU=1
self=$(readlink -f "${BASH_SOURCE[0]}")
root=$(dirname "$(dirname "$self")")

# Name, the programs without which it is skipped, what it shows. Each is the function step_NAME: its output is the
# log, `detail` says in a line what came out, `metric NAME NUMBER` gives figures; it fails by a status other than 0.
steps=(
  "tests|test_kernels test_replay|the tests of CUDA codecs and of ranks on GPUs"
  "bits|test_kernels|messages, states and values from the GPU have the CPU's bits"
  "memcheck|test_kernels test_replay compute-sanitizer|no access out of bounds or to freed memory, of codecs and ranks"
  "racecheck|test_kernels compute-sanitizer|no race on shared memory"
  "kernels|hipress-profile|encode and decode against the GPU's memory bandwidth"
  "nccl|hipress-exec|four processes share the GPU over NCCL, every value verified"
  "threads|hipress-exec|four thread ranks share the GPU over tcp, every value verified"
  "overhead|bench_executor|time per tiny task of two thread ranks that share the GPU, launches and messages included"
  "predict|hipress-profile hipress-plan hipress-exec|profile, plan, exec: predicted beside measured"
)
ranks=4
model=vgg19
algorithm=onebit
iterations=10
# Largest |predicted - measured| / measured of the thread ranks' iteration time.
most_error=0.10
# Least share of the memory bandwidth that an encode or decode of 2^26 elements uses, reckoned from the least traffic
# that it needs on any hardware; and the most that is not a cache's, nor a wrong clock's.
least_of_ceiling=0.80
most_of_ceiling=1.05
# Microseconds that a task may take beyond kernels and bytes.
most_overhead_us=20
# Seconds that one command may take.
limit_s=900
skipped_status=77

main() {
  build="" output=gpu_check.out json="" only=""
  parse "$@"
  mkdir -p "$output"
  output=$(cd "$output" && pwd)
  json=${json:-$output/gpu_check.json}
  [[ ! -d $json && -w $(dirname "$json") ]] ||
    refuse "--json: $json cannot be written; choose a file in a folder that exists and is writable"
  find_programs
  local row name needs what
  records=()
  printf '%-10s %-8s %8s  %s\n' step result seconds outcome
  for row in "${steps[@]}"; do
    IFS='|' read -r name needs what <<<"$row"
    [[ -z $only || ",$only," == *",$name,"* ]] || continue
    run_step "$name" "$needs" "$what"
  done
  write_json
  echo "report: $json"
  [[ ! " ${results[*]} " == *" failed "* ]] || return 1
  [[ ! " ${results[*]} " == *" skipped "* ]] || return 3
}

refuse() {
  echo "gpu_check: $*" >&2
  exit 2
}

parse() {
  while [[ $# -gt 0 ]]; do
    case $1 in
      --list)
        printf '%s\n' "${steps[@]}" | awk -F'|' '{ printf "%-10s %s\n", $1, $3 }'
        exit 0
        ;;
      --build | --output | --json | --only)
        [[ $# -ge 2 ]] || refuse "$1 needs a value"
        printf -v "${1#--}" '%s' "$2"
        shift 2
        ;;
      *) refuse "unknown option '$1'; it takes --build, --output, --json, --only, --list" ;;
    esac
  done
  local name
  for name in ${only//,/ }; do
    [[ $'\n'$(printf '%s\n' "${steps[@]}") == *$'\n'"$name|"* ]] || refuse "no step '$name'; --list names them"
  done
}

# Puts the programs on the PATH: beside this file in a bundle, else in a build folder.
find_programs() {
  local folder=$root/bin
  if [[ -n $build || ! -x $folder/hipress-exec ]]; then
    [[ -n $build ]] || build=$root/build/$([[ -d $root/build/cuda ]] && echo cuda || echo release)
    [[ -x $build/bin/hipress-exec ]] || refuse "no tools in $build/bin; build them (cmake --preset cuda) or name --build"
    build=$(cd "$build" && pwd)
    folder=$build/bin:$build/tests/kernels:$build/tests/replay
  fi
  export PATH=$folder:$PATH:${CUDA_HOME:-/usr/local/cuda}/bin
}

# Sets `lacking` to why a step that needs these programs cannot run; empty if it can.
find_lacking() {
  lacking=""
  local program
  if [[ -z $(gpu_name) ]]; then
    lacking="no GPU: nvidia-smi lists none"
    return
  fi
  for program in $1; do
    command -v "$program" >/dev/null || lacking="no $program here"
  done
}

gpu_name() { nvidia-smi --query-gpu=name,driver_version --format=csv,noheader 2>/dev/null | head -n 1 || true; }

# run_step NAME NEEDS WHAT: a row of the table and of `records`.
run_step() {
  local name=$1 what=$3 status=0 result detail started=$EPOCHREALTIME seconds
  work=$output/$name
  rm -rf "$work"
  mkdir -p "$work"
  find_lacking "$2"
  if [[ -n $lacking ]]; then
    status=$skipped_status
    echo "$lacking" >"$work/detail"
  else
    # In a shell of its own, so that the first command that fails ends it.
    set +e
    (
      set -e
      "step_$name"
    ) >"$work/log" 2>&1 </dev/null
    status=$?
    set -e
  fi
  case $status in
    0) result=passed ;;
    "$skipped_status") result=skipped ;;
    *) result=failed ;;
  esac
  detail=$(outcome "$status")
  seconds=$(awk "BEGIN { printf \"%.1f\", $EPOCHREALTIME - $started }")
  printf '%-10s %-8s %8s  %s\n' "$name" "$result" "$seconds" "$detail"
  results+=("$result")
  records+=("$(printf '{"name": %s, "what": %s, "result": "%s", "seconds": %s, "detail": %s, "metrics": {%s}}' \
    "$(quote "$name")" "$(quote "$what")" "$result" "$seconds" "$(quote "$detail")" "$(metrics)")")
}
results=()

# What the step said of itself; of one that failed without a word, the end of its log.
outcome() {
  if [[ -s $work/detail ]]; then
    cat "$work/detail"
  elif [[ $1 -ne 0 ]]; then
    echo "status $1: $(grep -v '^[[:space:]]*$' "$work/log" | tail -n 1)"
  fi
}

detail() { echo "$*" >"$work/detail"; }
metric() { printf '%s: %s\n' "$(quote "$1")" "$2" >>"$work/metrics"; }
metrics() { if [[ -s $work/metrics ]]; then paste -s -d , "$work/metrics"; fi; }

# A JSON string.
quote() {
  local text=${1//\\/\\\\}
  text=${text//\"/\\\"}
  printf '"%s"' "$(tr '\n\t\r' '   ' <<<"$text" | tr -d '\000-\037' | sed 's/ *$//')"
}

write_json() {
  local i temporary
  temporary=$(mktemp "$json.XXXXXXXX")
  chmod "$([[ -e $json ]] && stat -c %a "$json" || printf %o $((0666 & ~$(umask))))" "$temporary"
  {
    printf '{"machine": {"gpu": %s, "host": %s, "cores": %s, "tools": %s},\n "date": "%s",\n "steps": [\n' \
      "$(quote "$(gpu_name)")" "$(quote "$(uname -sr)")" "$(nproc)" \
      "$(quote "$(hipress-exec --version 2>/dev/null || true)")" "$(date -u +%Y-%m-%dT%H:%M:%SZ)"
    for i in "${!records[@]}"; do
      printf '  %s%s\n' "${records[i]}" "$([[ $i -lt $((${#records[@]} - 1)) ]] && echo ,)"
    done
    printf ' ]}\n'
  } >"$temporary"
  mv "$temporary" "$json"
}

limited() { timeout --kill-after=10 "$limit_s" "$@"; }

# field NAME FILE: the number or truth value of that name in a tool's JSON.
field() { tr -d '\n ' <"$2" | grep -o "\"$1\":[^,}]*" | head -n 1 | cut -d : -f 2; }

# Sets the step's detail to how many test cases each program passed, and what they skipped.
count_tests() {
  local skipped
  detail "$(grep -oE 'All tests passed \(.*\)|test cases: .*' "$work/log" | paste -s -d ';')"
  skipped=$(grep -oE 'skipped: .*' "$work/log" | sort | uniq -c | sed 's/^ *\([0-9]*\) /\1 x /' | paste -s -d ';' || true)
  [[ -z $skipped ]] || detail "$(cat "$work/detail"); $skipped"
}

# run_tests PROGRAM TESTS
run_tests() {
  limited "$1" "$2" --warn NoTests || failed=1
}

step_tests() {
  local failed=0
  run_tests test_kernels '*GPU*,*CUDA*'
  run_tests test_replay '*GPU*'
  count_tests
  return $failed
}

step_bits() {
  local failed=0
  run_tests test_kernels "*GPU*CPU's*,*CPU's*GPU*"
  count_tests
  return $failed
}

# sanitize TOOL PROGRAM TESTS: the tests under compute-sanitizer, whose finding fails the step.
sanitize() {
  limited compute-sanitizer --tool "$1" --target-processes all --error-exitcode 1 \
    "$(command -v "$2")" "$3" --warn NoTests || failed=1
  detail "$(grep -oE '(ERROR|RACECHECK) SUMMARY: .*' "$work/log" | paste -s -d ';')"
}
step_memcheck() {
  local failed=0
  sanitize memcheck test_kernels "*GPU*CPU's*"
  sanitize memcheck test_replay "GPUs verify*,a GPU's*"
  return $failed
}
step_racecheck() {
  local failed=0
  # Quantisers, casts and graddrop; then dgc, whose states make other kernels.
  sanitize racecheck test_kernels "special inputs*"
  sanitize racecheck test_kernels "states of sparsifiers*"
  return $failed
}

step_kernels() {
  limited hipress-profile --device cuda --quick --output "$work/profile.yaml" --json >"$work/profile.json"
  local ceiling row codec key share failed=0 shares=""
  ceiling=$(field memory_bandwidth_Bps "$work/profile.json")
  metric memory_bandwidth_Bps "$ceiling"
  for codec in onebit tbq terngrad dgc graddrop fp16 bf16; do
    row=$(tr -d '\n ' <"$work/profile.json" | grep -o "\"$codec\":{[^}]*}")
    shares+=" $codec"
    for key in encode_Bps decode_Bps encode_of_ceiling decode_of_ceiling; do
      share=$(grep -o "\"$key\":[^,}]*" <<<"$row" | cut -d : -f 2)
      metric "$codec.$key" "$share"
      [[ $key == *_of_ceiling ]] || continue
      shares+=" $(awk "BEGIN { printf \"%.2f\", $share }")"
      awk "BEGIN { exit !($least_of_ceiling <= $share && $share <= $most_of_ceiling) }" || failed=1
    done
  done
  ceiling=$(awk "BEGIN { printf \"%.0f\", $ceiling / 1e9 }")
  detail "of a copy's $ceiling GB/s, encode and decode, $least_of_ceiling wanted:$shares"
  return $failed
}

# NCCL refuses two ranks on one GPU unless they seem to be on different hosts; timings then mean nothing.
start_nccl_rank() {
  RANK=$1 WORLD_SIZE=$ranks LOCAL_RANK=0 NCCL_HOSTID=hipress$1 NCCL_NET=Socket NCCL_IB_DISABLE=1 \
    NCCL_SOCKET_IFNAME="=lo" limited hipress-exec --device cuda --transport nccl --rendezvous "file://$work" \
    --job "$2-$3" --input "$model" --topology "$2" --plan "$3" --algorithm "$algorithm" --iterations 2 --json \
    >"$work/$2-$3.$1.json"
}

step_nccl() {
  local topology plan rank pids pid failed=0
  for topology in ring ps allreduce; do
    for plan in none all; do
      [[ $topology-$plan != allreduce-all ]] || continue
      pids=()
      for ((rank = 0; rank < ranks; ++rank)); do
        start_nccl_rank "$rank" "$topology" "$plan" &
        pids+=($!)
      done
      for pid in "${pids[@]}"; do wait "$pid" || failed=1; done
      [[ $failed -eq 0 && $(field verified "$work/$topology-$plan.0.json") == true ]]
    done
  done
  detail "$ranks ranks verified: ring and ps, none and all; allreduce"
}

# thread_replay NAME [argument...]: hipress-exec with thread ranks, its report in NAME.json; fails if not verified.
thread_replay() {
  local name=$1
  shift
  limited hipress-exec --device cuda --transport tcp --nnodes "$ranks" --input "$model" --algorithm "$algorithm" \
    --iterations "$iterations" --json "$@" >"$work/$name.json"
  [[ $(field verified "$work/$name.json") == true ]]
}

step_threads() {
  local topology plan
  for topology in ring ps; do
    for plan in none all; do
      thread_replay "$topology-$plan" --topology "$topology" --plan "$plan"
      metric "$topology.$plan.measured_s" "$(field median "$work/$topology-$plan.json")"
    done
  done
  detail "$ranks thread ranks verified: ring and ps, none and all"
}

step_overhead() {
  local worst
  limited bench_executor --device cuda --json "$work/rows.json"
  worst=$(tr -d '\n ' <"$work/rows.json" | grep -o '"metric":"us/task"[^}]*' | grep -o '"value":[^,}]*' | cut -d : -f 2 |
    sort -g | tail -n 1)
  metric worst_us_per_task "$worst"
  detail "$(awk "BEGIN { printf \"%.1f us per task at worst, at most %.0f wanted\", $worst, $most_overhead_us }")"
  awk "BEGIN { exit !($worst <= $most_overhead_us) }"
}

step_predict() {
  local topology error worst=0
  limited hipress-profile --device cuda --quick --nnodes "$ranks" --algorithm "$algorithm,fp16" \
    --output "$work/profile.yaml"
  for topology in ring ps; do
    limited hipress-plan --input "$model" --topology "$topology" --nnodes "$ranks" --algorithm "$algorithm,fp16" \
      --profile "$work/profile.yaml" --output "$work/$topology.yaml"
    thread_replay "$topology" --topology "$topology" --plan "$work/$topology.yaml" --profile "$work/profile.yaml"
    error=$(field relative_error "$work/$topology.json")
    metric "$topology.predicted_s" "$(field predicted_iteration_s "$work/$topology.json")"
    metric "$topology.measured_s" "$(field median "$work/$topology.json")"
    metric "$topology.relative_error" "$error"
    worst=$(awk "BEGIN { e = $error < 0 ? -($error) : $error; print (e > $worst ? e : $worst) }")
  done
  detail "$(awk "BEGIN { printf \"worst error %.1f %%, at most %.0f %% wanted\", 100 * $worst, 100 * $most_error }")"
  awk "BEGIN { exit !($worst <= $most_error) }"
}

main "$@"
