"""Tests of scripts/validate.py and its experiments networks, plans and link, with fakes of the tools, ip and tc, whose answers the
test sets. They need no special rights.

Usage: validate_test.py
"""

import dataclasses
import importlib
import importlib.util
import json
import os
import pathlib
import signal
import stat
import subprocess
import sys
import tempfile
import time
import unittest
from unittest import mock

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "scripts"))
# Found through the path above.
from validation import cases, command, evaluation, measurement, network, ranks, results  # noqa: E402
from validation.cases import Case  # noqa: E402
from validation.conditions import Conditions  # noqa: E402
from validation.evaluation import Result  # noqa: E402
from validation.experiments import EXPERIMENTS, plans  # noqa: E402

# Fake of ip: namespaces are lines of a file, and every call is logged. `ip netns exec NAME command` runs the command. It is a shell
# script, because it is called hundreds of times.
FAKE_IP = """#!/bin/sh
here={folder}
echo "${{0##*/}} $*" >> $here/log
case "$1 $2" in
  "netns add")
    if [ -e $here/forbidden ]; then echo "mount failed: Operation not permitted" >&2; exit 1; fi
    echo "$3" >> $here/names ;;
  "netns del")
    grep -vx "$3" $here/names > $here/names.new; mv $here/names.new $here/names ;;
  "netns list")
    if [ -e $here/names ]; then sed 's/$/ (id: 0)/' $here/names; fi ;;
  "netns exec")
    if [ "$4" != sh ]; then shift 3; exec "$@"; fi ;;
esac
"""

FAKE_PROFILE = """#!{python}
import pathlib, sys
pathlib.Path(sys.argv[sys.argv.index("--output") + 1]).write_text("schema: hipress.profile/1\\n")
"""

# Fake of hipress-plan: writes a plan, and logs its arguments.
FAKE_PLAN = """#!{python}
import pathlib, sys
open(pathlib.Path(__file__).resolve().parent / "planned", "a").write(" ".join(sys.argv[1:]) + "\\n")
pathlib.Path(sys.argv[sys.argv.index("--output") + 1]).write_text("topology: ps\\n")
"""

# Fake of hipress-exec: takes FAKE_SLEEP_S, and reports the times that belong to its plan.
FAKE_EXEC = """#!{python}
import json, os, pathlib, sys, time
if "--rendezvous" in sys.argv:
    folder = pathlib.Path(sys.argv[sys.argv.index("--rendezvous") + 1].removeprefix("file://"))
    if not folder.is_dir():
        sys.exit(f"there is no folder {{folder}}")
time.sleep(float(os.environ.get("FAKE_SLEEP_S", "0")))
plan = pathlib.Path(sys.argv[sys.argv.index("--plan") + 1]).stem.split("_")[-1]
times = {{"none": (1.1, [1.0, 1.02]), "fp16": (0.55, [0.5, 0.6]), "all": (0.3, [0.31, 0.32]), "secopa": (0.4, [0.4]),
          "greedy": (0.3, [0.3]), "timeline": (0.29, [0.28, 0.3])}}[plan]
if "--trace" in sys.argv:
    pathlib.Path(sys.argv[sys.argv.index("--trace") + 1]).write_text("{{}}")
print(json.dumps({{"each_measured_iteration_s": times[1], "predicted_iteration_s": times[0],
                  "predicted_iteration_s_p10": times[0] * 0.9, "predicted_iteration_s_p90": times[0] * 1.1, "compute_s": 0.1,
                  "verified": True}}))
"""


def result(case: Case, predicted_s: float, repetitions_s: tuple, compute_s: float = 0.1) -> Result:
    return Result(case, 0.5, 0.25, predicted_s, compute_s, repetitions_s)


def report_of(seconds: list, predicted_s: float) -> dict:
    """Report of hipress-exec whose interval reaches from half to twice the prediction."""
    return {"each_measured_iteration_s": seconds, "predicted_iteration_s": predicted_s,
            "predicted_iteration_s_p10": predicted_s / 2, "predicted_iteration_s_p90": predicted_s * 2, "compute_s": 0.5,
            "verified": True}


