#!/usr/bin/env bash
# Runs the checks and measurements that need a GPU: from a build, as bin/hipress-gpu-check of the bundle, or as run.sh of
# scripts/gpu_kit.sh. The most valuable steps come first. Each has a time limit, and a failed step does not stop the next one. After
# every step, the JSON holds all steps so far; a table is printed at the end.
#   scripts/gpu_check.sh [--minutes 9] [--only STEP,STEP] [--output gpu_check.out] [--json FILE] [--build build/cuda]
#                        [--dry-run] [--list]
# --dry-run takes the same steps without a GPU: kernels run under emulation, ranks on the CPU, and the host simulates the device for
# rows that need one. Its figures mean nothing.
# Exit status: 0 all steps passed; 1 a step failed; 2 the request is wrong; 3 none failed, but some were skipped (for lack of a GPU,
# a program or time), each with its reason.
set -euo pipefail
# If CUDA shows no GPU, tests that need one fail instead of being skipped.
export HIPRESS_REQUIRE_GPU=1
self=$(readlink -f "${BASH_SOURCE[0]}")
root=$(dirname "$(dirname "$self")")

# Steps: name, time limit in seconds, the programs without which it is skipped, and what it shows. A step is the function step_NAME.
# Its output is the log, `detail` sets its result in one line, and `metric NAME NUMBER` adds a figure. It fails by a status other
# than 0. The most valuable steps come first.
steps=(
  "device|20|hipress-exec|the GPU, its driver, and what else the machine has"
  "bits|90|test_kernels|messages, states and values from the GPU have the CPU's bits"
  "codecs|120|bench_codecs|encode, decode and decode-and-add of every codec, against a copy and the least memory traffic"
  "overhead|45|bench_codecs bench_replay|launches per second, and time per tiny task of two thread ranks that share the GPU"
  "threads|60|hipress-exec|four thread ranks share the GPU over tcp, every value verified"
  "nccl|90|hipress-exec|four processes share the GPU over NCCL, every value verified"
  "predict|180|hipress-profile hipress-plan hipress-exec|profile, plan, exec: predicted beside measured"
  "overlap|60|bench_codecs|how much a codec, a copy and each class of computation slow each other, in both directions"
  "step|90|bench_codecs|steps of known computation beside a codec, copies and both: simulated with those factors, beside measured"
  "pytorch|90|python3 hipress-import|DDP on CUDA with attach(): values against plain DDP, cost per gradient, trace imported"
  "tests|90|test_kernels test_replay test_runtime|all other tests of GPUs: ranks, engines, programs compiled at run time"
  "memcheck|90|test_kernels test_replay compute-sanitizer|no access out of bounds or to freed memory, of codecs and ranks"
  "racecheck|60|test_kernels compute-sanitizer|no race on shared memory"
  "counters|60|bench_codecs ncu|bytes that the three slowest kernels move, against the least"
)
ranks=4
model=vgg19
algorithm=onebit
iterations=10
# Largest |predicted - measured| / measured of the thread ranks' iteration time.
most_error=0.10
# Limits for an encode or decode of 2^24 or more elements: its speed as a share of what the memory bandwidth allows. A larger share
# than the second limit shows a cache or a wrong clock.
least_of_ceiling=0.80
most_of_ceiling=1.05
# Largest time of a task in microseconds, besides its kernels and transfers.
most_overhead_us=20
device=cuda
# Sizes of bench_codecs on a GPU.
rows_of_gpu=(--device cuda --elements "1048576,16777216,134217728")
skipped_status=77
late_status=124

