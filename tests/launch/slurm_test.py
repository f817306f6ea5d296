"""Tests of hipress-exec under a real Slurm: by srun, by the batch file of docs/cluster.md, and a sweep as a job array.

Usage: slurm_test.py FOLDER_OF_TOOLS
"""

import json
import os
import pathlib
import shlex
import sys
import tempfile
import unittest

import slurm
from processes import RANKS, LaunchTest, require_programs

ROOT = pathlib.Path(__file__).resolve().parents[2]
BATCH_FILES = ROOT / "examples/slurm"


class SlurmTest(LaunchTest):
    @classmethod
    def setUpClass(cls):
        folder = tempfile.TemporaryDirectory(prefix="hipress_slurm_")
        cls.addClassCleanup(folder.cleanup)
        cls.slurm = cls.enterClassContext(slurm.Slurm(pathlib.Path(folder.name)))

    def submit(self, batch_file: str, *options: str, **variables: str) -> tuple[str, set[str]]:
        """Submits a batch file from this test's folder, with the tools on the PATH, and waits for its end. Returns the job's number
        and the states in which it, or the tasks of its array, ended."""
        path = f"{self.tools}:{os.environ['PATH']}"
        done = self.slurm.run("sbatch", "--parsable", *options, BATCH_FILES / batch_file, cwd=self.folder, PATH=path,
                              **variables)
        self.assertEqual(done.returncode, 0, done.stderr)
        job = done.stdout.strip()
        return job, self.slurm.wait_for(job, timeout_s=400)

    def output_of_jobs(self) -> str:
        return "".join(f"\n== {log.name}\n{log.read_text()}" for log in sorted(self.folder.glob("*.log")))

    def test_srun(self):
        done = self.slurm.run("srun", "-n", RANKS, *self.exec_command())
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assert_verified(done.stdout)

    def test_a_step_that_fails_fails_srun(self):
        done = self.slurm.run("srun", "-n", RANKS, *self.exec_command("--algorithm", "zip"))
        self.assertEqual(done.returncode, 2, done.stderr)

    def test_one_task_is_no_launcher(self):
        done = self.slurm.run("srun", "-n", 1, *self.exec_command("--nnodes", "2"))
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assert_verified(done.stdout, ranks=2)  # ranks are threads, as outside of Slurm

    def test_in_a_batch_script_itself_ranks_are_threads(self):
        for options in ([], ["--ntasks=4"]):  # only --ntasks sets SLURM_NTASKS
            with self.subTest(options):
                command = shlex.join(self.exec_command("--nnodes", "2"))
                done = self.slurm.run("sbatch", "--parsable", *options, "--output", "wrap.log", "--wrap",
                                      f"{command} 2>/dev/null", cwd=self.folder)
                self.assertEqual(done.returncode, 0, done.stderr)
                states = self.slurm.wait_for(done.stdout.strip(), timeout_s=100)
                self.assertEqual(states, {"COMPLETED"}, self.output_of_jobs())
                self.assert_verified((self.folder / "wrap.log").read_text(), ranks=2)

    def test_profile_plan_exec_as_a_batch_job(self):
        # Submitted as docs/cluster.md does, with a number of ranks that is no program's default.
        cluster = self.folder / "cluster.yaml"
        cluster.write_text("nodes: 3\nnodes_per_host: 1\nrack: {hosts: 1}\n")
        job, states = self.submit("plan_and_run.sbatch", "--nodes=1", "--ntasks-per-node=3", MODEL=str(self.model),
                                  PROFILE_OPTIONS="--quick --again 0", CLUSTER=str(cluster))
        self.assertEqual(states, {"COMPLETED"}, self.output_of_jobs() + self.slurm.logs())
        results = self.folder / f"hipress-{job}"
        report = (results / "exec.json").read_text()
        self.assert_verified(report, ranks=3)
        self.assertGreater(json.loads(report)["predicted_iteration_s"], 0)
        self.assertIn("the cluster has racks; these ranks are 3 processes", json.loads(report)["notes"][0])
        self.assertEqual({path.name for path in results.iterdir()}, {"profile.yaml", "plan.yaml", "exec.json"},
                         self.output_of_jobs())

    def test_a_batch_job_whose_step_fails_fails(self):
        job, states = self.submit("plan_and_run.sbatch", "--nodes=1", "--ntasks-per-node=2", ALGORITHM="zip")
        self.assertEqual(states, {"FAILED"})
        self.assertIn("zip", self.output_of_jobs())
        self.assertFalse((self.folder / f"hipress-{job}/exec.json").exists())

    def test_a_batch_job_of_one_rank_is_refused(self):
        _, states = self.submit("plan_and_run.sbatch", MODEL=str(self.model))
        self.assertEqual(states, {"FAILED"})
        self.assertIn("--ntasks-per-node", self.output_of_jobs())

    def test_a_sweep_as_a_job_array(self):
        spec = self.folder / "spec.yaml"
        spec.write_text("model: vgg19\ntopology: [ps, ring]\nnodes: [2, 3, 4]\n")
        job, states = self.submit("sweep.sbatch", "--array=5-8", SPEC=str(spec))
        self.assertEqual(states, {"COMPLETED"}, self.output_of_jobs())
        parts = sorted(self.folder.glob(f"sweep-{job}-*.csv"))
        self.assertEqual(len(parts), 4, self.output_of_jobs())
        whole = self.folder / "whole.csv"
        alone = self.slurm.run(self.tools / "hipress-sim", "sweep", spec, "--output", whole)
        self.assertEqual(alone.returncode, 0, alone.stderr)
        self.assertEqual("".join(part.read_text() for part in parts), whole.read_text())

    def test_a_sweep_that_submits_its_array(self):
        spec = self.folder / "spec.yaml"
        spec.write_text("model: vgg19\ntopology: [ps, ring]\nnodes: [2, 3, 4]\n")
        whole, joined = self.folder / "whole.csv", self.folder / "joined.csv"
        alone = self.slurm.run(self.tools / "hipress-sim", "sweep", spec, "--output", whole)
        self.assertEqual(alone.returncode, 0, alone.stderr)
        done = self.slurm.run(self.tools / "hipress-sim", "sweep", spec, "--output", joined, "--slurm", "4")
        self.assertEqual(done.returncode, 0, done.stderr + self.slurm.logs())
        self.assertEqual(joined.read_text(), whole.read_text())
        self.assertEqual(list(self.folder.glob("joined.csv.part-*")), [])


if __name__ == "__main__":
    slurm.isolate()
    require_programs("munged", "slurmctld", "slurmd", "srun", "sbatch")
    LaunchTest.tools = pathlib.Path(sys.argv.pop(1)).resolve()
    unittest.main()
