"""Tests hipress-exec as users start it: alone, as processes of a launcher, with a rank that dies, and with invalid requests.

Usage: process_test.py HIPRESS_EXEC
"""

import json
import os
import pathlib
import resource
import signal
import struct
import subprocess
import sys
import tempfile
import time
import unittest

EXEC = sys.argv.pop(1)
PROFILES = pathlib.Path(__file__).resolve().parents[2] / "profiler/profiles"
LAUNCHERS = {  # environment variables of rank r of n
    "torchrun": lambda r, n: {"RANK": r, "WORLD_SIZE": n, "LOCAL_RANK": r},
    "slurm": lambda r, n: {"SLURM_JOB_ID": 7, "SLURM_PROCID": r, "SLURM_STEP_NUM_TASKS": n, "SLURM_LOCALID": r},
    "openmpi": lambda r, n: {"OMPI_COMM_WORLD_RANK": r, "OMPI_COMM_WORLD_SIZE": n, "OMPI_COMM_WORLD_LOCAL_RANK": r},
}
#: Time that a rank may take beyond its timeout. It needs milliseconds, but machines may be busy.
MARGIN_S = 30
GRADIENTS = "a,100003\nb,31\nc,4096\n"


def fp32(value):
    """Rounds a value to fp32."""
    return struct.unpack("<f", struct.pack("<f", value))[0]


class Onebit:
    """A onebit encoder with error feedback. Its code() returns the values that the message decodes to."""

    def __init__(self, elements):
        self.residual = [0.0] * elements

    def code(self, gradient):
        values = [fp32(a + b) for a, b in zip(gradient, self.residual)]
        negative, others = [v for v in values if v < 0], [v for v in values if not v < 0]
        means = [fp32(sum(half) / len(half)) if half else 0.0 for half in (negative, others)]
        decoded = [means[0] if v < 0 else means[1] for v in values]
        self.residual = [fp32(v - d) for v, d in zip(values, decoded)]
        return decoded