main() {
  build="" output=gpu_check.out json="" only="" minutes="" dry_run=""
  parse "$@"
  mkdir -p "$output"
  output=$(cd "$output" && pwd)
  json=${json:-$output/gpu_check.json}
  [[ ! -d $json && -w $(dirname "$json") ]] ||
    refuse "--json: $json cannot be written; choose a file in a folder that exists and is writable"
  find_programs
  local row name limit needs what
  records=()
  tools=$(hipress-exec --version 2>/dev/null | head -n 1 || true)
  printf '%-10s %-8s %8s  %s\n' step result seconds outcome
  for row in "${steps[@]}"; do
    IFS='|' read -r name limit needs what <<<"$row"
    [[ -z $only || ",$only," == *",$name,"* ]] || continue
    run_step "$name" "$limit" "$needs" "$what"
    ran+=("$name")
    write_json
  done
  if [[ ${#records[@]} -gt 1 ]]; then print_table; fi
  echo "report: $json"
  [[ ! " ${results[*]} " == *" failed "* ]] || return 1
  [[ ! " ${results[*]} " == *" skipped "* ]] || return 3
}

refuse() {
  echo "gpu_check: $*" >&2
  exit 2
}

parse() {
  local name
  while [[ $# -gt 0 ]]; do
    case $1 in
      --list)
        printf '%s\n' "${steps[@]}" | awk -F'|' '{ printf "%-10s %4d s  %s\n", $1, $2, $4 }'
        exit 0
        ;;
      --dry-run)
        plan_dry_run
        shift
        ;;
      --build | --output | --json | --only | --minutes)
        [[ $# -ge 2 ]] || refuse "$1 needs a value"
        printf -v "${1#--}" '%s' "$2"
        shift 2
        ;;
      *) refuse "unknown option '$1'; it takes --minutes, --only, --output, --json, --build, --dry-run, --list" ;;
    esac
  done
  for name in ${only//,/ }; do
    [[ $'\n'$(printf '%s\n' "${steps[@]}") == *$'\n'"$name|"* ]] || refuse "no step '$name'; --list names them"
  done
  [[ -z $minutes || $minutes =~ ^[0-9]+([.][0-9]+)?$ ]] || refuse "--minutes: '$minutes' is no number; give 9, or 0.5"
  ends=""
  if [[ -n $minutes ]]; then ends=$(awk "BEGIN { printf \"%d\", $(now) + 60 * $minutes }"); fi
}

# Sets the same steps to run on the CPU, with little work.
plan_dry_run() {
  dry_run=1
  device=cpu
  iterations=1
  ranks=2
  model=resnet50
  rows_of_gpu=(--device fake --elements "4096,65536" --overlap-elements 65536 --rows 64 --bursts 1)
  unset HIPRESS_REQUIRE_GPU
}

now() { echo "${EPOCHREALTIME%[.,]*}"; }

# Puts the programs on the PATH: those beside this file in a bundle, otherwise those of a build folder.
find_programs() {
  local folder=$root/bin
  package=$root/share/hipress/python libraries=$root/lib/hipress script=$root/share/hipress/gpu_steps.py
  if [[ -n $build || ! -x $folder/hipress-exec ]]; then
    [[ -n $build ]] || build=$root/build/$([[ -d $root/build/cuda ]] && echo cuda || echo release)
    [[ -x $build/bin/hipress-exec ]] || refuse "no tools in $build/bin; build them (cmake --preset cuda) or name --build"
    build=$(cd "$build" && pwd)
    folder=$build/bin:$build/tests/kernels:$build/tests/kernels/emulation:$build/tests/replay:$build/tests/runtime
    package=$root/python libraries=$build/runtime script=$root/scripts/gpu_steps.py
  fi
  export PATH=$folder:$PATH:${CUDA_HOME:-/usr/local/cuda}/bin
  python=$(find_python || true)
  # NCCL and NVRTC may be installed only as parts of PyTorch's wheels.
  local wheels=""
  if [[ -n $python ]]; then wheels=$("$python" -c "$print_library_folders" 2>/dev/null || true); fi
  export LD_LIBRARY_PATH=${LD_LIBRARY_PATH:-}${LD_LIBRARY_PATH:+${wheels:+:}}$wheels
}
print_library_folders='import glob, os, nvidia; print(":".join(sorted(
  folder for path in nvidia.__path__ for folder in glob.glob(os.path.join(path, "*", "lib")))))'

# Prints the first python3 that has PyTorch; if none has it, the first one.
find_python() {
  local candidate
  for candidate in $(type -aP python3) /usr/bin/python3; do
    if "$candidate" -c "import torch" 2>/dev/null; then
      echo "$candidate"
      return
    fi
  done
  command -v python3
}

# Sets `lacking` to the reason for which a step that needs these programs cannot run; empty if it can.
find_lacking() {
  lacking=""
  local program
  if [[ -z $dry_run && -z $(gpu_name) ]]; then
    lacking="no GPU: nvidia-smi lists none"
    return
  fi
  for program in $1; do
    case $program in
      compute-sanitizer | ncu) [[ -z $dry_run ]] || lacking="a dry run has no kernels for $program" ;;
      test_kernels) [[ -z $dry_run ]] || program=test_emulated_kernels ;;
    esac
    [[ -n $lacking ]] || command -v "$program" >/dev/null || lacking="no $program here"
  done
}

