"""Tests of scripts/gpu_check.sh with programs that answer what a test says, on a machine without a GPU."""

import fnmatch
import json
import os
import pathlib
import re
import subprocess
import tempfile
import unittest

ROOT = pathlib.Path(__file__).resolve().parents[2]
GPU_CHECK = ROOT / "scripts/gpu_check.sh"
STEPS = ["tests", "bits", "memcheck", "racecheck", "kernels", "nccl", "threads", "overhead", "predict"]

CODECS = ["onebit", "tbq", "terngrad", "dgc", "graddrop", "fp16", "bf16"]
PROFILE = json.dumps({"profile": "p", "memory_bandwidth_Bps": 2e12, "codecs": {
    codec: {"encode_Bps": 0.6e12, "decode_Bps": 1.7e12, "decode_add_Bps": 0.9e12, "encode_of_ceiling": 0.91,
            "decode_of_ceiling": 0.875} for codec in CODECS}})

#: What each program does where all is well: a shell script's body.
HEALTHY = {
    "nvidia-smi": 'echo "A \\"GPU\\", 580.1"',
    "test_kernels": 'echo "All tests passed (7 assertions in 2 test cases)"',
    "test_replay": 'echo "All tests passed (1 assertion in 1 test case)"',
    "compute-sanitizer": 'echo "========= ERROR SUMMARY: 0 errors"',
    "hipress-profile": f"echo '{PROFILE}'",
    "hipress-plan": "exit 0",
    "bench_executor": """
        for word; do file=$word; done
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
    """The source of every test case of a folder, by name."""
    source = "".join(file.read_text() for file in sorted((ROOT / "tests" / folder).glob("*.cpp")))
    parts = re.split(r'^TEST_CASE\("([^"]*)"', source, flags=re.MULTILINE)
    return dict(zip(parts[1::2], parts[2::2]))


def matching(folder: str, patterns: str) -> list[str]:
    """The names of the test cases that Catch2 takes the patterns for."""
    return [name for name in cases(folder)
            if any(fnmatch.fnmatchcase(name.lower(), pattern.lower()) for pattern in patterns.split(","))]


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
                         "All tests passed (1 assertion in 1 test case)")
        self.assertEqual(steps["memcheck"]["detail"], "ERROR SUMMARY: 0 errors;ERROR SUMMARY: 0 errors")
        metrics = steps["kernels"]["metrics"]
        self.assertEqual((metrics["memory_bandwidth_Bps"], metrics["dgc.encode_Bps"], metrics["bf16.decode_of_ceiling"]),
                         (2e12, 0.6e12, 0.875))
        self.assertEqual(len(metrics), 1 + 4 * len(CODECS))
        self.assertTrue(steps["kernels"]["detail"].startswith(
            "of a copy's 2000 GB/s, encode and decode, 0.80 wanted: onebit 0.91 0.88 tbq 0.91 0.88 terngrad"))
        self.assertEqual(steps["predict"]["detail"], "worst error 4.0 %, at most 10 % wanted")
        self.assertEqual(steps["predict"]["metrics"]["ring.relative_error"], -0.04)
        self.assertEqual(steps["overhead"]["detail"], "17.5 us per task at worst, at most 20 wanted")
        rows = [line.split()[:2] for line in done.stdout.splitlines()[1:-1]]
        self.assertEqual(rows, [[step, "passed"] for step in STEPS])

    def test_nccl_ranks_seem_to_be_on_different_hosts(self):
        self.assertEqual(self.check("--only", "nccl").returncode, 0)
        calls = (self.bin / "calls").read_text().splitlines()
        # ring and ps with two plans each, and allreduce with one, by four ranks
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

    def test_a_refusal_fails_the_step_with_what_was_said(self):
        self.provide("hipress-exec", "echo \"hipress-exec: '--device cuda': not \\\"here\\\"\" >&2; exit 2")
        done = self.check()
        self.assertEqual(done.returncode, 1)
        for name, step in self.steps().items():
            expected = "failed" if name in ("nccl", "threads", "predict") else "passed"
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
        self.provide("bench_executor", HEALTHY["bench_executor"].replace("17.5", "20.5"))
        self.assertEqual(self.check("--only", "overhead").returncode, 1)
        self.assertEqual(self.steps()["overhead"]["detail"], "20.5 us per task at worst, at most 20 wanted")
        self.assertEqual(self.steps()["overhead"]["metrics"], {"worst_us_per_task": 20.5})

    def test_a_failing_test_fails_its_step_and_is_counted(self):
        self.provide("test_replay", "echo 'test cases: 2 | 1 passed | 1 failed'; exit 1")
        self.assertEqual(self.check("--only", "tests,bits").returncode, 1)
        self.assertEqual([step["result"] for step in self.steps().values()], ["failed", "passed"])
        self.assertIn("1 failed", self.steps()["tests"]["detail"])

    def test_kernels_that_are_slow_or_faster_than_memory_fail_and_are_told(self):
        for name, share, said in (("encode_of_ceiling", 0.79, "dgc 0.79 0.88"), ("decode_of_ceiling", 1.06, "dgc 0.91 1.06")):
            with self.subTest(name):
                profile = json.loads(PROFILE)
                profile["codecs"]["dgc"][name] = share
                self.provide("hipress-profile", f"echo '{json.dumps(profile)}'")
                self.assertEqual(self.check("--only", "kernels").returncode, 1)
                self.assertIn(said, self.steps()["kernels"]["detail"])

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
        self.assertEqual(len(patterns), 7)
        for folder, _, pattern in patterns:
            for one in pattern.split(","):
                self.assertTrue(matching(folder, one), one)

    def test_a_finding_of_the_sanitizer_fails(self):
        self.provide("compute-sanitizer", 'echo "========= ERROR SUMMARY: 2 errors"; exit 1')
        self.assertEqual(self.check("--only", "memcheck").returncode, 1)

    def test_a_finding_in_the_first_of_two_runs_fails(self):
        self.provide("compute-sanitizer", 'case "$*" in *test_kernels*) echo "ERROR SUMMARY: 1 error"; exit 1;; esac')
        self.assertEqual(self.check("--only", "memcheck").returncode, 1)

    def test_wrong_requests_are_refused(self):
        for options, said in ((["--only", "nonsense"], "no step 'nonsense'"), (["--fast"], "--fast"),
                              (["--build", str(self.folder / "none")], "no tools in"),
                              (["--json", str(self.folder / "none/x.json")], "none/x.json cannot be written"),
                              (["--json", str(self.folder)], "cannot be written"), (["--json"], "needs a value")):
            with self.subTest(options=options):
                done = self.check(*options)
                self.assertEqual(done.returncode, 2)
                self.assertIn(said, done.stderr)


if __name__ == "__main__":
    unittest.main()
