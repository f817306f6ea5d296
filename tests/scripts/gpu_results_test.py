"""Tests of scripts/gpu_results.py on reports of gpu_check.sh."""

import json
import pathlib
import subprocess
import sys
import tempfile
import unittest

ROOT = pathlib.Path(__file__).resolve().parents[2]
SCRIPT = ROOT / "scripts/gpu_results.py"


def step(name: str, result: str = "passed", detail: str = "well", **metrics) -> dict:
    return {"name": name, "what": f"what {name} shows", "result": result, "seconds": 1.5, "detail": detail, "metrics": metrics}


def report(*steps: dict, dry_run: bool = False) -> dict:
    return {"machine": {"gpu": "NVIDIA H100 80GB HBM3, 580.1", "host": "Linux 6.1", "cores": 16, "tools": "hipress-exec 0.1.0"},
            "date": "2026-01-02T03:04:05Z", "dry_run": dry_run, "steps": list(steps)}


class GpuResults(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory(prefix="hipress_gpu_results_")
        self.addCleanup(folder.cleanup)
        self.folder = pathlib.Path(folder.name)

    def run_on(self, content, *options: str) -> subprocess.CompletedProcess:
        file = self.folder / "gpu_check.json"
        file.write_text(content if isinstance(content, str) else json.dumps(content))
        return subprocess.run([sys.executable, "-B", SCRIPT, file, *options], capture_output=True, text=True, check=False)

    def test_codecs_are_laid_out_by_case_and_size(self):
        done = self.run_on(report(step("codecs", **{"onebit.encode.2^24.GBps": 812.34, "onebit.encode.2^24.of_floor": 0.913,
                                                    "onebit.encode.2^20.GBps": 400, "copy.2^24.GBps": 1500,
                                                    "dgc.decode.2^20.of_floor": None})))
        self.assertEqual((done.returncode, done.stderr), (0, ""))
        self.assertIn("| case | 2^20: GB/s | of the floor | 2^24: GB/s | of the floor |", done.stdout)
        self.assertIn("| onebit.encode | 400.0 |  | 812.3 | 0.91 |", done.stdout)
        self.assertIn("| copy |  |  | 1500.0 |  |", done.stdout)
        self.assertIn("# NVIDIA H100 80GB HBM3\n", done.stdout)

    def test_what_missed_and_what_was_not_run_are_told(self):
        done = self.run_on(report(step("predict", "failed", "worst error 12 %", ring=0.12), step("nccl", ring=None),
                                  step("counters", "skipped", "no ncu here")))
        self.assertEqual(done.returncode, 1)
        self.assertIn("## What missed its target\n\n- **predict**: worst error 12 %\n", done.stdout)
        self.assertIn("Not run: counters (no ncu here).", done.stdout)
        self.assertIn("| ring | not known |", done.stdout)

    def test_pages_are_named_after_the_gpu(self):
        results = self.folder / "results"
        results.mkdir()
        done = self.run_on(report(step("bits")), "--output", str(results))
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertEqual({file.name for file in results.iterdir()},
                         {"gpu_nvidia_h100_80gb_hbm3.md", "gpu_nvidia_h100_80gb_hbm3.json"})
        self.assertEqual((results / "gpu_nvidia_h100_80gb_hbm3.md").read_text(), done.stdout)
        self.assertIn("Nothing.", done.stdout)

    def test_a_dry_run_is_not_kept(self):
        done = self.run_on(report(step("bits"), dry_run=True), "--output", str(self.folder))
        self.assertEqual(done.returncode, 2)
        self.assertIn("a run without a GPU is not kept", done.stderr)
        self.assertIn("these figures are not a GPU's", done.stdout)

    def test_what_is_no_report_is_refused(self):
        for content in ("{", "[]", "{}", json.dumps({"steps": [], "machine": {}}), json.dumps(report({"name": "x"}))):
            with self.subTest(content):
                done = self.run_on(content)
                self.assertEqual(done.returncode, 2)
                self.assertIn("not a report of gpu_check.sh", done.stderr)
                self.assertNotIn("Traceback", done.stderr)


if __name__ == "__main__":
    unittest.main()
