"""Tests of scripts/gpu_check.sh with fake programs, whose answers the tests set, on a machine without a GPU."""

import json
import os
import pathlib
import re
import shutil
import signal
import subprocess
import tempfile
import time
import unittest

ROOT = pathlib.Path(__file__).resolve().parents[2]
GPU_CHECK = ROOT / "scripts/gpu_check.sh"
STEPS = ["device", "bits", "codecs", "overhead", "threads", "nccl", "predict", "overlap", "step", "pytorch", "tests", "memcheck",
         "racecheck", "counters"]
#: Steps that need only this one fake program; device and pytorch need more.
TOOLS_OF = {"hipress-exec": ["device", "threads", "nccl", "predict"], "bench_codecs": ["codecs", "overhead", "overlap", "step", "counters"]}

#: Table that bench_codecs prints: case, metric, value, reference's name, reference, ratio.
ROWS = """
onebit.encode.2^20 GB/s 500 traffic_floor 1000 0.50
onebit.encode.2^24 GB/s 910 traffic_floor 1000 0.91
onebit.encode.2^24 GB/s 910 copy 1500 0.61
dgc.decode.2^27 GB/s 870 traffic_floor 1000 0.87
copy.2^24 GB/s 1500 copy 1500 1
launch.host us/task 2.5 allowed 20 0.1
launch.device us/task 1.5 allowed 20 0.1
overlap.codec_beside_gemm x 1.25 alone 1 1.25
overlap.gemm_beside_codec x 1.5 alone 1 1.5
step.gemm_beside_codec ms 19 measured 20 0.95
step.gemm_beside_codec ms 16 measured_unslowed 20 0.8
step.memory_beside_both ms 31.2 measured 30 1.04
step.memory_beside_both ms 21 measured_unslowed 30 0.7
"""
BENCH_CODECS = f"""
    only=""
    while [ $# -gt 0 ]; do case $1 in --only) only=$2; shift;; esac; shift; done
    echo "case metric value reference ratio"
    echo "{ROWS.strip()}" | grep -F -e "$only"
"""

#: Fakes of programs on a machine without faults, as bodies of shell scripts.
HEALTHY = {
    "nvidia-smi": 'echo "A \\"GPU\\", 580.1"',
    "test_kernels": 'echo "All tests passed (7 assertions in 2 test cases)"',
    "test_replay": 'echo "All tests passed (1 assertion in 1 test case)"',
    "test_runtime": 'echo "All tests passed (2 assertions in 1 test case)"',
    "test_emulated_kernels": 'echo "All tests passed (9 assertions in 3 test cases)"',
    "compute-sanitizer": 'echo "========= ERROR SUMMARY: 0 errors"',
    "ncu": """printf '"0","k","dram__bytes.sum","Mbyte","65.5"\\n"1","k","dram__bytes.sum","Mbyte","66.5"\\n'""",
    "python3": """
        case "$*" in
          *"import torch"*) exit 0;;
          *versions*) echo " python 3, torch 2";;
          *) echo "metric difference.none 0"; echo "detail plan none equals DDP";;
        esac""",
    "hipress-import": "exit 0",
    "hipress-profile": """echo '{"memory_bandwidth_Bps": 2e12}'""",
    "hipress-plan": "exit 0",
    "bench_codecs": BENCH_CODECS,
    "bench_replay": """
        while [ $# -gt 0 ]; do case $1 in --json) file=$2;; esac; shift; done
        echo '{"rows": [{"case": "a", "metric": "us/task", "ratio": 0.3, "value": 6.25},' > "$file"
        echo '{"case": "b", "metric": "us/task", "ratio": 0.9, "value": 17.5}]}' >> "$file"
    """,
    "hipress-exec": """
        case "$*" in --version) echo "hipress-exec 0.1.0"; exit ;; esac
        echo "$RANK $NCCL_HOSTID $NCCL_SOCKET_IFNAME $*" >> "${0%/*}/calls"
        echo '{"measured_iteration_s":{"median":0.5,"p10":0.4},"predicted_iteration_s":0.48,"relative_error":-0.04,'
        echo '"exposed_communication_relative_error":-0.9,"verified":true}'""",
}


def cases(folder: str) -> dict[str, str]:
    """Source of every test case of a folder, by name."""
    source = "".join(file.read_text() for file in sorted((ROOT / "tests" / folder).glob("*.cpp")))
    parts = re.split(r'^TEST_CASE\("([^"]*)"', source, flags=re.MULTILINE)
    return dict(zip(parts[1::2], parts[2::2]))