gpu_name() { nvidia-smi --query-gpu=name,driver_version --format=csv,noheader 2>/dev/null | head -n 1 || true; }

# run_step NAME LIMIT NEEDS WHAT: runs a step, prints its row, and adds it to `records`.
run_step() {
  local name=$1 limit=$2 what=$4 status=0 result outcome started=$EPOCHREALTIME seconds
  work=$output/$name
  rm -rf "$work"
  mkdir -p "$work"
  find_lacking "$3"
  if [[ -n $ends ]]; then
    local left=$((ends - $(now)))
    if [[ $left -lt 3 ]]; then lacking=${lacking:-"no time left of --minutes $minutes"}; fi
    if [[ $left -lt $limit ]]; then limit=$left; fi
  fi
  if [[ -n $lacking ]]; then
    status=$skipped_status
    echo "$lacking" >"$work/detail"
  else
    # `run_limited … || status=$?` would not do: bash would then ignore `set -e` within the step.
    set +e
    run_limited "$name" "$limit"
    status=$?
    set -e
  fi
  case $status in
    0) result=passed ;;
    "$skipped_status") result=skipped ;;
    *) result=failed ;;
  esac
  outcome=$(outcome "$status")
  if [[ $status -eq $late_status ]]; then outcome="ended at its limit of $limit s${outcome:+; $outcome}"; fi
  seconds=$(awk "BEGIN { printf \"%.1f\", $EPOCHREALTIME - $started }")
  printf '%-10s %-8s %8s  %s\n' "$name" "$result" "$seconds" "$outcome"
  results+=("$result")
  records+=("$(printf '{"name": %s, "what": %s, "result": "%s", "seconds": %s, "detail": %s, "metrics": {%s}}' \
    "$(quote "$name")" "$(quote "$what")" "$result" "$seconds" "$(quote "$outcome")" "$(metrics)")")
}
results=() ran=()

# run_limited NAME LIMIT: runs the step as a process group of its own. Ends the whole group when the step is over or its time has
# run out. Returns the step's status, or late_status.
run_limited() {
  local status=0 step timer
  set -m
  (
    set +m
    set -e
    "step_$1"
  ) >"$work/log" 2>&1 </dev/null &
  step=$!
  sleep "$2" >/dev/null 2>&1 &
  timer=$!
  set +m
  trap 'end_group $step; end_group $timer; exit 143' TERM INT HUP
  wait -n "$step" "$timer" 2>/dev/null || status=$?
  if kill -0 "$step" 2>/dev/null; then
    status=$late_status
    # SIGTERM comes first, so that a process can still report why it has not ended.
    kill -TERM -- "-$step" 2>/dev/null || true
    kill -CONT -- "-$step" 2>/dev/null || true
    local try
    for ((try = 0; try < 20; ++try)); do
      kill -0 "$step" 2>/dev/null || break
      sleep 0.1
    done
  fi
  end_group "$step"
  end_group "$timer"
  wait "$step" "$timer" 2>/dev/null || true
  trap - TERM INT HUP
  return "$status"
}