def at(handover_us: float) -> Conditions:
    return Conditions(10, 5, 1, handover_us=handover_us)


def plan(topology: str = "ps", algorithm: str = "none", **changes) -> Case:
    return Case(**{"model": "lstm", "nnodes": 2, "rate": 200, **changes, "topology": topology, "algorithm": algorithm})


class Evaluation(unittest.TestCase):
    def test_quantiles_lie_between_sorted_values(self):
        # Among the sorted values 1 … 11, the 10th percentile is at index 1 and the median at 5. Between two values, quantiles are
        # linear.
        values = [11, 1, 10, 2, 9, 3, 8, 4, 7, 5, 6]
        self.assertEqual([evaluation.quantile(values, share) for share in (0.1, 0.5, 0.9)], [2, 6, 10])
        self.assertEqual(evaluation.quantile([3, 1], 0.25), 1.5)
        self.assertEqual(evaluation.quantile([7], 0.9), 7)

    def test_errors_of_iteration_and_exposed_communication(self):
        one = result(plan(), 0.55, (0.5, 0.4, 0.6))  # the median is 0.5; exposed are 0.45 predicted and 0.4 measured
        self.assertAlmostEqual(one.error, 0.1)
        self.assertAlmostEqual(one.exposed_error, 0.125)
        self.assertTrue(one.within_spread)
        self.assertEqual(one.error_beyond_spread, 0)
        outside = result(plan(), 0.61, (0.5, 0.4, 0.6))
        self.assertFalse(outside.within_spread)
        self.assertAlmostEqual(outside.error_beyond_spread, 0.01 / 0.5)
        self.assertAlmostEqual(result(plan(), 0.3, (0.5, 0.4, 0.6)).error_beyond_spread, -0.1 / 0.5)
        self.assertIsNone(result(plan(), 0.55, (0.1,)).exposed_error)  # nothing was exposed

    def test_ranking_counts_pairs_of_one_job_that_differ(self):
        found = [result(plan("ps", "none"), 1.0, (1.0,)), result(plan("ps", "fp16"), 0.5, (0.6,)),
                 result(plan("ring", "none"), 0.9, (1.02,)),  # 2 % from ps, none: the pair does not count
                 result(plan("ring", "fp16"), 0.6, (0.55,)),  # measured faster than ps, fp16, but predicted slower
                 result(plan("ps", "none", rate=500), 0.1, (0.1,))]  # another job
        summary = evaluation.summarise(found)
        # Four plans make 6 pairs, of which one hardly differs. The pair ps/fp16 and ring/fp16 is ranked wrong.
        self.assertEqual((summary.pairs, summary.ranked), (5, 4))
        self.assertEqual(len(evaluation.pairs(found)), 6)
        self.assertAlmostEqual(summary.ranking_accuracy, 0.8)
        self.assertIsNone(evaluation.summarise(found[:1]).ranking_accuracy)


class Intervals(unittest.TestCase):
    def test_coverage_and_widths(self):
        found = [dataclasses.replace(result(plan(), 1.0, (measured_s,), 0), predicted_s_p10=0.9, predicted_s_p90=1.1)
                 for measured_s in (1.0, 1.05, 1 / 1.08, 1.3)]
        told = evaluation.intervals(found)
        self.assertEqual((told.cases, told.within, told.coverage), (4, 3, 0.75))
        self.assertAlmostEqual(told.mean_width, 0.2)
        # Three of four errors are within a factor of 1.08.
        self.assertAlmostEqual(told.constant_width, 1.08 - 1 / 1.08)
        self.assertEqual(evaluation.intervals(found[3:]).constant_width, 0)
        self.assertIsNone(evaluation.intervals([result(plan(), 1.0, (1.0,))]))