def wait_for(stream, text):
    """Waits for a line that contains the text."""
    for line in stream:
        if text in line:
            return


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

    def start_rank(self, rank, ranks, launcher, *more, **job):
        variables = {key: str(value) for key, value in LAUNCHERS[launcher](rank, ranks).items()}
        return subprocess.Popen(
            self.command("--rendezvous", "file://" + self.folder.name, *more, nodes=ranks, **job),
            env={**os.environ, **variables}, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)

    def start_ranks(self, ranks, *more, **job):
        return [self.start_rank(rank, ranks, "torchrun", *more, **job) for rank in range(ranks)]

    def require_failed(self, ranks, timeout_s, said):
        """Requires that all ranks ({number: process}) end within the time with an error that matches `said`, and do not report
        "verified"."""
        end = time.monotonic() + timeout_s + MARGIN_S
        for number, rank in ranks.items():
            out, err = rank.communicate(timeout=max(0.1, end - time.monotonic()))
            self.assertEqual(rank.returncode, 1, f"rank {number}: {err}")
            self.assertRegex(err.strip().splitlines()[-1], said)
            self.assertNotIn("verified", out)

    def require_refused(self, rank, *said):
        out, err = rank.communicate(timeout=100)
        self.assertEqual(rank.returncode, 2, err)
        for text in said:
            self.assertIn(text, err)
        self.assertNotIn("verified", out)

    def refused(self, command, *said):
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        self.assertEqual(done.returncode, 2, done.stderr)
        for text in said:
            self.assertIn(text, done.stderr)
        self.assertNotIn("verified", done.stdout)

    def test_four_threads_verify(self):
        done = subprocess.run(self.command("--json", "--iterations", "2"), capture_output=True, text=True, check=False)
        self.assertEqual(done.returncode, 0, done.stderr)
        report = json.loads(done.stdout)
        self.assertIs(report["verified"], True)
        self.assertEqual(report["ranks"], 4)
        self.assertIsNone(report["predicted_iteration_s"])
        self.assertIsNone(report["relative_error"])

    def write_gradients(self, name, ranks):
        """Writes a folder of gradients from a list of values per rank and gradient. Returns its path."""
        for rank, gradients in enumerate(ranks):
            folder = pathlib.Path(self.path(name), f"rank{rank}")
            folder.mkdir(parents=True)
            for index, values in enumerate(gradients):
                (folder / f"{index}.f32").write_bytes(struct.pack(f"<{len(values)}f", *values))
        return self.path(name)

    def read_means(self, name):
        """Reads a folder of means: {file name: values}."""
        root = pathlib.Path(self.path(name))
        contents = {str(path.relative_to(root)): path.read_bytes() for path in root.rglob("*") if path.is_file()}
        return {file: list(struct.unpack(f"<{len(content) // 4}f", content)) for file, content in contents.items()}

    def average(self, model, plan, *more, nodes=2, topology="ps"):
        """Averages the gradients in "in" with ranks as threads. Returns the means as read_means() does."""
        command = [EXEC, "--input", model, "--plan", plan, "--topology", topology, "--nnodes", str(nodes), *more,
                   "--gradients", self.path("in"), "--means", self.path("out")]
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertIn("verified: yes", done.stdout)
        means = self.read_means("out")
        for path in pathlib.Path(self.path("out")).rglob("*.f32"):
            path.unlink()  # leaves the folders, which the next run accepts
        return means

    def test_given_gradients_are_averaged(self):
        model = self.write("two.txt", "a,4\nb,1\n")
        nan, huge = float("nan"), 3e38
        self.write_gradients("in", [[[1, 2, -3, huge], [nan]], [[2, 2, 0.5, huge], [1]]])
        means = self.average(model, "none")
        self.assertEqual(sorted(means), ["rank0/0.f32", "rank0/1.f32", "rank1/0.f32", "rank1/1.f32"])
        for rank in (0, 1):
            self.assertEqual(means[f"rank{rank}/0.f32"], [1.5, 2, -1.25, float("inf")])  # huge + huge, then halved
            self.assertTrue(means[f"rank{rank}/1.f32"][0] != means[f"rank{rank}/1.f32"][0])

    def test_encoders_keep_their_state_over_the_iterations(self):
        # Rank 0 is the parameter server. All sums of these values are exact in fp32, so their order does not matter.
        own = [[-1.0, 2.25, 2.5, -1.5, -2.25, -0.25, 0.75, -1.0], [-0.25, 1.25, 1.5, -0.75, -1.5, -0.75, 1.25, 0.0]]
        worker, server = Onebit(8), Onebit(8)
        expected = []
        for _ in range(3):
            received = worker.code(own[1])
            expected.append(server.code([fp32(fp32(a + b) / 2) for a, b in zip(own[0], received)]))
        self.assertEqual(len({tuple(mean) for mean in expected}), 3)
        model = self.write("eight.txt", "a,8\n")
        plan = self.write("eight.plan", "a,8,y,1\n")
        self.write_gradients("in", [[values] for values in own])
        for warmup, iterations in ((0, 1), (1, 1), (0, 3), (2, 1)):
            means = self.average(model, plan, "--warmup", str(warmup), "--iterations", str(iterations))
            for rank in (0, 1):
                self.assertEqual(means[f"rank{rank}/0.f32"], expected[warmup + iterations - 1])

    def test_processes_write_the_means_that_threads_write(self):
        model = self.write("some.txt", "a,1000\nb,31\nc,64\n")
        values = [[[((7 * i + 3 * rank + g) % 50 - 25) / 8 for i in range(size)]
                   for g, size in enumerate((1000, 31, 64))] for rank in range(3)]
        self.write_gradients("in", values)
        threads = self.average(model, "all", "--iterations", "2", nodes=3, topology="RING")
        self.assertEqual(len(threads), 9)
        ranks = self.start_ranks(3, "--iterations", "2", "--gradients", self.path("in"), "--means", self.path("out"),
                                 model=model)
        for rank in ranks:
            _, err = rank.communicate(timeout=100)
            self.assertEqual(rank.returncode, 0, err)
        self.assertEqual(self.read_means("out"), threads)

    def test_only_some_ranks_with_given_gradients_are_refused_by_all(self):
        model = self.write("one.txt", "a,4\n")
        self.write_gradients("in", [[[1, 2, 3, 4]]] * 2)
        ranks = [self.start_rank(rank, 2, "torchrun", *(["--gradients", self.path("in")] if rank == 1 else []), model=model)
                 for rank in range(2)]
        for rank in ranks:
            self.require_refused(rank, "given gradients")

    def test_gradients_and_means_that_do_not_fit_are_refused(self):
        model = self.write("one.txt", "a,4\n")
        command = self.command(model=model, nodes=2)
        given = self.write_gradients("in", [[[1, 2, 3, 4]], [[1, 2, 3]]])
        self.refused([*command, "--gradients", given], "rank1/0.f32: has 12 bytes; give 16", "'a'")
        self.refused([*command, "--gradients", self.path("absent")], "absent: cannot be read")
        self.refused([*command, "--gradients", ""], "--gradients")
        self.refused([*command, "--gradients", self.write_gradients("short", [[[1, 2, 3, 4]]])],
                     "rank1/0.f32: cannot be read", "16 bytes")
        self.refused([*command, "--means", given], "in: holds rank", "give a new or an empty folder")
        self.refused([*command, "--means", model], "one.txt")
        self.refused([*command, "--means", ""], "--means")
        # A request that is refused for another reason makes no folder.
        self.refused([*command, "--reprobe", "--means", self.path("new")], "--reprobe")
        self.assertFalse(os.path.exists(self.path("new")))

    AUTO = ("--auto", "--profile", "v100-100g", "--compute-time", "1ms", "--iterations", "2")

    def require_chosen(self, report, ranks):
        """Requires that the numbers in a report of --auto --json agree with each other."""
        self.assertIs(report["verified"], True)
        self.assertEqual(report["ranks"], ranks)
        auto = report["automatic"]
        self.assertGreater(auto["links"]["bandwidth_Bps"], 0)
        self.assertGreater(auto["links"]["latency_s"], 0)
        self.assertRegex(auto["plan"], r"^(int8block|fp16|fp16\+int8block|int8block\+fp16) for [12] of 2 gradients$")
        self.assertAlmostEqual(auto["predicted_uncompressed_s"] / auto["predicted_plan_s"], auto["predicted_speedup"])
        self.assertLessEqual(auto["predicted_speedup_p10"], auto["predicted_speedup_p90"])
        blocks = [auto["measured_uncompressed_s"], auto["measured_plan_s"]]
        self.assertTrue(all(seconds > 0.001 for seconds in blocks), blocks)  # computation alone takes 1 ms
        self.assertIn(auto["pairs"], range(1, 9))
        interval = (auto["measured_speedup_low"], auto["measured_speedup_high"])
        if auto["pairs"] == 1:  # on a busy machine, one pair may show a plan that is far slower
            self.assertEqual((interval, auto["takes_plan"]), ((None, None), False))
        else:
            self.assertLess(interval[0], auto["measured_speedup"])
            self.assertLess(auto["measured_speedup"], interval[1])
        if auto["takes_plan"]:
            self.assertGreater(min(interval[0], auto["predicted_speedup_p10"]), 1)
        chosen = auto["plan"] if auto["takes_plan"] else auto["uncompressed"]
        self.assertEqual(auto["chosen"], chosen)
        self.assertEqual(report["iterations"], 2 * auto["pairs"])  # of the chosen plan
        measured = auto["measured_plan_s" if auto["takes_plan"] else "measured_uncompressed_s"]
        self.assertEqual(report["measured_iteration_s"]["median"], measured)
        self.assertEqual([line.split(":")[0] for line in auto["lines"]], ["links", "predicted", "measured", "chosen"])
        self.assertIn(chosen, auto["lines"][3])
        self.assertIn("schema: hipress.plan/1", auto["chosen_plan"])

    def test_auto_measures_plans_compares_and_chooses(self):
        model = self.write("two.txt", "a,1000003\nb,64\n")
        done = subprocess.run([EXEC, *self.AUTO, "--input", model, "--nnodes", "2", "--json"], capture_output=True, text=True,
                              check=False)
        self.assertEqual(done.returncode, 0, done.stderr)
        report = json.loads(done.stdout)
        self.require_chosen(report, 2)
        # The chosen plan is a plan file like any other.
        plan = self.write("chosen.yaml", report["automatic"]["chosen_plan"])
        done = subprocess.run([EXEC, "--input", model, "--plan", plan], capture_output=True, text=True, check=False)
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertIn("verified: yes", done.stdout)

    def test_auto_chooses_alike_in_processes(self):
        model = self.write("two.txt", "a,1000003\nb,64\n")
        variables = [LAUNCHERS["torchrun"](rank, 3) for rank in range(3)]
        ranks = [subprocess.Popen([EXEC, *self.AUTO, "--input", model, "--rendezvous", "file://" + self.folder.name,
                                   *(("--json",) if rank == 0 else ())],
                                  env={**os.environ, **{key: str(value) for key, value in variables[rank].items()}},
                                  stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) for rank in range(3)]
        outs = []
        for rank in ranks:
            out, err = rank.communicate(timeout=100)
            self.assertEqual(rank.returncode, 0, err)
            outs.append(out)
        self.require_chosen(json.loads(outs[0]), 3)
        self.assertEqual(outs[1:], ["", ""])

    def test_auto_tells_all_ranks_why_it_cannot_plan(self):
        variables = [LAUNCHERS["torchrun"](rank, 2) for rank in range(2)]
        cache = os.path.join(self.model, "cache")  # in a file, so rank 0 cannot keep a profile
        ranks = [subprocess.Popen([EXEC, "--auto", "--input", self.model, "--rendezvous", "file://" + self.folder.name],
                                  env={**os.environ, **{key: str(value) for key, value in variables[rank].items()},
                                       "HIPRESS_CACHE": cache},
                                  stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) for rank in range(2)]
        for rank in ranks:
            self.require_refused(rank, cache)

    def test_auto_refuses_what_it_chooses_or_measures_itself(self):
        command = [EXEC, "--auto", "--input", self.model, "--nnodes", "2"]
        for more in (("--plan", "none"), ("--bandwidth", "1Gbps"), ("--cluster", "cluster.yaml"), ("--trace", "out.json"),
                     ("--means", self.path("new")), ("--schedule", "local(steps=2)"), ("--reprobe",), ("--bulk-threshold", "1MiB")):
            self.refused([*command, *more], f"{more[0]} has no meaning beside --auto", "leave one of the two out")
        self.refused([*command, "--device", "cuda"], "--device cuda has no meaning beside --auto", "take cpu")
        self.refused([*command, "--algorithm", "no such"], "no such")
        self.refused([*command, "--profile", "no-such"], "no-such")
        self.refused([*command, "--topology", "star"], "star")
        self.refused([EXEC, "--auto", "--input", self.model], "--nnodes is required")
        self.refused([EXEC, "--auto", "--input", self.model, "--nnodes", "1"], "one rank alone", "--nnodes 2")
        self.refused([EXEC, "--input", self.model, "--nnodes", "2"], "--plan is required", "--auto")
        bare = {key: value for key, value in os.environ.items() if key not in ("HIPRESS_CACHE", "XDG_CACHE_HOME", "HOME")}
        done = subprocess.run(command, capture_output=True, text=True, check=False, env=bare)
        self.assertEqual(done.returncode, 2, done.stderr)
        self.assertIn("set HIPRESS_CACHE", done.stderr)
        self.assertFalse(os.path.exists(self.path("new")))

    def test_baselines_are_replayed_by_name(self):
        for plan in ("ddp", "none_grouped", "secopa"):
            with self.subTest(plan=plan):
                done = subprocess.run(self.command("--json", "--iterations", "1", plan=plan, nodes=2),
                                      capture_output=True, text=True, check=False)
                self.assertEqual(done.returncode, 0, done.stderr)
                self.assertIs(json.loads(done.stdout)["verified"], True)
        self.refused(self.command(plan="best"), "--plan best", "hipress-plan --output plan.yaml")
        self.refused(self.command(plan="ddq"), "neither a file nor a named plan", "ddp, ddp_fp16")

    def test_a_plan_yaml_says_topology_and_ranks_unless_the_command_line_does(self):
        model = self.write("two.txt", "a,64000\nb,320\n")
        plan = self.write("plan.yaml", "schema: hipress.plan/1\ntopology: ring\nnodes: 2\ngradients:\n"
                                       "  - {name: a, elements: 64000, algorithm: onebit, K: 2}\n"
                                       "  - {name: b, elements: 320, algorithm: none, K: 1}\n")
        command = [EXEC, "--input", model, "--plan", plan, "--iterations", "1"]
        trace = self.path("trace.json")
        done = subprocess.run([*command, "--json", "--trace", trace], capture_output=True, text=True, check=False)
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertEqual(json.loads(done.stdout)["ranks"], 2)
        with open(trace, encoding="utf-8") as file:
            self.assertEqual(json.load(file)["otherData"], {"model": "two", "plan": "plan plan.yaml, ring, N = 2"})
        self.refused([*command, "--topology", "PS"], "'ring', not ps", "--topology ring")
        self.refused([*command, "--nnodes", "3"], "2 nodes, not 3", "--nnodes 2")

    def test_more_threads_than_the_soft_limit_of_descriptors_has_room_for(self):
        # 12 ranks have 2 * 11 connections each: 264 sockets, and some more descriptors to connect and to send with.
        _, hard = resource.getrlimit(resource.RLIMIT_NOFILE)

        def run(soft, hard):
            return subprocess.run(self.command(nodes=12), capture_output=True, text=True, check=False,
                                  preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard)))

        done = run(200, hard)
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertIn("verified: yes", done.stdout)
        done = run(200, 200)
        self.assertEqual(done.returncode, 2, done.stderr)
        self.assertRegex(done.stderr, r"12 ranks in one process need 300 open files .* \(ulimit -n\)")

    def test_wherever_threads_or_memory_end_the_rank_and_a_remedy_are_named(self):
        # With stacks of 64 MiB, an address space of n * 64 MiB has room for somewhat fewer than n threads. It grows by one stack
        # per run. So each thread is the first that cannot start in some run. In one, memory ends outside of any rank's thread.
        stack = 64 << 20
        _, most = resource.getrlimit(resource.RLIMIT_STACK)

        def run(*command, threads):
            def limit():
                resource.setrlimit(resource.RLIMIT_STACK, (stack, most))
                resource.setrlimit(resource.RLIMIT_AS, (threads * stack, threads * stack))

            return subprocess.run(command, capture_output=True, text=True, check=False, preexec_fn=limit)

        if run(EXEC, "--version", threads=3).returncode != 0:
            self.skipTest("this build does not start with little address space, as with a sanitizer")
        ended = []
        for threads in range(3, 46):
            done = run(*self.command("--transport", "memory", "--iterations", "1"), threads=threads)
            ended.append(done.returncode)
            if done.returncode != 0:
                self.assertEqual(done.returncode, 1, f"{threads} threads: {done.stderr}")
                self.assertRegex(done.stderr, r"^hipress-exec: (rank \d (cannot start a thread \(.*\)|has run out of memory): .*start "
                                              r"fewer ranks here|out of memory: .*try fewer nodes)")
        self.assertEqual(ended[0], 1)

    def test_more_memory_than_there_is_is_refused_with_the_figure(self):
        # A gradient of 2 * 10^12 elements takes 8 TB on each rank. In a ring of N ranks, each rank also receives N - 1 of its N
        # partitions into buffers, to add them.
        model = self.write("vast.txt", "a,2000000000000\n")
        self.refused(self.command(model=model, plan="none"), "4 ranks in one process need about 56TB of memory",
                     "32TB for gradients", "are available: start fewer ranks (--nnodes)")
        rank = self.start_rank(0, 2, "torchrun", model=model, plan="none")
        self.require_refused(rank, "this rank needs about 12TB")

    def test_a_rank_without_descriptors_names_itself(self):
        # A process that may open 70 files keeps 64 of them for other uses. 6 are too few for connections to 3 other ranks.
        self.assertIn("rank 1 needs", self.ends_alone(1, lambda: resource.setrlimit(resource.RLIMIT_NOFILE, (70, 70))))

    def ends_alone(self, number, limit):
        """Returns the error message of a rank that ends before the others come."""
        variables = {**os.environ, "RANK": str(number), "WORLD_SIZE": "4", "LOCAL_RANK": str(number)}
        done = subprocess.run(self.command("--rendezvous", "file://" + self.folder.name), env=variables,
                              capture_output=True, text=True, check=False, preexec_fn=limit)
        self.assertEqual(done.returncode, 2, done.stderr)
        self.assertIn("ulimit -n", done.stderr)
        self.assertFalse([name for name in os.listdir(self.folder.name) if name.startswith("hipress")])
        return done.stderr

    def test_prediction_stands_beside_measurement_and_both_are_traced(self):
        trace = self.path("trace.json")
        done = subprocess.run(self.command("--json", "--profile", "sosp21", "--trace", trace), capture_output=True,
                              text=True, check=False)
        self.assertEqual(done.returncode, 0, done.stderr)
        report = json.loads(done.stdout)
        measured = report["measured_iteration_s"]["median"]
        # The error is (predicted - measured) / measured, to the digits of the report.
        self.assertAlmostEqual(report["relative_error"],
                               (report["predicted_iteration_s"] - measured) / measured, places=9)
        with open(trace, encoding="utf-8") as file:
            text = file.read()
        json.loads(text)
        self.assertIn("predicted node 3", text)
        self.assertIn("measured node 3", text)

    def probed_profile(self, bandwidth, name="probed.yaml"):
        """Writes a shipped profile with probes of this bandwidth. Returns its path."""
        with open(PROFILES / "sosp21.yaml", encoding="utf-8") as file:
            text = file.read().rstrip().removesuffix("...")
        probes = "".join(f"  {name}: {bandwidth}\n" for name in ("copy", "codec", "transport"))
        return self.write(name, f"{text}probes:\n{probes}...\n")

    def report(self, *more, **job):
        done = subprocess.run(self.command("--json", *more, **job), capture_output=True, text=True, check=False)
        self.assertEqual(done.returncode, 0, done.stderr)
        return json.loads(done.stdout)

    def test_a_prediction_has_an_interval(self):
        report = self.report("--profile", "sosp21")
        low, time_s, high = (report["predicted_iteration_s" + part] for part in ("_p10", "", "_p90"))
        self.assertTrue(0 < low < time_s < high, report)
        self.assertEqual(report["within_interval"], low <= report["measured_iteration_s"]["median"] <= high)
        self.assertIs(report["too_uncertain"], False)
        for key in ("drift", "drifted", "reprobed_iteration_s", "reprobed_iteration_s_p90"):
            self.assertIsNone(report[key], key)
        self.assertEqual(report["notes"], [])
        without = self.report()
        for key in ("predicted_iteration_s_p10", "within_interval", "too_uncertain", "drift"):
            self.assertIsNone(without[key], key)
        printed = subprocess.run(self.command("--profile", "sosp21"), capture_output=True, text=True, check=False).stdout
        self.assertRegex(printed, r"within its 10–90 % interval \S+ … \S+: (yes|no)\n")

    def test_an_interval_wider_than_a_factor_of_3_holds_nothing(self):
        # For a time that is all communication, p90/p10 is at least exp(2 · 1.28 · σ): 3.6 for σ = 0.5.
        text = (PROFILES / "sosp21.yaml").read_text(encoding="utf-8").rstrip().removesuffix("...")
        wide = self.write("wide.yaml", f"{text}spread: {{host: 1, links: 1, compute: 0, model: 1, iterations: 0}}\n...\n")
        report = self.report("--profile", wide)
        self.assertGreater(report["predicted_iteration_s_p90"], 3 * report["predicted_iteration_s_p10"])
        self.assertIsNone(report["within_interval"])
        self.assertIs(report["too_uncertain"], True)
        printed = subprocess.run(self.command("--profile", wide), capture_output=True, text=True, check=False).stdout
        self.assertRegex(printed, r"within its 10–90 % interval \S+ … \S+: too uncertain\n")

    def test_a_machine_faster_than_its_profile_says_so(self):
        # The profile's probes copied 1 kB/s, less than any machine does.
        slow = self.probed_profile("1kB/s")
        report = self.report("--profile", slow, "--again", "0", "--reprobe")
        self.assertIs(report["drifted"], True)
        self.assertEqual(sorted(report["drift"]), ["codec", "copy", "transport"])
        for ratio in report["drift"].values():
            self.assertGreater(ratio, 1000)
        self.assertRegex(report["notes"][0], r"^the machine is not as it was when profiled \(copying \S+ times as fast.*\): profile it again$")
        # With the costs of the actual speed, codecs are almost free, and links are as before.
        self.assertTrue(0 < report["reprobed_iteration_s"] < report["predicted_iteration_s"], report)
        printed = subprocess.run(self.command("--profile", slow, "--again", "0", "--reprobe"), capture_output=True, text=True,
                                 check=False).stdout
        self.assertIn("note: the machine is not as it was when profiled (copying ", printed)
        self.assertIn("by its speed now", printed)
        self.assertIsNone(self.report("--profile", slow, "--again", "0")["reprobed_iteration_s"])

    def test_processes_are_probed_by_rank_0_alone(self):
        slow = self.probed_profile("1kB/s")
        ranks = [self.start_rank(rank, 3, "torchrun", "--json", *(["--profile", slow] if rank == 0 else []))
                 for rank in range(3)]
        outputs = [rank.communicate(timeout=100) for rank in ranks]
        for rank, (_, err) in zip(ranks, outputs):
            self.assertEqual(rank.returncode, 0, err)
        self.assertGreater(json.loads(outputs[0][0])["drift"]["copy"], 1000)

    def test_of_a_cluster_the_part_between_nodes_is_compared(self):
        gpus = self.write("gpus.yaml", "nodes: 4\ngpus_per_node: 8\ngpu_link: {bandwidth: 100GB/s, overhead: 2us}\n")
        racks = self.write("racks.yaml", "nodes: 4\nrack: {hosts: 2, oversubscription: 4}\n")
        hosts = self.write("hosts.yaml", "nodes: 4\nnodes_per_host: 2\nhost_link: {bandwidth: 300GB/s}\n")
        flat = self.report("--profile", "sosp21")["predicted_iteration_s"]
        for cluster, left_out in ((gpus, "8 GPUs per node"), (racks, "racks"), (hosts, "links within hosts")):
            report = self.report("--profile", "sosp21", "--cluster", cluster)
            self.assertEqual(report["notes"], [f"the cluster has {left_out}; these ranks are 4 threads on one machine: "
                                               "only the part between nodes is compared"])
            self.assertEqual(report["predicted_iteration_s"], flat)

    def test_a_trace_that_cannot_be_written_is_refused_before_anything_is_run(self):
        done = subprocess.run(self.command("--verbose", "--trace", self.path("absent/trace.json")), capture_output=True,
                              text=True, check=False)
        self.assertEqual(done.returncode, 2, done.stderr)
        self.assertIn("absent/trace.json: cannot be written", done.stderr)
        self.assertNotIn("iteration", done.stderr)

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
        ranks = self.start_ranks(4, "--iterations", "1000000", "--verbose", "--timeout", str(timeout_s))
        wait_for(ranks[2].stderr, "iteration 3")  # rank 2 has begun iteration 3
        ranks[2].send_signal(signal.SIGKILL)
        # The others wait for a task's message, or for a message that ranks exchange between iterations. A closed connection is
        # noticed at once, whatever the timeout.
        self.require_failed({rank: ranks[rank] for rank in (0, 1, 3)}, 0,
                            r"rank 2 closed the connection.*(waits for 'Recv |iteration \d+)")
        ranks[2].communicate()
        self.assertEqual(ranks[2].returncode, -signal.SIGKILL)

    def test_survivors_of_a_stopped_rank_whose_links_are_full_name_it_and_the_task(self):
        # Rank 2 is stopped before the gradient is ready. Then 32 MB to and from it fill every buffer, and only its silence shows
        # that it is dead.
        model = self.write("late.yaml", "name: late\ngradients:\n"
                           "- {name: early, elements: 64, ready: 0ms}\n"
                           "- {name: large, elements: 8000000, ready: 2000ms}\n")
        timeout_s = 8
        ranks = self.start_ranks(4, "--verbose", "--timeout", str(timeout_s), "--silence", "4", model=model, plan="none")
        wait_for(ranks[2].stderr, "iteration 0")
        time.sleep(0.5)
        ranks[2].send_signal(signal.SIGSTOP)
        try:
            self.require_failed({rank: ranks[rank] for rank in (0, 1, 3)}, timeout_s,
                                r"rank 2 was silent for 4 s.*(waits for 'Recv (early|large)|iteration 0)")
        finally:
            ranks[2].kill()
            ranks[2].communicate()

    def test_ranks_with_another_plan_are_refused_by_all(self):
        ranks = [self.start_rank(rank, 3, "torchrun", plan="none" if rank == 1 else "all") for rank in range(3)]
        for number, rank in enumerate(ranks):
            other = 0 if number == 1 else 1
            self.require_refused(rank, f"rank {other} of job 'hipress' has plan", f"rank {number} has")

    def test_ranks_with_another_backward_or_timeout_are_refused_by_all(self):
        for option, values, said in (("--backward", ("idle", "spin"), ("backward idle", "backward spin")),
                                     ("--timeout", ("50", "60"), ("50.0", "60.0")),
                                     ("--silence", ("40", "45"), ("40.0", "45.0"))):
            with self.subTest(option):
                ranks = [self.start_rank(rank, 2, "torchrun", option, value, "--job", option)
                         for rank, value in enumerate(values)]
                for rank in ranks:
                    self.require_refused(rank, *said)

    def test_a_trace_that_rank_0_alone_asks_for_is_of_all_ranks(self):
        trace = self.path("trace.json")
        ranks = [self.start_rank(rank, 3, "torchrun", *(["--trace", trace] if rank == 0 else [])) for rank in range(3)]
        for rank in ranks:
            _, err = rank.communicate(timeout=100)
            self.assertEqual(rank.returncode, 0, err)
        with open(trace, encoding="utf-8") as file:
            text = file.read()
        json.loads(text)
        self.assertIn("measured node 2", text)

    def test_ranks_of_another_version_are_refused(self):
        # Rank 1 dies after it has left its card. Then the test changes the version in the card.
        rank = self.start_rank(1, 2, "torchrun")
        card = self.wait_for_card()
        rank.kill()
        rank.communicate()
        with open(card, encoding="utf-8") as file:
            seal, written = file.readline(), json.load(file)
        self.write(os.path.basename(card), seal + json.dumps({**written, "version": "99.0, protocol 1"}))
        self.require_refused(self.start_rank(0, 2, "torchrun"), "rank 1 of job 'hipress' has version \"99.0", "rank 0")

    def wait_for_card(self):
        while True:
            for name in filter(lambda name: not name.startswith("."), os.listdir(self.folder.name)):
                with open(self.path(name), encoding="utf-8") as file:
                    if '"nonce"' in file.read():
                        return self.path(name)
            time.sleep(0.01)

    def secret_file(self, name, content, mode=0o600):
        path = self.write(name, content)
        os.chmod(path, mode)
        return path

    def test_ranks_with_the_same_secret_verify(self):
        secret = self.secret_file("secret", "sixteen letters or more")
        ranks = self.start_ranks(2, "--secret-file", secret)
        for rank in ranks:
            _, err = rank.communicate(timeout=100)
            self.assertEqual(rank.returncode, 0, err)

    def test_ranks_with_another_secret_are_refused_and_none_is_told(self):
        ranks = [self.start_rank(rank, 2, "torchrun", "--secret-file",
                                 self.secret_file(f"secret{rank}", f"secret of sixteen letters {rank}"))
                 for rank in range(2)]
        for number, rank in enumerate(ranks):
            _, err = rank.communicate(timeout=100)
            self.assertEqual(rank.returncode, 1, err)
            self.assertIn(f"card of rank {1 - number}", err)
            self.assertIn("not written by a rank of this job", err)
            self.assertNotIn("sixteen letters", err)

    def test_a_secret_that_others_may_read_is_refused(self):
        for mode in (0o640, 0o604):
            self.refused(self.command("--secret-file", self.secret_file("open", "sixteen letters or more", mode)),
                         "chmod 600")
        self.refused(self.command("--secret-file", self.secret_file("short", "fifteen letters")), "at least 16")
        self.refused(self.command("--secret-file", self.secret_file("empty", "")), "at least 16")
        self.refused(self.command("--secret-file", ""))

    def test_ranks_of_another_job_do_not_meet(self):
        ranks = [self.start_rank(rank, 2, "torchrun", "--job", f"job {rank}", "--timeout", "2") for rank in range(2)]
        for number, rank in enumerate(ranks):
            self.require_failed({number: rank}, 2, f"rank {1 - number} did not come .* 'job {number}'")

    def test_of_two_ranks_with_one_number_the_second_is_refused(self):
        first = self.start_rank(1, 2, "torchrun")
        self.wait_for_card()
        self.require_refused(self.start_rank(1, 2, "torchrun"), "rank 1 of job 'hipress' is taken",
                             "two ranks have this number")
        zero = self.start_rank(0, 2, "torchrun")  # the job goes on
        out, err = zero.communicate(timeout=100)
        self.assertEqual(zero.returncode, 0, err)
        self.assertIn("verified: yes", out)
        self.assertEqual(first.wait(100), 0)
        first.communicate()

    def test_a_rank_that_comes_too_late_is_named(self):
        rank = self.start_rank(0, 2, "torchrun", "--timeout", "1")
        self.require_failed({0: rank}, 1, "rank 1 did not come")

    def test_bad_requests_are_refused(self):
        self.refused(self.command(nodes=0), "--nnodes")
        self.refused(self.command("--algorithm", "zip"), "zip", "onebit")
        self.refused(self.command(plan=self.write("p", "a,100003,y,4\nb,31,n,4\nx,4096,n,4\n")), "p:3", "x")
        self.refused(self.command(plan=self.write("q", "a,100003,y,0\nb,31,n,4\nc,4096,n,4\n")), "q:1", "'0'")
        need = self.write("need.yaml", "schema: hipress.plan/1\ntopology: ring\nnodes: 4\ntransfer_order: need\n"
                          "gradients:\n" + "".join(f"  - {{name: {name}, elements: {count}, algorithm: none, K: 4}}\n"
                                                   for name, count in (line.split(",") for line in GRADIENTS.split())))
        self.refused(self.command(plan=need), "need.yaml: transfer_order", "--transfer-order ready")
        self.refused(self.command(model=self.write("m", "a,1\nb,-3\n")), "m:2", "'-3'")
        for name, text in (("e.txt", ""), ("e.csv", "name,elements\n"), ("e.yaml", "name: e\ngradients: []\n")):
            self.refused(self.command("--json", model=self.write(name, text)), name + ": nothing to synchronise")
        self.refused(self.command("--profile", self.path("none.yaml")), "none.yaml")
        self.refused([*self.command(), "--topology", "MESH"])
        gpus = self.write("gpus.yaml", "nodes: 4\ngpus_per_node: 8\ngpu_link: {bandwidth: 100GB/s, overhead: 2us}\n")
        racks = self.write("racks.yaml", "nodes: 4\nrack: {hosts: 2, oversubscription: 4}\n")
        self.refused(self.command("--profile", "sosp21", "--cluster", racks, nodes=3), racks, "4 nodes", "3 are asked for")
        self.refused(self.command("--profile", "sosp21", "--cluster", gpus, "--reprobe"), "sosp21", "hipress-profile")
        self.refused(self.command("--reprobe"), "--reprobe", "--profile")
        self.refused(self.command("--again", "-1"), "--again", "'-1'")
        flat = self.write("flat.yaml", "nodes: 4\n")
        self.refused(self.command("--cluster", flat), "--cluster", "--profile")
        self.refused(self.command("--cluster", self.path("absent.yaml")), "absent.yaml", "cannot be read")
        for wrong in ("nan", "inf", "0", "0.01", "1e10"):
            self.refused(self.command("--timeout", wrong), "--timeout", "from 0.1 to 1000000", f"'{wrong}'")
        trace = self.path("trace.json")
        self.refused(self.command("--network", "star", "--trace", trace), "port, fair")
        self.assertFalse(os.path.exists(trace))

    def test_options_of_a_job_of_processes_have_no_effect_on_threads_and_say_so(self):
        done = subprocess.run(self.command("--rendezvous", "file:///tmp", "--job", "1", "--interface", "lo", nodes=2),
                              capture_output=True, text=True, check=False)
        self.assertEqual(done.returncode, 0, done.stderr)
        for option in ("--rendezvous", "--job", "--interface"):
            self.assertIn(f"{option} has no effect", done.stderr)
        done = subprocess.run(self.command(nodes=2), capture_output=True, text=True, check=False)
        self.assertEqual((done.returncode, done.stderr), (0, ""))

    def test_a_rank_without_rendezvous_is_told_what_to_give(self):
        variables = {**os.environ, "RANK": "0", "WORLD_SIZE": "4"}
        done = subprocess.run(self.command(), env=variables, capture_output=True, text=True, check=False)
        self.assertEqual(done.returncode, 2)
        self.assertIn("--rendezvous", done.stderr)


if __name__ == "__main__":
    unittest.main()