end_group() { kill -KILL -- "-$1" 2>/dev/null || true; }

# Prints the step's `detail`; for a step that failed without one, the last line of its log.
outcome() {
  if [[ -s $work/detail ]]; then
    cat "$work/detail"
  elif [[ $1 -ne 0 && $1 -ne $late_status ]]; then
    echo "status $1: $(grep -v '^[[:space:]]*$' "$work/log" | tail -n 1)"
  fi
}

detail() { echo "$*" >"$work/detail"; }
metric() { printf '%s: %s\n' "$(quote "$1")" "$2" >>"$work/metrics"; }
# Prints the metrics as members of a JSON object. Values that are no numbers, such as those of a killed tool, become null.
metrics() {
  [[ ! -s $work/metrics ]] || sed -E '/: -?[0-9]+([.][0-9]*)?(e[-+]?[0-9]+)?$/! s/^("[^"]*"):.*/\1: null/' "$work/metrics" |
    paste -s -d ,
}

# Prints a text as a JSON string.
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
    printf '{"machine": {"gpu": %s, "host": %s, "cores": %s, "tools": %s},\n "date": "%s", "dry_run": %s,\n "steps": [\n' \
      "$(quote "$(gpu_name)")" "$(quote "$(uname -sr)")" "$(nproc)" "$(quote "$tools")" \
      "$(date -u +%Y-%m-%dT%H:%M:%SZ)" "$([[ -n $dry_run ]] && echo true || echo false)"
    for i in "${!records[@]}"; do
      printf '  %s%s\n' "${records[i]}" "$([[ $i -lt $((${#records[@]} - 1)) ]] && echo ,)"
    done
    printf ' ]}\n'
  } >"$temporary"
  mv "$temporary" "$json"
}

# Prints the figures of all steps that ran. For codecs these are, by size, GB/s of gradient and the share of what memory allows.
print_table() {
  local name
  for name in "${ran[@]}"; do
    if [[ $name == codecs ]]; then print_codecs; fi
    [[ $name != codecs && -s $output/$name/metrics ]] || continue
    printf '\n%s\n' "$name"
    tr -d '"' <"$output/$name/metrics" | awk -F': ' '{ printf "  %-40s %12.5g\n", $1, $2 }'
  done
  echo
}

print_codecs() {
  [[ -s $output/codecs/rows.txt ]] || return 0
  printf '\ncodecs\n'
  awk '$4 == "traffic_floor" || $1 ~ /^copy/ {
         at = match($1, /[.]2\^/); case = substr($1, 1, at - 1)
         if (!(case in line)) order[++cases] = case
         line[case] = line[case] sprintf("  %s %8.1f", substr($1, at + 1), $3) \
           ($4 == "traffic_floor" ? sprintf(" (%.2f)", $6) : "       ")
       }
       END { for (i = 1; i <= cases; ++i) printf "  %-22s%s\n", order[i], line[order[i]] }' "$output/codecs/rows.txt"
}

# field NAME FILE: prints the number or truth value of that name in a tool's JSON.
field() { tr -d '\n ' <"$2" | grep -o "\"$1\":[^,}]*" | head -n 1 | cut -d : -f 2; }

# ------------------------------------------------------------------------------------------ what the machine has

step_device() {
  local have="" program gpu
  gpu=$(gpu_name)
  nvidia-smi || true
  hipress-exec --version
  for program in nvcc ncu compute-sanitizer; do
    if command -v "$program"; then have+=" $program" && "$program" --version; fi
  done
  if [[ -n $python ]]; then have+=$(python_step versions || true); fi
  detail "${gpu:-no GPU}; beside it:${have:- nothing that is used}"
}

