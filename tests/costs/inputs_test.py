#!/usr/bin/env python3
"""Tests options of hipress-plan, hipress-sim and hipress-exec: short forms of clusters and times, scaled kernels, and
users' algorithms.

usage: inputs_test.py FOLDER-OF-THE-TOOLS CACHE
"""
import json
import os
import pathlib
import subprocess
import sys
import tempfile
import unittest

TOOLS, CACHE = (os.path.abspath(path) for path in sys.argv[1:3])

CLUSTER = """nodes: 8
gpus_per_node: 4
gpu_link: {bandwidth: 250GB/s, overhead: 5us}
link: {bandwidth: 25Gbps, overhead: 20us, latency: 20us}
"""
SHORT = ("--nnodes", "8", "--bandwidth", "25Gbps", "--overhead", "20us", "--latency", "20us", "--gpus-per-node", "4")
SIGNS = """void SignsEncode(float* g, uint8* c) {
  uint<1>* q = map(g, [](float v) { return v < 0 ? 1 : 0; });
  c = concat(q);
}
void SignsDecode(uint8* c, float* g) {
  uint<1>* q;
  extract(c, q);
  g = map(q, [](int s) { return 1 - 2 * s; });
}
"""
#: A sparsifier whose density is not called `rho`.
KEEP = """void KeepEncode(float* gradient, uint8* compressed, float share = 0.01 in [0.001, 0.5]) {
  error_feedback gradient;
  int count = ceil(share * gradient.size);
  uint<32>* chosen = largest(gradient, count);
  float* entries = gather(gradient, chosen);
  compressed = concat(chosen, entries);
}
void KeepDecode(uint8* compressed, float* gradient) {
  uint<32>* chosen;
  float* entries;
  extract(compressed, chosen, entries);
  gradient = scatter(chosen, entries, gradient.size);
}
"""
ROW = "{pieces: [{from: 0, a_s: 1e-5, s_per_element: 1e-11}]}"
OWN = f"""schema: hipress.profile/1
name: own
source: measured
hardware: {{name: test, device: cpu, memory_bandwidth: 1.8TB/s}}
kernels:
  measured_at: 900GB/s
  merge: {ROW}
  codecs:
    signs.pse: {{encode: {ROW}, decode: {ROW}, decode_add: {ROW}}}
    keep.pse: {{encode: {ROW}, decode: {ROW}, decode_add: {ROW}}}
    fp16: {{encode: {ROW}, decode: {ROW}, decode_add: {ROW}}}
links: {{overhead: 20us, bandwidth: 1Gbps, latency: 20us}}
...
"""