class Matrix(unittest.TestCase):
    def test_the_whole_and_the_quick_matrix(self):
        self.assertEqual(len(set(cases.matrix())), 4 * 2 * 5 * 3 * 3)
        quick = cases.quick()
        self.assertEqual(len(set(quick)), 12)
        self.assertTrue(set(quick) <= set(cases.matrix()))
        self.assertGreater(len(evaluation.pairs([result(case, 1, (1,)) for case in quick])), 0)

    def test_conditions(self):
        chosen = cases.only(cases.matrix(), "model=lstm,rate=200|500,nnodes=3")
        self.assertEqual(len(chosen), 2 * 10)
        self.assertEqual(cases.only(cases.matrix(), ""), cases.matrix())
        for wrong, said in (("rat=200", "model, topology"), ("rate=300", "1000, 200, 500"), ("rate", "no case")):
            with self.assertRaises(cases.ConditionError) as raised:
                cases.only(cases.matrix(), wrong)
            self.assertIn(said, str(raised.exception))

    def test_models_are_scaled_as_stated(self):
        text = ("name: m\nsource: >-\n  forward: no\nbatch: 1\nforward: 40ms\ngradients:  # comment\n"
                "- {name: a, elements: 30000000, ready: 0us}\n- {name: b, elements: 2, ready: 1000us}\n")
        scale = cases.scale_of(text, 200)
        self.assertAlmostEqual(scale.size, cases.SCALED_BYTES / (4 * 30000002))
        self.assertAlmostEqual(scale.time, scale.size * cases.EMULATED_RATE / 200)
        # 120 MB are scaled to 100. Loopback counts as a hundred times as fast as links of EMULATED_RATE.
        loopback = cases.scale_of(text, cases.LOOPBACK)
        self.assertAlmostEqual(loopback.size, 1e8 / (4 * 30000002))
        self.assertAlmostEqual(loopback.time, loopback.size / 100)
        scaled = cases.scaled_model(text, cases.Scale(0.1, 0.5))
        self.assertEqual(scaled, "name: m\nforward: 20.000000ms\ngradients:  # comment\n"
                                 "- {name: a, elements: 3000000, ready: 0.000us}\n"
                                 "- {name: b, elements: 1, ready: 500.000us}\n")

    def test_shapes_are_scaled_by_their_first_dimension(self):
        text = ("name: m\nforward: 1ms\ngradients:\n- {name: a, elements: 600, ready: 0us, shape: [30, 4, 5]}\n"
                "- {name: b, elements: 12, ready: 0us, shape: [2, 6]}\n")
        scaled = cases.scaled_model(text, cases.Scale(0.1, 1))
        self.assertIn("{name: a, elements: 60, ready: 0.000us, shape: [3, 4, 5]}\n", scaled)
        self.assertIn("{name: b, elements: 6, ready: 0.000us, shape: [1, 6]}\n", scaled)