# python_step STEP [argument...]: runs gpu_steps.py with the package and the library of this bundle or build.
python_step() {
  PYTHONPATH=$package HIPRESS_LIBRARY=$libraries/libhipress.so \
    LD_LIBRARY_PATH=$libraries:$libraries/ibverbs${LD_LIBRARY_PATH:+:$LD_LIBRARY_PATH} "$python" -B "$script" "$@"
}

# ------------------------------------------------------------------------------------------ tests

# Sets the step's detail to the number of test cases that each program passed, and to the skipped ones.
count_tests() {
  local skipped
  detail "$(grep -oE 'All tests passed \(.*\)|test cases: .*' "$work/log" | paste -s -d ';')"
  skipped=$(grep -oE 'skipped: .*' "$work/log" | sort | uniq -c | sed 's/^ *\([0-9]*\) /\1 x /' | paste -s -d ';' || true)
  [[ -z $skipped ]] || detail "$(cat "$work/detail"); $skipped"
}

# run_tests PROGRAM TESTS: runs the test cases of a pattern. Catch2 only takes stars at a pattern's beginning and end.
run_tests() {
  "$1" "$2" --warn NoTests || failed=1
  count_tests
}

step_bits() {
  local failed=0
  if [[ -n $dry_run ]]; then
    run_tests test_emulated_kernels "emulated kernels give*,emulated merges*,emulated lossless*,emulated low rank*"
  else
    run_tests test_kernels "*CPU's*"
  fi
  return $failed
}

step_tests() {
  local failed=0
  [[ -n $dry_run ]] || run_tests test_kernels '*GPU*,*CUDA*'
  run_tests test_replay '*GPU*'
  run_tests test_runtime '*GPU*'
  return $failed
}

# sanitize TOOL PROGRAM TESTS: runs the tests under compute-sanitizer; a finding fails the step.
sanitize() {
  compute-sanitizer --tool "$1" --target-processes all --error-exitcode 1 "$(command -v "$2")" "$3" --warn NoTests ||
    failed=1
  detail "$(grep -oE '(ERROR|RACECHECK) SUMMARY: .*' "$work/log" | paste -s -d ';')"
}
step_memcheck() {
  local failed=0
  sanitize memcheck test_kernels "*CPU's*"
  sanitize memcheck test_replay "GPUs verify*,a GPU's*"
  return $failed
}
step_racecheck() {
  local failed=0
  # These are quantisers, casts and graddrop; then dgc, whose states need other kernels.
  sanitize racecheck test_kernels "special inputs*"
  sanitize racecheck test_kernels "states of sparsifiers*"
  return $failed
}

# ------------------------------------------------------------------------------------------ kernels

# bench_rows NAME [option...]: writes rows of bench_codecs into NAME.json, and as text into NAME.txt: case, metric, value,
# reference's name, reference, ratio.
bench_rows() {
  local name=$1 status=0
  shift
  bench_codecs "${rows_of_gpu[@]}" --json "$work/$name.json" "$@" >"$work/$name.txt" || status=$?
  cat "$work/$name.txt"
  return "$status"
}

# Measured rows count even if the step fails or its time runs out, because each is written at once.
step_codecs() {
  local failed=0
  bench_rows rows --only 2^ || failed=1
  # A row that is compared with the floor (the least memory traffic) gives the rate and its share of the floor.
  awk '$4 == "traffic_floor" { printf "\"%s.GBps\": %s\n\"%s.of_floor\": %s\n", $1, $3, $1, $6 }
       $1 ~ /^copy/ { printf "\"%s.GBps\": %s\n", $1, $3 }' "$work/rows.txt" >>"$work/metrics"
  awk -v least="$least_of_ceiling" -v most="$most_of_ceiling" -v dry="$dry_run" '
    $4 != "traffic_floor" { next }
    { match($1, /\^/); bits = substr($1, RSTART + 1) }
    bits < 24 { next }
    { ++all; if ($6 < least || $6 > most) { ++out; worst = worst " " $1 " " $6 } }
    END { printf "%d of %d between %.2f and %.2f of the floor%s%s\n", all - out, all, least, most, out ? ", not:" : "", worst;
          exit out > 0 || (all == 0 && !dry) }' "$work/rows.txt" >"$work/detail" || failed=1
  return $failed
}