def matching(folder: str, patterns: str) -> list[str]:
    """Names of the test cases that match Catch2's patterns, in which only stars at the beginning and the end are wildcards."""

    def matches(name: str, pattern: str) -> bool:
        name, text = name.lower(), pattern.lower().strip("*")
        if "*" in text:
            return False
        at_start, at_end = not pattern.startswith("*"), not pattern.endswith("*")
        if at_start and at_end:
            return name == text
        return name.startswith(text) if at_start else name.endswith(text) if at_end else text in name

    return [name for name in cases(folder) if any(matches(name, pattern) for pattern in patterns.split(","))]


def is_alive(pid: int) -> bool:
    try:
        return pathlib.Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()[0] not in "ZX"
    except FileNotFoundError:
        return False


class GpuCheck(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory(prefix="hipress_gpu_check_")
        self.addCleanup(folder.cleanup)
        self.folder = pathlib.Path(folder.name)
        self.bin = self.folder / "bin"  # as in a bundle
        self.bin.mkdir()
        (self.bin / "hipress-gpu-check").write_bytes(GPU_CHECK.read_bytes())
        (self.bin / "hipress-gpu-check").chmod(0o755)
        for name, body in HEALTHY.items():
            self.provide(name, body)

    def provide(self, name: str, body: str):
        (self.bin / name).write_text(f"#!/bin/sh\n{body}\n")
        (self.bin / name).chmod(0o755)

    def check(self, *options: str) -> subprocess.CompletedProcess:
        environment = {**os.environ, "PATH": "/usr/bin:/bin", "CUDA_HOME": str(self.folder)}
        return subprocess.run([self.bin / "hipress-gpu-check", "--output", self.folder / "out", *options],
                              env=environment, capture_output=True, text=True, check=False)

    def steps(self) -> dict[str, dict]:
        report = json.loads((self.folder / "out/gpu_check.json").read_text())
        return {step["name"]: step for step in report["steps"]}

    def test_all_is_well(self):
        done = self.check()
        self.assertEqual((done.returncode, done.stderr), (0, ""), done.stdout)
        report = json.loads((self.folder / "out/gpu_check.json").read_text())
        self.assertEqual(report["machine"]["gpu"], 'A "GPU", 580.1')
        self.assertEqual(report["machine"]["tools"], "hipress-exec 0.1.0")
        self.assertEqual([step["name"] for step in report["steps"]], STEPS)
        self.assertEqual({step["result"] for step in report["steps"]}, {"passed"})
        steps = self.steps()
        self.assertEqual(steps["tests"]["detail"], "All tests passed (7 assertions in 2 test cases);"
                         "All tests passed (1 assertion in 1 test case);All tests passed (2 assertions in 1 test case)")
        self.assertEqual(steps["memcheck"]["detail"], "ERROR SUMMARY: 0 errors;ERROR SUMMARY: 0 errors")
        self.assertEqual(steps["codecs"]["metrics"], {
            "onebit.encode.2^20.GBps": 500, "onebit.encode.2^20.of_floor": 0.5, "onebit.encode.2^24.GBps": 910,
            "onebit.encode.2^24.of_floor": 0.91, "dgc.decode.2^27.GBps": 870, "dgc.decode.2^27.of_floor": 0.87,
            "copy.2^24.GBps": 1500})
        self.assertEqual(steps["codecs"]["detail"], "2 of 2 between 0.80 and 1.05 of the floor")
        self.assertEqual(steps["overhead"]["metrics"], {"launches_per_s": 400000, "launch_host_us": 2.5, "launch_device_us": 1.5,
                                                        "worst_us_per_task": 17.5})
        self.assertEqual(steps["overlap"]["metrics"], {"codec_beside_gemm": 1.25, "gemm_beside_codec": 1.5})
        self.assertEqual(steps["step"]["metrics"], {
            "gemm_beside_codec.predicted_ms": 19, "gemm_beside_codec.measured_ms": 20, "gemm_beside_codec.relative_error": -0.05,
            "gemm_beside_codec.unslowed_error": -0.2,
            "memory_beside_both.predicted_ms": 31.2, "memory_beside_both.measured_ms": 30,
            "memory_beside_both.relative_error": 0.04, "memory_beside_both.unslowed_error": -0.3})
        self.assertEqual(steps["step"]["detail"], "worst error 5.0 %, at most 10 % wanted")
        self.assertEqual(steps["counters"]["metrics"], {"onebit.encode.2^24.dram_Mbyte_per_kernel": 66})
        self.assertEqual(steps["pytorch"]["detail"], "plan none equals DDP; trace imported")
        self.assertEqual(steps["predict"]["detail"], "worst error 4.0 %, at most 10 % wanted")
        self.assertEqual(steps["predict"]["metrics"]["ring.relative_error"], -0.04)
        self.assertEqual(steps["overhead"]["detail"], "17.5 us per task at worst, at most 20 wanted; 2.5 us a launch")
        rows = [line.split()[:2] for line in done.stdout.splitlines()[1:len(STEPS) + 1]]
        self.assertEqual(rows, [[step, "passed"] for step in STEPS])
        self.assertIn("  onebit.encode           2^20    500.0 (0.50)  2^24    910.0 (0.91)", done.stdout)

    def test_nccl_ranks_seem_to_be_on_different_hosts(self):
        self.assertEqual(self.check("--only", "nccl").returncode, 0)
        calls = (self.bin / "calls").read_text().splitlines()
        # Four ranks replay ring and ps with two plans each, and allreduce with one.
        self.assertEqual(len(calls), 5 * 4)
        self.assertEqual({tuple(call.split()[:3]) for call in calls},
                         {(str(rank), f"hipress{rank}", "=lo") for rank in range(4)})

    def test_without_a_gpu_every_step_is_skipped_and_says_why(self):
        self.provide("nvidia-smi", "echo 'No devices were found' >&2; exit 6")
        done = self.check()
        self.assertEqual(done.returncode, 3, done.stderr)
        self.assertEqual(list(self.steps()), STEPS)
        for step in self.steps().values():
            self.assertEqual((step["result"], step["detail"]), ("skipped", "no GPU: nvidia-smi lists none"))

    def test_a_step_without_its_program_is_skipped_and_says_why(self):
        (self.bin / "compute-sanitizer").unlink()
        done = self.check()
        self.assertEqual(done.returncode, 3)
        skipped = {name: step["detail"] for name, step in self.steps().items() if step["result"] == "skipped"}
        self.assertEqual(skipped, dict.fromkeys(("memcheck", "racecheck"), "no compute-sanitizer here"))

    def test_a_step_that_hangs_ends_at_its_limit_and_leaves_no_process(self):
        # The rank is stopped, as by a debugger, and its parent waits for it.
        self.provide("hipress-exec", """case "$*" in --version) exit;; esac
            (echo "$BASHPID" > "${0%/*}/pid"; kill -STOP "$BASHPID"; sleep 1000) & wait""")
        (self.bin / "hipress-exec").write_text((self.bin / "hipress-exec").read_text().replace("/bin/sh", "/bin/bash"))
        script = self.bin / "hipress-gpu-check"
        script.write_text(re.sub(r'"threads\|60\|', '"threads|1|', script.read_text()))
        began = time.monotonic()
        done = self.check("--only", "threads,overlap")
        self.assertLess(time.monotonic() - began, 30)  # of the 1000 s that the rank would sleep
        self.assertEqual(done.returncode, 1)
        steps = self.steps()
        self.assertEqual((steps["threads"]["result"], steps["overlap"]["result"]), ("failed", "passed"))
        self.assertEqual(steps["threads"]["detail"], "ended at its limit of 1 s")
        self.assertFalse(is_alive(int((self.bin / "pid").read_text())))

    def test_whichever_step_is_killed_the_others_stand(self):
        # Each fake program kills the step's shell if the newest folder, that of the current step, is this step's.
        for step in STEPS:
            for program, body in HEALTHY.items():
                if program != "nvidia-smi":
                    self.provide(program, f'case "$(ls -td {self.folder}/out/*/ 2>/dev/null | head -n 1)" in '
                                          f'*/{step}/) kill -KILL $PPID $$;; esac\n{body}')
            with self.subTest(step):
                shutil.rmtree(self.folder / "out", ignore_errors=True)
                done = self.check()
                self.assertEqual(done.returncode, 1)
                results = {name: found["result"] for name, found in self.steps().items()}
                self.assertEqual(results, {**dict.fromkeys(STEPS, "passed"), step: "failed"})

    def test_a_kill_loses_the_step_under_way_alone(self):
        self.provide("hipress-exec", """case "$*" in --version) exit;; esac
            touch "${0%/*}/under_way"; sleep 1000""")
        environment = {**os.environ, "PATH": "/usr/bin:/bin", "CUDA_HOME": str(self.folder)}
        for number in (signal.SIGKILL, signal.SIGTERM):
            with self.subTest(number):
                (self.bin / "under_way").unlink(missing_ok=True)
                process = subprocess.Popen(
                    [self.bin / "hipress-gpu-check", "--output", self.folder / "out", "--only", "bits,overlap,nccl"],
                    env=environment, stdout=subprocess.DEVNULL, start_new_session=True)
                deadline = time.monotonic() + 60
                while not (self.bin / "under_way").exists() and time.monotonic() < deadline:
                    time.sleep(0.01)
                process.send_signal(number)
                process.wait(30)
                # nccl comes before overlap, so nccl is the interrupted step.
                self.assertEqual({name: step["result"] for name, step in self.steps().items()}, {"bits": "passed"})
                if number == signal.SIGKILL:  # the script was killed, so it could not end the step
                    subprocess.run(["pkill", "-KILL", "-f", str(self.bin / "hipress-exec")], check=False)
        found = subprocess.run(["pgrep", "-f", str(self.bin / "hipress-exec")], capture_output=True, text=True, check=False)
        self.assertEqual(found.stdout, "")

    def test_steps_that_the_time_does_not_suffice_for_say_so(self):
        done = self.check("--minutes", "0")
        self.assertEqual(done.returncode, 3)
        self.assertEqual({step["detail"] for step in self.steps().values()}, {"no time left of --minutes 0"})

    def test_a_dry_run_takes_the_same_steps_without_a_gpu(self):
        self.provide("nvidia-smi", "exit 6")
        done = self.check("--dry-run")
        self.assertEqual(done.returncode, 3, done.stdout)
        results = {name: step["result"] for name, step in self.steps().items()}
        self.assertEqual(list(results), STEPS)
        self.assertEqual([name for name, result in results.items() if result != "passed"], ["memcheck", "racecheck", "counters"])
        self.assertIn("9 assertions", self.steps()["bits"]["detail"])  # the figure of test_emulated_kernels
        self.assertTrue(json.loads((self.folder / "out/gpu_check.json").read_text())["dry_run"])
        self.assertNotIn("cuda", (self.bin / "calls").read_text())

    def test_a_trace_that_tells_too_little_is_no_failure_and_one_that_is_refused_is(self):
        for status, result, said in ((3, "passed", "trace imported, sizes unknown"), (2, "failed", "trace NOT imported")):
            with self.subTest(status):
                self.provide("hipress-import", f"exit {status}")
                self.check("--only", "pytorch")
                self.assertEqual(self.steps()["pytorch"]["result"], result)
                self.assertIn(said, self.steps()["pytorch"]["detail"])

    def test_figures_that_are_none_are_null(self):
        self.provide("hipress-profile", "echo '{}'")
        self.check("--only", "predict")
        self.assertIsNone(self.steps()["predict"]["metrics"]["memory_bandwidth_Bps"])

    def test_a_refusal_fails_the_step_with_what_was_said(self):
        self.provide("hipress-exec", "echo \"hipress-exec: '--device cuda': not \\\"here\\\"\" >&2; exit 2")
        done = self.check()
        self.assertEqual(done.returncode, 1)
        for name, step in self.steps().items():
            expected = "failed" if name in TOOLS_OF["hipress-exec"] else "passed"
            self.assertEqual(step["result"], expected, name)
        self.assertEqual(self.steps()["threads"]["detail"], "status 2: hipress-exec: '--device cuda': not \"here\"")

    def test_what_is_not_verified_fails(self):
        self.provide("hipress-exec", """echo '{"measured_iteration_s":{"median":0.5},"verified":false}'""")
        self.assertEqual(self.check("--only", "nccl,threads").returncode, 1)
        self.assertEqual({step["result"] for step in self.steps().values()}, {"failed"})

    def test_a_prediction_that_is_far_off_fails_and_is_told(self):
        self.provide("hipress-exec", HEALTHY["hipress-exec"].replace("-0.04", "0.101"))
        self.assertEqual(self.check("--only", "predict").returncode, 1)
        self.assertEqual(self.steps()["predict"]["detail"], "worst error 10.1 %, at most 10 % wanted")
        self.assertEqual(self.steps()["predict"]["metrics"]["ps.relative_error"], 0.101)

    def test_too_much_overhead_fails_and_is_told(self):
        self.provide("bench_replay", HEALTHY["bench_replay"].replace("17.5", "20.5"))
        self.assertEqual(self.check("--only", "overhead").returncode, 1)
        self.assertEqual(self.steps()["overhead"]["detail"], "20.5 us per task at worst, at most 20 wanted; 2.5 us a launch")

    def test_a_failing_test_fails_its_step_and_is_counted(self):
        self.provide("test_replay", "echo 'test cases: 2 | 1 passed | 1 failed'; exit 1")
        self.assertEqual(self.check("--only", "tests,bits").returncode, 1)
        self.assertEqual([step["result"] for step in self.steps().values()], ["passed", "failed"])
        self.assertIn("1 failed", self.steps()["tests"]["detail"])

    def test_kernels_that_are_slow_or_faster_than_memory_fail_and_are_told(self):
        for share in ("0.79", "1.06"):
            with self.subTest(share):
                self.provide("bench_codecs", BENCH_CODECS.replace("1000 0.91", f"1000 {share}"))
                self.assertEqual(self.check("--only", "codecs").returncode, 1)
                self.assertEqual(self.steps()["codecs"]["detail"],
                                 f"1 of 2 between 0.80 and 1.05 of the floor, not: onebit.encode.2^24 {share}")

    def test_rows_of_a_bench_that_fails_late_are_kept(self):
        self.provide("bench_codecs", BENCH_CODECS + "exit 1")
        self.assertEqual(self.check("--only", "codecs").returncode, 1)
        self.assertEqual(self.steps()["codecs"]["metrics"]["dgc.decode.2^27.GBps"], 870)

    def test_tests_of_gpus_must_have_one(self):
        self.provide("test_kernels", '[ "$HIPRESS_REQUIRE_GPU" = 1 ] && ' + HEALTHY["test_kernels"])
        self.assertEqual(self.check("--only", "tests,bits").returncode, 0)

    def test_what_tests_skip_is_told(self):
        self.provide("test_kernels", 'echo "a.cpp:7: warning:"; echo "  skipped: no NVRTC"; ' + HEALTHY["test_kernels"])
        self.assertEqual(self.check("--only", "bits").returncode, 0)
        self.assertEqual(self.steps()["bits"]["detail"],
                         "All tests passed (7 assertions in 2 test cases); 1 x skipped: no NVRTC")

    def test_the_sanitizer_sees_codecs_dgc_among_them_and_ranks(self):
        self.provide("compute-sanitizer", 'printf "%s|" "$@" >> "${0%/*}/calls"; echo >> "${0%/*}/calls"; '
                     + HEALTHY["compute-sanitizer"])
        self.assertEqual(self.check("--only", "memcheck,racecheck").returncode, 0)
        calls = [line.split("|") for line in (self.bin / "calls").read_text().splitlines()]
        seen = [(call[1], pathlib.Path(call[6]).name, call[7]) for call in calls]
        self.assertEqual([(tool, program) for tool, program, _ in seen],
                         [("memcheck", "test_kernels"), ("memcheck", "test_replay"), ("racecheck", "test_kernels"),
                          ("racecheck", "test_kernels")])
        raced = {case for _, _, patterns in seen[2:] for case in matching("kernels", patterns)}
        self.assertTrue(any('"dgc"' in cases("kernels")[case] for case in raced), raced)
        self.assertIn("GPUs verify as thread ranks over TCP through pinned memory", matching("replay", seen[1][2]))

    def test_every_pattern_names_test_cases_that_there_are(self):
        patterns = re.findall(r"(?:run_tests|sanitize \w+) test_(\w+) (['\"])(.*?)\2\s", GPU_CHECK.read_text())
        self.assertEqual(len(patterns), 9)
        for folder, _, pattern in patterns:
            for one in pattern.split(","):
                self.assertTrue(matching({"emulated_kernels": "kernels/emulation"}.get(folder, folder), one), one)

    def test_a_finding_of_the_sanitizer_fails(self):
        self.provide("compute-sanitizer", 'echo "========= ERROR SUMMARY: 2 errors"; exit 1')
        self.assertEqual(self.check("--only", "memcheck").returncode, 1)

    def test_a_finding_in_the_first_of_two_runs_fails(self):
        self.provide("compute-sanitizer", 'case "$*" in *test_kernels*) echo "ERROR SUMMARY: 1 error"; exit 1;; esac')
        self.assertEqual(self.check("--only", "memcheck").returncode, 1)

    def test_wrong_requests_are_refused(self):
        for options, said in ((["--only", "nonsense"], "no step 'nonsense'"), (["--fast"], "--fast"),
                              (["--minutes", "soon"], "'soon' is no number"),
                              (["--build", str(self.folder / "none")], "no tools in"),
                              (["--json", str(self.folder / "none/x.json")], "none/x.json cannot be written"),
                              (["--json", str(self.folder)], "cannot be written"), (["--json"], "needs a value")):
            with self.subTest(options=options):
                done = self.check(*options)
                self.assertEqual(done.returncode, 2)
                self.assertIn(said, done.stderr)


if __name__ == "__main__":
    unittest.main()