class Inputs(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = pathlib.Path(folder.name)
        self.write("c25.yaml", CLUSTER)
        self.write("own.yaml", OWN)
        self.write("signs.pse", SIGNS)
        self.write("keep.pse", KEEP)
        self.write("m.txt", "conv,100000\ndense,300000\n")

    def write(self, name, text):
        (self.folder / name).write_text(text, encoding="utf-8")

    def run_tool(self, tool, *words):
        return subprocess.run([f"{TOOLS}/{tool}", *words], cwd=self.folder, capture_output=True, text=True, check=False,
                              timeout=250, env={**os.environ, "HIPRESS_CACHE": CACHE})

    def answer(self, tool, *words):
        done = self.run_tool(tool, *words)
        self.assertEqual(done.returncode, 0, done.stderr)
        return done

    def simulate(self, *words):
        return self.answer("hipress-sim", "--plan", "all", *words)

    def plan(self, *words):
        return self.answer("hipress-plan", "--evaluations", "20", "--output", "plan.yaml", *words)

    def replay(self, *words):
        return self.answer("hipress-exec", "--plan", "none", "--nnodes", "2", "--transport", "memory", "--iterations", "1",
                           "--warmup", "0", *words)

    # ---- machines ----

    def test_short_forms_predict_what_a_cluster_file_does(self):
        common = ("--input", "vgg19", "--profile", "v100-100g", "--json")
        short, file = (json.loads(self.simulate(*common, *words).stdout) for words in (SHORT, ("--cluster", "c25.yaml")))
        for timing in ("simulation_s", "tasks_per_s"):
            del short[timing], file[timing]
        self.assertEqual(short, file)

    def test_clusters_by_pipes_predict_what_files_do(self):
        self.write("fat.yaml", "machine: hgx-h100\nhosts: 2\nrack: {hosts: 1, oversubscription: 2}\n")
        for file in ("c25.yaml", "fat.yaml"):
            for command in ("hipress-sim --plan all", "hipress-plan --evaluations 20 --output plan.yaml"):
                with self.subTest(file=file, command=command):
                    answers = []
                    for cluster in (file, "/dev/stdin", f"<(cat {file})"):
                        done = subprocess.run(
                            ["bash", "-c", f"cat {file} | {TOOLS}/{command} --input vgg19 --topology ring --json --cluster {cluster}"],
                            cwd=self.folder, capture_output=True, text=True, check=False, timeout=250)
                        self.assertEqual(done.returncode, 0, done.stderr)
                        answers.append(json.loads(done.stdout)[
                            "iteration_s" if "sim" in command else "predicted_iteration_s"])
                    self.assertEqual(answers, answers[:1] * 3)

    def test_reports_name_profile_links_and_compute_time(self):
        line = ("profile v100-100g (derived), 8 nodes × 4 GPUs, links 25 Gbit/s + 20us latency + 20us overhead, "
                "GPUs 250 GB/s; compute ")
        done = self.simulate("--input", "vgg19", "--profile", "v100-100g", *SHORT)
        self.assertIn(line, done.stdout)
        self.assertNotIn("no --profile was given", done.stdout)
        self.assertIn("GPUs of a node are assumed to be joined at 250GB/s", done.stderr)
        self.assertIn("profile sosp21 (published), since no --profile was given",
                      self.simulate("--input", "vgg19").stdout)

    def test_the_planner_takes_short_forms_and_then_simulates(self):
        planned = json.loads(self.plan("--input", "vgg19", "--json", "--profile", "a100-100g", *SHORT).stdout)
        done = self.answer("hipress-sim", "--input", "vgg19", "--plan", "plan.yaml", "--json", "--profile", "a100-100g",
                           *SHORT)
        self.assertEqual(json.loads(done.stdout)["iteration_s"], planned["predicted_iteration_s"])

    def test_a_replay_says_what_it_is_predicted_for(self):
        words = ("--input", "m.txt", "--profile", "a100-10g", "--latency", "1ms", "--compute-time", "3ms")
        done = self.replay(*words)
        line = ("profile a100-10g (estimated), 2 nodes, links 9.4 Gbit/s + 1ms latency + 20us overhead; compute 3ms "
                "(forward 1ms)")
        self.assertIn("predicted for " + line, done.stdout)
        self.assertEqual(json.loads(self.replay("--json", *words).stdout)["predicted_for"], line)

    def test_what_makes_no_sense_is_refused_by_every_tool(self):
        tools = (("hipress-plan", "--input", "m.txt"), ("hipress-sim", "--input", "m.txt", "--plan", "all"),
                 ("hipress-exec", "--input", "m.txt", "--plan", "none", "--nnodes", "2", "--profile", "a100-10g"))
        for tool in tools:
            for words in (("--bandwidth", "25"), ("--latency", "fast"), ("--gpus-per-node", "0"), ("--profile", ""),
                          ("--compute-time", "120"), ("--forward", "-1ms"), ("--scale-kernels", "2x")):
                with self.subTest(tool=tool[0], words=words):
                    done = self.run_tool(*tool, *words)
                    self.assertEqual((done.returncode, done.stdout), (2, ""), done.stderr)
                    self.assertIn(words[0], done.stderr)
        done = self.run_tool("hipress-exec", "--input", "m.txt", "--plan", "none", "--nnodes", "2", "--bandwidth", "25Gbps")
        self.assertEqual(done.returncode, 2)
        self.assertIn("add --profile", done.stderr)

    def test_kernels_are_scaled_when_asked_and_an_edit_alone_is_warned_of(self):
        def encode_s(*words):
            done = self.simulate("--input", "vgg19", "--nnodes", "2", "--json", "--profile", *words)
            return json.loads(done.stdout)["iteration_s"], done.stderr

        base, _ = encode_s("v100-100g")
        scaled, diagnostic = encode_s("v100-100g", "--scale-kernels", "1.8TB/s")
        self.assertLess(scaled, base)
        self.assertIn("scaled from 900GB/s to 1.8TB/s", diagnostic)
        done = self.plan("--input", "m.txt", "--nnodes", "2", "--profile", "own.yaml", "--algorithm", "fp16")
        self.assertIn("hardware.memory_bandwidth 1.8TB/s has no effect", done.stderr)
        self.assertIn("--scale-kernels", done.stderr)
        done = self.plan("--input", "m.txt", "--nnodes", "2", "--profile", "own.yaml", "--algorithm", "fp16",
                         "--scale-kernels")
        self.assertNotIn("has no effect", done.stderr)

    # ---- times ----

    def test_times_that_a_model_does_not_say(self):
        def report(*words):
            done = self.simulate("--input", "m.txt", "--nnodes", "2", "--json", *words)
            return json.loads(done.stdout), done.stderr

        self.assertEqual(report()[0]["compute_s"], 0)
        timed, diagnostics = report("--compute-time", "120ms")
        self.assertAlmostEqual(timed["compute_s"], 0.12, places=9)
        self.assertIn("forward is assumed to be a third", diagnostics)
        self.assertIn("in proportion to their elements, the last gradient first", diagnostics)
        self.assertAlmostEqual(report("--forward", "7ms")[0]["compute_s"], 0.007, places=9)
        done = self.plan("--input", "m.txt", "--nnodes", "2", "--profile", "a100-10g", "--compute-time", "120ms", "--forward",
                         "20ms")
        self.assertIn("backward of 100ms is spread over the gradients", done.stderr)

    # ---- users' algorithms ----

    def test_a_program_is_planned_with_its_own_profile(self):
        words = ("--input", "m.txt", "--nnodes", "4", "--profile", "own.yaml", "--algorithm", "signs.pse", "--topology",
                 "RING")
        done = self.plan(*words)
        self.assertIn("the coarseness of signs.pse is unknown", done.stderr)
        self.assertEqual(done.stderr.count("is unknown: it is taken"), 1)
        done = self.plan(*words, "--accuracy", "signs.pse=onebit")
        self.assertNotIn("is unknown: it is taken", done.stderr)
        done = self.plan(*words[:-4], "--algorithm", "signs.pse,fp16", "--accuracy", "signs.pse=4", "--coarsest", "terngrad")
        self.assertNotIn("signs.pse", (self.folder / "plan.yaml").read_text())
        refused = self.run_tool("hipress-plan", *words, "--accuracy", "signs.pse=9")
        self.assertEqual(refused.returncode, 2)
        self.assertIn("--accuracy 'signs.pse=9'", refused.stderr)

    def test_a_sparsifier_without_rho_is_planned_without_a_dense_fallback(self):
        done = self.answer("hipress-plan", "--input", "m.txt", "--nnodes", "4", "--profile", "own.yaml", "--compute-time", "1ms",
                           "--topology", "ALLGATHER", "--algorithm", "keep.pse", "--accuracy", "keep.pse=5", "--evaluations", "50",
                           "--output", "plan.yaml")
        self.assertIn("the density from which dense is faster is unknown", done.stderr)
        self.assertIn("no parameter 'rho'", done.stderr)
        plan = (self.folder / "plan.yaml").read_text()
        self.assertIn("algorithm: keep.pse", plan)
        self.assertNotIn("dense: {", plan)

    def test_foreign_costs_are_named(self):
        done = self.answer("hipress-plan", "--input", "m.txt", "--nnodes", "4", "--algorithm", "signs.pse")
        self.assertIn("signs.pse is planned with the costs that SeCoPa published", done.stderr)
        done = self.plan("--input", "m.txt", "--nnodes", "4", "--profile", "a100-10g", "--algorithm", "tbq(tau=0.25)")
        self.assertIn("tbq(tau=0.25) is charged the cost of tbq, since profile a100-10g has no costs of its own",
                      done.stderr)


if __name__ == "__main__":
    unittest.main(argv=[sys.argv[0], *sys.argv[3:]])
