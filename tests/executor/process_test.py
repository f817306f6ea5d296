"""hipress-exec as users start it: alone, as processes of a launcher, with a rank that dies, with bad requests.

Usage: process_test.py HIPRESS_EXEC
"""

import json
import os
import signal
import subprocess
import sys
import tempfile
import unittest

EXEC = sys.argv.pop(1)
LAUNCHERS = {  # the variables of rank r of n
    "torchrun": lambda r, n: {"RANK": r, "WORLD_SIZE": n, "LOCAL_RANK": r},
    "slurm": lambda r, n: {"SLURM_PROCID": r, "SLURM_NTASKS": n, "SLURM_LOCALID": r},
    "openmpi": lambda r, n: {"OMPI_COMM_WORLD_RANK": r, "OMPI_COMM_WORLD_SIZE": n, "OMPI_COMM_WORLD_LOCAL_RANK": r},
}
GRADIENTS = "a,100003\nb,31\nc,4096\n"


class Exec(unittest.TestCase):
    def setUp(self):
        self.folder = tempfile.TemporaryDirectory(prefix="hipress_exec_")
        self.model = self.write("model.txt", GRADIENTS)

    def tearDown(self):
        self.folder.cleanup()

    def path(self, name):
        return os.path.join(self.folder.name, name)

    def write(self, name, text):
        with open(self.path(name), "w", encoding="utf-8") as file:
            file.write(text)
        return self.path(name)

    def command(self, *more, model=None, plan="all", nodes=4):
        return [EXEC, "--input", model or self.model, "--plan", plan, "--topology", "RING", "--nnodes", str(nodes), *more]

    def start_rank(self, rank, ranks, launcher, *more):
        variables = {key: str(value) for key, value in LAUNCHERS[launcher](rank, ranks).items()}
        return subprocess.Popen(
            self.command("--rendezvous", "file://" + self.folder.name, *more, nodes=ranks),
            env={**os.environ, **variables}, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)

    def refused(self, command, *said):
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        self.assertEqual(done.returncode, 2, done.stderr)
        for text in said:
            self.assertIn(text, done.stderr)

    def test_four_threads_verify(self):
        done = subprocess.run(self.command("--json", "--iterations", "2"), capture_output=True, text=True, check=False)
        self.assertEqual(done.returncode, 0, done.stderr)
        report = json.loads(done.stdout)
        self.assertIs(report["verified"], True)
        self.assertEqual(report["ranks"], 4)
        self.assertIsNone(report["predicted_iteration_s"])
        self.assertIsNone(report["relative_error"])

    def test_prediction_stands_beside_measurement_and_both_are_traced(self):
        trace = self.path("trace.json")
        done = subprocess.run(self.command("--json", "--profile", "sosp21", "--trace", trace), capture_output=True,
                              text=True, check=False)
        self.assertEqual(done.returncode, 0, done.stderr)
        report = json.loads(done.stdout)
        measured = report["measured_iteration_s"]["median"]
        # (predicted - measured) / measured, to the digits of the report.
        self.assertAlmostEqual(report["relative_error"],
                               (report["predicted_iteration_s"] - measured) / measured, places=9)
        with open(trace, encoding="utf-8") as file:
            text = file.read()
        json.loads(text)
        self.assertIn("predicted node 3", text)
        self.assertIn("measured node 3", text)

    def test_every_launcher_s_ranks_meet_and_verify(self):
        for launcher in LAUNCHERS:
            with self.subTest(launcher):
                ranks = [self.start_rank(rank, 3, launcher, "--job", launcher) for rank in range(3)]
                outputs = [rank.communicate(timeout=100) for rank in ranks]
                for rank, (_, err) in zip(ranks, outputs):
                    self.assertEqual(rank.returncode, 0, err)
                self.assertIn("verified: yes", outputs[0][0])

    def test_survivors_of_a_killed_rank_name_it_and_fail(self):
        timeout_s = 60
        ranks = [self.start_rank(rank, 4, "torchrun", "--iterations", "1000000", "--verbose", "--timeout", str(timeout_s))
                 for rank in range(4)]
        for line in ranks[2].stderr:  # it is in the middle of it
            if "iteration 3" in line:
                break
        ranks[2].send_signal(signal.SIGKILL)
        for number, rank in enumerate(ranks):
            _, err = rank.communicate(timeout=2 * timeout_s)
            if number == 2:
                self.assertEqual(rank.returncode, -signal.SIGKILL)
                continue
            self.assertEqual(rank.returncode, 1, err)
            self.assertIn("rank 2", err.strip().splitlines()[-1])

    def test_bad_requests_are_refused(self):
        self.refused(self.command(nodes=0), "--nnodes")
        self.refused(self.command("--algorithm", "zip"), "zip", "onebit")
        self.refused(self.command(plan=self.write("p", "a,100003,y,4\nb,31,n,4\nx,4096,n,4\n")), "p:3", "x")
        self.refused(self.command(plan=self.write("q", "a,100003,y,0\nb,31,n,4\nc,4096,n,4\n")), "q:1", "'0'")
        self.refused(self.command(model=self.write("m", "a,1\nb,-3\n")), "m:2", "'-3'")
        self.refused(self.command("--profile", self.path("none.yaml")), "none.yaml")
        self.refused([*self.command(), "--topology", "MESH"])
        trace = self.path("trace.json")
        self.refused(self.command("--network", "star", "--trace", trace), "port, fair")
        self.assertFalse(os.path.exists(trace))

    def test_a_rank_without_rendezvous_is_told_what_to_give(self):
        variables = {**os.environ, "RANK": "0", "WORLD_SIZE": "4"}
        done = subprocess.run(self.command(), env=variables, capture_output=True, text=True, check=False)
        self.assertEqual(done.returncode, 2)
        self.assertIn("--rendezvous", done.stderr)


if __name__ == "__main__":
    unittest.main()