step_overhead() {
  local worst host failed=0
  bench_rows launches --only launch.
  host=$(awk '$1 == "launch.host" { print $3 }' "$work/launches.txt")
  metric launches_per_s "$(awk "BEGIN { printf \"%.0f\", 1e6 / $host }")"
  metric launch_host_us "$host"
  metric launch_device_us "$(awk '$1 == "launch.device" { print $3 }' "$work/launches.txt")"
  bench_replay --device "$device" --json "$work/rows.json" $([[ -z $dry_run ]] || echo "--megabytes 1 --rounds 1")
  worst=$(tr -d '\n ' <"$work/rows.json" | grep -o '"metric":"us/task"[^}]*' | grep -o '"value":[^,}]*' | cut -d : -f 2 |
    sort -g | tail -n 1)
  metric worst_us_per_task "$worst"
  detail "$(awk "BEGIN { printf \"%.1f us per task at worst, at most %.0f wanted; %.1f us a launch\", $worst,
    $most_overhead_us, $host }")"
  [[ -n $dry_run ]] || awk "BEGIN { exit !($worst <= $most_overhead_us) }" || failed=1
  return $failed
}

step_overlap() {
  bench_rows rows --only overlap.
  awk '$1 ~ /^overlap/ { printf "\"%s\": %s\n", substr($1, 9), $3 }' "$work/rows.txt" >>"$work/metrics"
  detail "$(awk '$1 ~ /^overlap/ { printf "%s%s %.2f", found++ ? ", " : "", substr($1, 9), $3 }' "$work/rows.txt")"
  [[ -s $work/metrics ]]
}

step_step() {
  local worst
  bench_rows rows --only step.
  # A case has two rows: one compares simulation and measurement; the other is a simulation without slowdowns.
  awk '$4 == "measured" { name = substr($1, 6)
         printf "\"%s.predicted_ms\": %s\n\"%s.measured_ms\": %s\n\"%s.relative_error\": %.4f\n", name, $3, name, $5, name, $6 - 1 }
       $4 == "measured_unslowed" { printf "\"%s.unslowed_error\": %.4f\n", substr($1, 6), $6 - 1 }' \
    "$work/rows.txt" >>"$work/metrics"
  worst=$(awk '$4 == "measured" { e = $6 < 1 ? 1 - $6 : $6 - 1; if (e > worst) worst = e } END { print worst + 0 }' "$work/rows.txt")
  detail "$(awk "BEGIN { printf \"worst error %.1f %%, at most %.0f %% wanted\", 100 * $worst, 100 * $most_error }")"
  [[ -s $work/metrics ]] && { [[ -n $dry_run ]] || awk "BEGIN { exit !($worst <= $most_error) }"; }
}

# Runs the three cases of the step `codecs` that are farthest from the floor, each under ncu.
step_counters() {
  local case failed=0
  local rows=$output/codecs/rows.txt
  [[ -s $rows ]] || bench_rows rows --elements 16777216 --only 2^24
  [[ -s $rows ]] || rows=$work/rows.txt
  for case in $(awk '$4 == "traffic_floor" && $1 ~ /\^24$/ { print $6, $1 }' "$rows" | sort -g | awk 'NR <= 3 { print $2 }'); do
    ncu --target-processes all --csv --metrics dram__bytes.sum,gpu__time_duration.sum --launch-skip 20 --launch-count 20 \
      "$(command -v bench_codecs)" --device cuda --elements 16777216 --bursts 1 --only "$case" >"$work/$case.csv" ||
      { failed=1; continue; }
    # The last columns of ncu's table are the metric's name, unit and value.
    awk -F'","' -v case="$case" '/dram__bytes.sum/ { gsub(/[",]/, "", $NF); sum += $NF; unit = $(NF - 1); ++n }
      END { if (n) printf "\"%s.dram_%s_per_kernel\": %.6g\n", case, unit, sum / n }' "$work/$case.csv" >>"$work/metrics"
  done
  detail "$(metrics)"
  [[ -s $work/metrics && $failed -eq 0 ]]
}