class Files(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = pathlib.Path(folder.name)

    def test_results_survive_the_csv(self):
        path = self.folder / "cases.csv"
        written = [Result(plan(), 0.5, 0.25, 0.123456789, 0.1, (0.1, 1 / 3), 2, 4, True, 0.1, 1 / 7),
                   Result(plan("ring", "dgc", rate=cases.LOOPBACK), 0.5, 0.25, 0.2, 0.3, (0.25,), verified=False)]
        results.write_csv(path, written)
        self.assertEqual(results.read_csv(path), written)
        self.assertEqual(os.listdir(self.folder), ["cases.csv"])
        self.assertEqual(results.read_csv(self.folder / "none.csv"), [])

    def test_unusable_results_are_refused(self):
        path = self.folder / "cases.csv"
        path.write_text("model,rate\nlstm,200\n")
        with self.assertRaisesRegex(results.ResultsError, "columns are not those"):
            results.read_csv(path)
        path.write_text(",".join(results.COLUMNS) + "\nlstm,ps,none,two" + "," * (len(results.COLUMNS) - 4) + "\n")
        with self.assertRaisesRegex(results.ResultsError, "line 2"):
            results.read_csv(path)

    def test_json_has_the_keys_that_others_rely_on(self):
        path = self.folder / "out.json"
        results.write_json(path, [result(plan(), 0.55, (0.5,)), result(plan("ring"), 0.5, (0.6,))])
        report = json.loads(path.read_text())
        self.assertLessEqual({"median_abs_error", "p90_abs_error", "ranking_accuracy", "cases"}, report.keys())
        self.assertLessEqual({"model", "topology", "algorithm", "nnodes", "rate", "predicted_s", "predicted_s_p10",
                              "predicted_s_p90", "measured_s", "error"}, report["cases"][0].keys())
        self.assertEqual(len(report["misranked"]), 1)

    def bench(self) -> measurement.Bench:
        """Bench whose replays take 0, 1, 2, ... s."""
        reports = iter([report_of([float(i)], 1.0) for i in range(9)])
        launcher = mock.Mock(run_json=mock.Mock(side_effect=lambda *_: next(reports)))
        return measurement.Bench(launcher, ROOT, self.folder, measurement.Plan(1, 1, 2), print)

    def test_a_disturbed_case_is_measured_again_a_few_times(self):
        bench = self.bench()
        for disturbances, kept, disturbed, repeated in (((True, False), 1.0, 0, 1), ((True, True, True), 4.0, 1, 2)):
            bench.recent = {bench.kernels_of(plan()): [measurement.Profile(self.folder / "profile", at(2))]}
            repetitions = measurement.Repetitions()
            with mock.patch.object(measurement, "disturbed_between", side_effect=disturbances), \
                    mock.patch.object(Conditions, "read", return_value=at(2)):
                bench.run_once(plan(), self.folder / "model", repetitions)
            result = repetitions.result(plan(), cases.Scale(1, 1))
            self.assertEqual((result.repetitions_s, result.disturbed, result.repeated), ((kept,), disturbed, repeated))

    def test_a_prediction_is_the_median_of_the_rounds(self):
        # Each round has its own profile, and therefore its own prediction.
        repetitions = measurement.Repetitions()
        for predicted_s in (1.0, 3.0, 1.5):
            repetitions.add(report_of([2.0], predicted_s), disturbed=False)
        found = repetitions.result(plan(), cases.Scale(1, 1))
        self.assertEqual((found.predicted_s, found.predicted_s_p10, found.predicted_s_p90), (1.5, 0.75, 3.0))
        self.assertTrue(found.within_interval)

    def test_rounds_that_nobody_disturbed_count_alone(self):
        def result(*rounds):
            repetitions = measurement.Repetitions()
            for seconds, predicted_s, disturbed in rounds:
                repetitions.add(report_of(seconds, predicted_s), disturbed)
            measured = repetitions.result(plan(), cases.Scale(1, 1))
            return measured.repetitions_s, measured.predicted_s, measured.disturbed, measured.repeated

        self.assertEqual(result(([9.0, 8.0], 7.0, True), ([2.0], 3.0, False)), ((2.0,), 3.0, 0, 2))
        self.assertEqual(result(([9.0], 7.0, True), ([2.0], 3.0, True)), ((9.0, 2.0), 5.0, 2, 0))

    def test_what_takes_long_is_repeated_less(self):
        wanted = measurement.Plan(rounds=3, iterations=4)
        repetitions = measurement.Repetitions()
        self.assertEqual(wanted.next_iterations(plan(), repetitions), 1)  # the assumed 2.5 s
        self.assertEqual(wanted.next_iterations(plan(algorithm="onebit"), repetitions), 4)
        for iteration_s, rounds, expected in ((0.1, 1, 4), (0.1, 2, 4), (0.4, 1, 2), (2.0, 1, 1), (2.0, 2, 0)):
            repetitions.rounds = [measurement.Round((iteration_s,), 1.0, (0.9, 1.1), False)] * rounds
            self.assertEqual(wanted.next_iterations(plan(), repetitions), expected, (iteration_s, rounds))

    def test_turns_are_as_before_also_after_a_kill(self):
        turn = self.folder / "turn"
        turn.write_text("100\n")
        code = ("import os, pathlib, signal, sys; from validation import ranks; ranks.TURN = pathlib.Path(sys.argv[1])\n"
                "with ranks.short_turns(): print(ranks.TURN.read_text(), end='', flush=True); "
                "os.kill(os.getpid(), signal.SIGKILL)")
        killed = subprocess.run([sys.executable, "-c", code, str(turn)], cwd=ROOT / "scripts", capture_output=True, text=True,
                                check=False)
        self.assertEqual((killed.returncode, killed.stdout), (-signal.SIGKILL, f"{ranks.TURN_MS}\n"), killed.stderr)
        for _ in range(3000):
            if turn.read_text() == "100\n":
                break
            time.sleep(0.01)
        self.assertEqual(turn.read_text(), "100\n")


class Plans(unittest.TestCase):
    """Verdicts of the experiment plans."""

    def job(self, **repetitions_s: tuple) -> plans.Job:
        return plans.Job([result(plan(algorithm=name), 1.0, times) for name, times in repetitions_s.items()])

    def test_the_planned_one_is_fastest_within_the_spread_or_slower(self):
        self.assertEqual(self.job(none=(2.0,), timeline=(1.0,)).verdict, "fastest")
        # The spread of timeline, 1.05 to 1.15, overlaps that of all, 1.0 to 1.1, whose median is lower.
        close = self.job(all=(1.0, 1.05, 1.1), timeline=(1.05, 1.1, 1.15))
        self.assertEqual((close.verdict, close.fastest.case.algorithm), ("within the spread", "all"))
        self.assertAlmostEqual(close.loss, 1.1 / 1.05 - 1)
        self.assertEqual(self.job(all=(1.0, 1.01), timeline=(1.1, 1.2)).verdict, "slower")

    def test_cells_are_models_topologies_and_rates(self):
        self.assertEqual(len(plans.all_cases()), 4 * 2 * 2 * 6)


class Machine(unittest.TestCase):
    """Tests on a machine on which ip and tc only log their calls."""

    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = pathlib.Path(folder.name)
        self.bin = self.folder / "bin"
        self.bin.mkdir()
        for name, text in (("ip", FAKE_IP), ("tc", FAKE_IP), ("hipress-profile", FAKE_PROFILE),
                           ("hipress-exec", FAKE_EXEC), ("hipress-plan", FAKE_PLAN)):
            self.provide(name, text)

    def provide(self, name: str, text: str) -> None:
        path = self.bin / name
        path.write_text(text.format(python=sys.executable, folder=self.bin))
        path.chmod(path.stat().st_mode | stat.S_IXUSR)

    def environment(self, **more) -> dict:
        return {**os.environ, "PATH": f"{self.bin}:{os.environ['PATH']}", **more}

    def namespaces(self) -> list:
        path = self.bin / "names"
        return path.read_text().split() if path.exists() else []

    def log(self) -> list:
        path = self.bin / "log"
        return path.read_text().splitlines() if path.exists() else []

    def command(self, *arguments: str, experiment: str = "networks") -> list:
        return [sys.executable, "-B", str(ROOT / "scripts/validate.py"), experiment, "--tools", str(self.bin), *arguments]

    def validate(self, *arguments: str, **environment) -> subprocess.CompletedProcess:
        return self.run_command(self.networks(*arguments), **environment)

    def networks(self, *arguments: str) -> list:
        return self.command("--output", str(self.folder / "out"), "--scheduling", "normal", *arguments)

    def run_command(self, command: list, **environment) -> subprocess.CompletedProcess:
        return subprocess.run(command, env=self.environment(**environment), text=True, capture_output=True, check=False)

    def test_cases_are_predicted_measured_and_written(self):
        done = self.validate("--only", "model=lstm,nnodes=2,rate=200", "--again", "0", "--rounds", "2", "--json",
                             str(self.folder / "out.json"))
        self.assertEqual(done.returncode, 0, done.stderr)
        report = json.loads((self.folder / "out.json").read_text())
        self.assertEqual(len(report["cases"]), 10)
        # For plan none, 1.1 s are predicted. Two rounds measure 1.0 and 1.02 s each, with the median 1.01.
        self.assertAlmostEqual(report["cases"][0]["error"], 1.1 / 1.01 - 1)
        first = report["cases"][0]
        self.assertEqual(len(first["repetitions_s"]) + first["repeated"], 4)  # disturbed rounds do not count
        # 10 plans make 45 pairs. Plans of equal speed do not differ: 2 none (1 pair), 2 fp16 (1), 6 others (15).
        self.assertEqual((report["pairs"], report["ranking_accuracy"]), (45 - 1 - 1 - 15, 1.0))
        self.assertIn("tasks by kind", done.stdout)
        for name in ("cases.csv", "pairs.csv", "trace.json", "profile_unlimited_200_2.yaml", "profile_200_2.yaml"):
            self.assertTrue((self.folder / "out" / name).exists(), name)
        self.assertEqual((self.folder / "out/scatter.png").exists(), importlib.util.find_spec("matplotlib") is not None)
        self.assertEqual(self.namespaces(), [])

    def test_plans_are_searched_replayed_and_compared(self):
        done = self.run_command(self.command("--output", str(self.folder / "out"), "--only", "model=lstm,rate=200", "--rounds", "2",
                                             "--json", str(self.folder / "out.json"), experiment="plans"))
        self.assertEqual(done.returncode, 0, done.stderr)
        searched = (self.bin / "planned").read_text().splitlines()
        self.assertEqual(len(searched), 2 * 3)  # secopa, greedy and timeline for both topologies
        self.assertEqual(sum("--search timeline" in line and "--budget" in line for line in searched), 2)
        jobs = json.loads((self.folder / "out.json").read_text())
        self.assertEqual([(job["topology"], job["verdict"], job["fastest"]) for job in jobs],
                         [("ps", "fastest", "timeline"), ("ring", "fastest", "timeline")])
        # A disturbed round does not count if there is an undisturbed one.
        self.assertIn(jobs[0]["plans"]["timeline"]["repetitions_s"], ([0.28, 0.3], [0.28, 0.3, 0.28, 0.3]))
        self.assertIn("in 2 of 2 jobs", done.stdout)
        self.assertEqual(self.namespaces(), [])

    def test_both_ends_of_every_cable_are_shaped_and_cables_go_first(self):
        with mock.patch.dict(os.environ, self.environment()), network.Network(2) as two:
            two.shape(500)
            names = self.namespaces()
        shaped = [line for line in self.log() if "tbf rate 500mbit burst 96kb latency 20ms" in line]
        self.assertEqual(len(shaped), 4)
        self.assertEqual(names, [two.switch, *two.names])
        log = self.log()
        last_cable = max(i for i, line in enumerate(log) if line.endswith("link del eth0"))
        first_removed = min(i for i, line in enumerate(log) if " netns del " in line)
        self.assertLess(last_cable, first_removed)

    def test_resume_keeps_cases_and_profiles(self):
        self.assertEqual(self.validate("--only", "model=lstm,nnodes=2,rate=200,algorithm=none", "--again", "0").returncode, 0)
        before = sum("hipress" in line and "netns exec" in line for line in self.log())
        done = self.validate("--only", "model=lstm,nnodes=2,rate=200,algorithm=none|fp16", "--resume", "--again", "0")
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertIn("2 cases to run, 2 kept", done.stderr)
        self.assertNotIn("profiled", done.stderr)
        self.assertEqual(len(results.read_csv(self.folder / "out/cases.csv")), 4)
        self.assertGreater(before, 0)

    def test_skips_where_namespaces_are_not_allowed(self):
        (self.bin / "forbidden").touch()
        done = self.validate("--quick")
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertRegex(done.stdout, "skipped: network namespaces are not allowed here: .*not permitted")

    def test_skips_without_ip(self):
        (self.bin / "ip").unlink()
        alone = self.folder / "alone"
        alone.mkdir()
        done = self.run_command(self.networks("--quick"), PATH=str(alone))
        self.assertEqual((done.returncode, "skipped: there is no program 'ip'" in done.stdout), (0, True), done.stderr)

    def test_loopback_needs_no_network(self):
        done = self.validate("--loopback", "--only", "model=lstm,nnodes=3", "--again", "0", "--rounds", "1")
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertEqual(self.log(), [])

    def test_a_link_is_measured_by_a_benchmark(self):
        self.provide("bench_replay", "#!{python}\nimport sys\nprint(*sys.argv[1:])\n")
        done = self.run_command(self.command("--rate", "500", "--ranks", "2", "--rounds", "1", experiment="link"))
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertIn("--network 500mbit --megabytes 100 --rounds 1 --rendezvous", done.stdout)
        self.assertEqual(sum("tbf rate 500mbit" in line for line in self.log()), 4)

    def test_every_experiment_says_what_it_is_and_has_the_options_that_it_shares(self):
        for name in EXPERIMENTS:
            module = importlib.import_module(f"validation.experiments.{name}")
            self.assertIn("--tools", command.parser_of(name, module.__doc__, module.EXPERIMENT).format_help())
        self.assertIn("(choose from 'networks', ", self.run_command(self.command(experiment="network")).stderr)

    def test_wrong_conditions_are_refused(self):
        done = self.validate("--only", "rate=300")
        self.assertEqual(done.returncode, 2)
        self.assertIn("200", done.stderr)

    def test_a_failing_tool_is_named_and_the_network_removed(self):
        self.provide("hipress-exec", "#!{python}\nimport sys\nsys.exit('no such plan')\n")
        done = self.validate("--only", "model=lstm,nnodes=2,rate=200")
        self.assertEqual(done.returncode, 1)
        self.assertIn("no such plan", done.stderr)
        self.assertEqual(self.namespaces(), [])

    def test_an_interrupted_run_leaves_nothing(self):
        for number in (signal.SIGINT, signal.SIGTERM):
            process = subprocess.Popen(self.networks("--only", "model=lstm,nnodes=2,rate=200"),
                                       env=self.environment(FAKE_SLEEP_S="60"), stdout=subprocess.DEVNULL,
                                       stderr=subprocess.DEVNULL)
            deadline = time.monotonic() + 60
            while not any("hipress-exec" in line for line in self.log()) and time.monotonic() < deadline:
                time.sleep(0.05)
            self.assertTrue(self.namespaces())
            process.send_signal(number)
            self.assertEqual(process.wait(60), 128 + number)
            self.assertEqual(self.namespaces(), [])
            (self.bin / "log").unlink()

    def test_leftovers_of_a_killed_run_are_removed_and_those_of_a_living_one_kept(self):
        (self.bin / "names").write_text("hipress-11-switch\nhipress-11-0\nhipress-12-0\nhipress-13-0\nhipress-14-0\nother\nhipress-x-0\n")
        proc = self.folder / "proc"
        for pid, command in ((12, b"python3\0scripts/validate.py\0"), (13, b"editor\0"),
                             (14, b"python3\0scripts/demo.py\0")):  # process 13 is a different program now
            (proc / str(pid)).mkdir(parents=True)
            (proc / str(pid) / "cmdline").write_bytes(command)
        with mock.patch.dict(os.environ, self.environment()):
            removed = network.remove_leftovers(proc)
        self.assertEqual(removed, ["hipress-11-switch", "hipress-11-0", "hipress-13-0"])
        self.assertEqual(self.namespaces(), ["hipress-12-0", "hipress-14-0", "other", "hipress-x-0"])


if __name__ == "__main__":
    unittest.main()