# ------------------------------------------------------------------------------------------ ranks

# NCCL refuses two ranks on one GPU unless they seem to be on different hosts. Their times mean nothing then.
start_process_rank() {
  local transport=nccl
  [[ -z $dry_run ]] || transport=tcp
  RANK=$1 WORLD_SIZE=$ranks LOCAL_RANK=0 NCCL_HOSTID=hipress$1 NCCL_NET=Socket NCCL_IB_DISABLE=1 \
    NCCL_SOCKET_IFNAME="=lo" hipress-exec --device "$device" --transport "$transport" --rendezvous "file://$work" \
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
        start_process_rank "$rank" "$topology" "$plan" &
        pids+=($!)
      done
      for pid in "${pids[@]}"; do wait "$pid" || failed=1; done
      [[ $failed -eq 0 && $(field verified "$work/$topology-$plan.0.json") == true ]]
    done
  done
  detail "$ranks ranks verified: ring and ps, none and all; allreduce"
}

# thread_replay NAME [argument...]: runs hipress-exec with thread ranks, and writes its report into NAME.json. Fails if values do
# not verify.
thread_replay() {
  local name=$1
  shift
  hipress-exec --device "$device" --transport tcp --nnodes "$ranks" --input "$model" --algorithm "$algorithm" \
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

step_predict() {
  local topology error worst=0
  hipress-profile --device "$device" --quick --nnodes "$ranks" --algorithm "$algorithm,fp16" \
    --output "$work/profile.yaml" --json >"$work/profile.json"
  metric memory_bandwidth_Bps "$(field memory_bandwidth_Bps "$work/profile.json")"
  for topology in ring ps; do
    hipress-plan --input "$model" --topology "$topology" --nnodes "$ranks" --algorithm "$algorithm,fp16" \
      --profile "$work/profile.yaml" --output "$work/$topology.yaml"
    thread_replay "$topology" --topology "$topology" --plan "$work/$topology.yaml" --profile "$work/profile.yaml"
    error=$(field relative_error "$work/$topology.json")
    metric "$topology.predicted_s" "$(field predicted_iteration_s "$work/$topology.json")"
    metric "$topology.measured_s" "$(field median "$work/$topology.json")"
    metric "$topology.relative_error" "$error"
    worst=$(awk "BEGIN { e = $error < 0 ? -($error) : $error; print (e > $worst ? e : $worst) }")
  done
  detail "$(awk "BEGIN { printf \"worst error %.1f %%, at most %.0f %% wanted\", 100 * $worst, 100 * $most_error }")"
  [[ -n $dry_run ]] || awk "BEGIN { exit !($worst <= $most_error) }"
}

# ------------------------------------------------------------------------------------------ PyTorch

# gpu_steps.py prints lines `metric NAME NUMBER`, and one `detail TEXT`.
step_pytorch() {
  local status=0 name value imported=""
  python_step ddp --device "$device" --output "$work" >"$work/said" || status=$?
  while read -r name value; do metric "$name" "$value"; done < <(sed -n 's/^metric //p' "$work/said")
  if [[ $status -eq 0 ]]; then
    hipress-import "$work/trace.json" --output "$work/model.yaml" --json >"$work/import.json" || status=$?
    # Status 3: the trace was read, but has too little for a model, as traces of older PyTorch have.
    if [[ $status -eq 0 || $status -eq 3 ]]; then
      imported="trace imported$([[ $status -eq 0 ]] || echo ", sizes unknown")"
      status=0
    else
      imported="trace NOT imported"
    fi
  fi
  detail "$(sed -n 's/^detail //p' "$work/said" | paste -s -d ';')${imported:+; $imported}"
  return $status
}

main "$@"
