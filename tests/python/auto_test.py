"""Tests of attach(model) without a plan, through all phases of a job that plans itself. Candidates and verdicts are given, so they
do not depend on times. control_test.py tests the decisions."""

import contextlib
import copy
import hashlib
import logging
import os
import pathlib
import signal
import subprocess
import sys
import tempfile
import threading
import time
import unittest
from unittest import mock

import ranks
from job_test import Halves
from ranks import data, network, run, train, weights, wrapped

if ranks.MISSING is None:
    import hipress
    import torch
    from hipress import _auto, _control, _ddp, _job, _links, _planning
    from hipress._control import Candidate, Links, Pace, Verdict


def setUpModule() -> None:
    ranks.require_torch()


STEPS = 60


def plan_of(module, algorithm, nodes=2):
    """Returns the text of a plan with one algorithm for all gradients."""
    rows = "\n".join(f"- {{name: {name}, elements: {value.numel()}, algorithm: {algorithm}, K: {nodes}}}"
                     for name, value in module.named_parameters())
    return f"schema: hipress.plan/1\nmodel: small\ntopology: ring\nnodes: {nodes}\ngradients:\n{rows}\n"


def decided(algorithms, module=None, nodes=2, keeps=True, changes=False):
    """Context of given() whose candidates are a plan for each algorithm."""
    return given([Candidate(plan_of(module or network(), one, nodes), one, 0.1, 0.2) for one in algorithms], keeps, changes)


@contextlib.contextmanager
def given(candidates, keeps=True, changes=False):
    """Context in which rank 0 has these candidates. After two pairs of blocks, a way is judged faster if `keeps`, else not. If
    `changes`, the step time changes in the second watched window."""
    windows = []

    def has_changed(_watch, _step_s, _busy_s):
        windows.append(0)
        return changes and len(windows) == 4  # two pairs of blocks, then two windows

    def give(planning, *_):
        planning.candidates, planning.seconds = candidates, 0.5

    def is_ready(_planning):
        return True

    def judged(ratios, most=8):
        return Verdict.OPEN if len(ratios) < 2 else Verdict.FASTER if keeps else Verdict.NOT_FASTER

    with contextlib.ExitStack() as patches:
        for owner, name, value in ((_planning.Planning, "start", give), (_planning.Planning, "is_ready", property(is_ready)),
                                   (_control, "judge", judged), (_control, "_LOOK_S", 0), (_control, "_BLOCK_S", 0),
                                   (_control, "_WINDOW_S", 0), (_control.Watch, "has_changed", has_changed),
                                   (_links.LinkEngine, "feel", lambda *_: 0.0),  # unknown, so it is not measured again
                                   (_control, "reasons_for", lambda *_: ["links are slower"])):
            patches.enter_context(mock.patch.object(owner, name, value))
        yield


def attached(ddp, **options):
    return _ddp.attach_ddp(ddp, plan="auto", profile="v100-100g", pace=Pace(warmup=2, measured=4, between_plans=20), **options)


def bits(ddp):
    """Returns a digest of all weights."""
    return hashlib.sha256(b"".join(value.numpy().tobytes() for value in weights(ddp.module).values())).hexdigest()


def trained(rank, algorithms, keeps, options=None, steps=STEPS, accumulate=False, changes=False):
    """Trains some steps; `algorithms` None: under plain DDP. Returns a digest of the weights, and the report."""
    ddp = wrapped(network(), **(options or {}))
    with decided(algorithms or [], keeps=keeps, changes=changes):
        hook = attached(ddp) if algorithms is not None else None
        train(ddp, torch.optim.SGD(ddp.parameters(), lr=0.1, momentum=0.9), rank, range(steps), accumulate)
    report = hook.report() if hook is not None else ""
    if hook is not None:
        hook.close()
    return bits(ddp), report


def joined(rank, algorithms, options):
    """Trains a Halves in join(), with three more steps on rank 1. Returns a digest of the weights, and the report's end."""
    ddp = wrapped(Halves(), **options)
    with decided(algorithms or [], Halves()):
        hook = attached(ddp) if algorithms is not None else None
        optimizer = torch.optim.SGD(ddp.parameters(), lr=0.1)
        with ddp.join():
            for step in range(40 + 3 * rank):
                values, classes = data(rank, step)
                optimizer.zero_grad()
                both = step % 2 == 0 or "static_graph" in options
                torch.nn.functional.cross_entropy(ddp(values, both), classes).backward()
                optimizer.step()
    kept = hook.report().splitlines()[-1] if hook is not None else ""
    return bits(ddp), kept


class Trained(unittest.TestCase):
    def setUp(self):
        self.plain = [found for found, _ in run(2, trained, None, True)]

    def test_without_a_plan_every_step_has_the_bits_of_ddp(self):
        for (found, report), plain in zip(run(2, trained, [], True), self.plain):
            self.assertEqual(found, plain)
            self.assertIn("measured 4 steps of plain DDP", report)
            self.assertIn("plain DDP stays the fastest predicted", report)

    def test_changes_of_way_change_no_bit_of_raw_means(self):
        # With two ranks, raw means of the engine have DDP's bits, so all ways give the same bits.
        for keeps in (True, False):
            for (found, report), plain in zip(run(2, trained, ["none", "none"], keeps), self.plain):
                self.assertEqual(found, plain)
                self.assertIn("switched at step", report)
                self.assertRegex(report, r"measured [\d.]+ times, predicted 2.00, in 2 pairs of blocks")
                self.assertIn("watching; none" if keeps else "watching; plain DDP", report)

    def test_a_job_plans_anew_after_a_change(self):
        for (found, report), plain in zip(run(2, trained, ["none"], True, None, STEPS, False, True), self.plain):
            self.assertEqual(found, plain)
            self.assertRegex(report, r"a step takes .* ms instead of .* ms: links are slower")
            self.assertEqual(report.count("planned in"), 2)

    def test_a_kept_plan_compresses_on_all_ranks_alike(self):
        (first, report), (second, other) = run(2, trained, ["int8block"], True)
        self.assertEqual(first, second)
        self.assertNotEqual(first, self.plain[0])
        self.assertIn("watching; int8block", report)
        # All ranks decide the same in the same steps.
        self.assertEqual(report, other)

    def test_micro_steps_are_as_in_ddp(self):
        expected = [found for found, _ in run(2, trained, None, True, None, STEPS, True)]
        self.assertEqual([found for found, _ in run(2, trained, ["none"], True, None, STEPS, True)], expected)

    def test_gradients_as_views_are_as_in_ddp(self):
        self.assertEqual([found for found, _ in run(2, trained, ["none"], True, {"gradient_as_bucket_view": True})], self.plain)


class Inputs(unittest.TestCase):
    def test_uneven_inputs_and_unused_parameters_are_as_in_ddp(self):
        for options in ({"find_unused_parameters": True}, {"static_graph": True}):
            with self.subTest(options=options):
                expected = [found for found, _ in run(2, joined, None, options)]
                for (found, kept), plain in zip(run(2, joined, ["none"], options), expected):
                    self.assertEqual(found, plain)
                    self.assertIn("watching; none", kept)


#: Step before which a rank is killed, by phase. Steps 2 to 5 are measured. In step 7 the reports arrive, and the job plans.
PHASES = {"measuring": 3, "planning": 8, "trying": 16, "watching": 50}
#: Rank that is killed in a method of AutoHook, by method: while it opens a plan's way, or after it has passed plans on.
METHODS = {"_hook_of": 1, "_fetch": 0}


def raised(ddp, optimizer, rank, steps):
    """Returns the error of some steps as text; empty without one."""
    try:
        train(ddp, optimizer, rank, steps)
    except RuntimeError as error:
        return f"{type(error).__name__}: {error}"
    return ""


def kill(*_):
    os.kill(os.getpid(), signal.SIGKILL)


def killed(rank, phase):
    """Kills a rank in a phase or a method. Returns another rank's errors in this step and the next, their seconds, the rank that is
    named as lost, and the report's last line before."""
    ddp = wrapped(network())
    with decided(["int8block"], nodes=3), contextlib.ExitStack() as patches:
        if phase == "planning":
            patches.enter_context(mock.patch.object(_planning.Planning, "is_ready", False))
        hook = attached(ddp)
        optimizer = torch.optim.SGD(ddp.parameters(), lr=0.1)
        train(ddp, optimizer, rank, range(PHASES.get(phase, 3)))
        now = hook.report().splitlines()[-1]
        torch.distributed.barrier()  # an earlier death may cost others a mean of the last step
        if rank == METHODS.get(phase, 1):
            patches.enter_context(mock.patch.object(_auto.AutoHook, phase if phase in METHODS else "_begin_step", kill))
        began = time.monotonic()
        said = [raised(ddp, optimizer, rank, range(40)), raised(ddp, optimizer, rank, range(1))]
        return said, time.monotonic() - began, getattr(hook.failure, "rank", None), now


class Failures(unittest.TestCase):
    def test_a_killed_rank_is_named_in_every_phase(self):
        for phase in (*PHASES, *METHODS):
            with self.subTest(phase):
                lost = METHODS.get(phase, 1)
                outcomes = ranks.Job(3, killed, phase).outcomes()
                self.assertEqual(outcomes.pop(lost), (False, None))
                for succeeded, result in outcomes:
                    self.assertTrue(succeeded, result)
                    said, seconds, culprit, now = result
                    self.assertIn(phase if phase in PHASES else "measuring", now)
                    self.assertEqual(culprit, lost, said)
                    self.assertIn(f"RankLost: rank {lost}", said[0])
                    self.assertIn(f"rank {lost}", said[1])
                    self.assertLess(seconds, 30)


def profiled(rank, folder, program):
    """Trains while rank 0 profiles by this program, and, if the program ends, also after its end. Returns the reports after the
    first steps and at the end, the profile's text, and rank 0's children after close()."""
    with mock.patch.dict(os.environ, HIPRESS_CACHE=folder), mock.patch.object(_planning, "_MEASURE", program), decided([]):
        ddp = wrapped(network())
        hook = _ddp.attach_ddp(ddp, plan="auto", pace=Pace(warmup=2, measured=4))
        optimizer = torch.optim.SGD(ddp.parameters(), lr=0.1)
        with mock.patch.object(threading.Thread, "is_alive", lambda _: True):
            train(ddp, optimizer, rank, range(8))
        reports = [hook.report()]
        if rank == 0 and "sleep" not in program:
            hook._profiling.join()
        torch.distributed.barrier()
        train(ddp, optimizer, rank, range(20))
        reports.append(hook.report())
        hook.close()
        found = list(pathlib.Path(folder).glob("*.yaml"))
        return reports, [one.read_text() for one in found], children()


def children():
    return [int(one) for one in pathlib.Path(f"/proc/self/task/{os.getpid()}/children").read_text().split()]


#: Programs in place of the profiler: one writes a file, one fails, and one takes long.
WRITES = "import json, sys; open(json.loads(sys.argv[1])['output'], 'w').write('measured')"
FAILS = "import sys; sys.exit('there are no cores')"
SLEEPS = "import time; from hipress import _planning; _planning.step_back(); print('ready', flush=True); time.sleep(600)"


class Profiles(unittest.TestCase):
    def test_a_machine_is_profiled_while_training_goes_on(self):
        with tempfile.TemporaryDirectory() as folder:
            for (before, after), texts, left in run(2, profiled, folder, WRITES):
                self.assertIn("step 8: profiling; plain DDP", before)
                self.assertIn("profiled this machine's kernels in", after)
                self.assertIn("measured 4 steps of plain DDP", after)
                self.assertEqual((texts, left), (["measured"], []))
            self.assertEqual(len(os.listdir(folder)), 1)

    def test_the_reason_why_it_is_not_is_told(self):
        with tempfile.TemporaryDirectory() as folder:
            for (_, after), texts, left in run(2, profiled, folder, FAILS):
                self.assertIn("plain DDP averages: this machine's kernels cannot be measured: there are no cores; give", after)
                self.assertIn("without plans; plain DDP", after)
                self.assertEqual((texts, left), ([], []))

    def test_it_ends_with_the_job(self):
        with tempfile.TemporaryDirectory() as folder:
            for (_, after), texts, left in run(2, profiled, folder, SLEEPS):
                self.assertIn("profiling; plain DDP", after)
                self.assertEqual((texts, left), ([], []))
        # The child of a killed parent ends, too, and so does its output.
        parent = f"import subprocess, sys, os, signal; subprocess.Popen([sys.executable, '-c', {SLEEPS!r}]); signal.pause()"
        with subprocess.Popen([sys.executable, "-c", parent], stdout=subprocess.PIPE) as process:
            self.assertEqual(process.stdout.readline(), b"ready\n")
            process.kill()
            self.assertEqual(process.stdout.read(), b"")


def crossed(rank, shapes):
    """Attaches two models in different orders. Returns the errors."""
    models = [wrapped(torch.nn.Linear(*shape)) for shape in shapes]
    said = []
    for ddp in models if rank == 0 else reversed(models):
        try:
            hipress.attach(ddp, profile="v100-100g")
        except hipress.InvalidRequest as error:
            said.append(str(error))
    return said


class Several(unittest.TestCase):
    def test_another_order_of_models_is_refused(self):
        for said in run(2, crossed, [(8, 4), (4, 8)]):
            self.assertRegex(said[0], r"rank 1 calls hipress.attach with another model \(Linear of 40 elements, \w{8}\) than rank "
                                      r"0 \(Linear of 36 elements, \w{8}\): attach models in the same order on all ranks")
        for said in run(2, crossed, [(8, 4), (8, 4)]):
            self.assertIn("rank 1 calls hipress.attach for a model of the same shape as rank 0's, with other values: attach models "
                          "in the same order on all ranks", said[0])


def in_two_parts(rank, folder, resume, size=2):
    """Trains 40 steps, the last with a plan of onebit, saves, and trains ten more; with `resume`, trains only these ten."""
    ddp = wrapped(network())
    optimizer = torch.optim.SGD(ddp.parameters(), lr=0.1)
    path = os.path.join(folder, f"{rank % 2}.pt")
    with decided([] if resume else ["onebit"], nodes=size):
        hook = attached(ddp)
        if resume:
            saved = torch.load(path)
            ddp.module.load_state_dict(saved["model"])
            hook.load_state_dict(saved["hipress"])
        else:
            train(ddp, optimizer, rank, range(40))
            torch.save({"model": ddp.module.state_dict(), "hipress": hook.state_dict()}, path)
        train(ddp, optimizer, rank, range(40, 50))
    return bits(ddp), hook.report()


class Constant(torch.nn.Module if ranks.MISSING is None else object):
    """A model whose gradient is the same in every step, and different on every rank."""

    def __init__(self, rank):
        super().__init__()
        self.weight, self.bias = torch.nn.Parameter(torch.zeros(40, 32)), torch.nn.Parameter(torch.zeros(7))
        generator = torch.Generator().manual_seed(7 + rank)
        self.gradients = [torch.randn(one.shape, generator=generator) for one in (self.weight, self.bias)]

    def forward(self, times):
        return times * sum((one * value).sum() for one, value in zip((self.weight, self.bias), self.gradients))


def applied(rank, folder, steps, skipped=(), keeps=False, load=None, nodes=2):
    """Trains, and compares the sum of the applied gradients with that of the exact means. Returns the differences, the largest
    relative one, and the report. In `skipped` steps rank 1 has an infinite gradient. `load`: states that each rank loads first."""
    module = Constant(rank)
    ddp = wrapped(module, broadcast_buffers=False)
    with decided([] if load else ["onebit"], module, nodes, keeps):
        hook = attached(ddp)
        if load is not None:
            hook.load_state_dict([torch.load(os.path.join(folder, f"{one}.pt")) for one in load[rank]])
        count = 0
        for step in range(steps):
            ddp.zero_grad(set_to_none=True)
            ddp(float("inf") if step in skipped and rank == 1 else 1.0).backward()
            if all(bool(torch.isfinite(one.grad).all()) for one in module.parameters()):
                count += 1
                with torch.no_grad():
                    for one in module.parameters():
                        one -= one.grad
    if folder and load is None:
        torch.save(hook.state_dict(), os.path.join(folder, f"{rank}.pt"))
    everyone = [Constant(other).gradients for other in range(nodes)]
    means = [count * sum(values) / nodes for values in zip(*everyone)]
    distances = [-value.detach() - mean for value, mean in zip(module.parameters(), means)]
    return distances, max(float(one.abs().max() / mean.abs().max()) for one, mean in zip(distances, means)), hook.report()


class Residuals(unittest.TestCase):
    def test_what_is_applied_sums_to_the_mean_across_changes(self):
        # The trial of onebit ends at step 25, and leaves residuals whose elements are some tenths.
        for skipped in ((), range(18, 32)):
            for _, distance, report in run(2, applied, "", 45, skipped):
                self.assertIn("dropped onebit", report)
                self.assertLess(distance, 1e-5)
        for _, distance, report in run(2, applied, "", 45, (), True):
            self.assertIn("watching; onebit", report)
            self.assertGreater(distance, 1e-3)  # the kept plan holds residuals back

    def test_another_number_of_ranks_applies_what_was_held_back(self):
        with tempfile.TemporaryDirectory() as folder:
            before = run(2, applied, folder, 45, (), True)[0][0]
            # The first step of three ranks applies the residuals: exactly what two ranks had not applied before.
            for load, words in (([[0], [1], []], "plans anew"), ([[0, 1], [], []], "plans anew"), ([[0], [0], [1]], "plans anew")):
                for after, _, report in run(3, applied, folder, 5, (), False, load, 3):
                    self.assertIn(words, report)
                    self.assertNotIn("is lost", report)
                    for mine, theirs in zip(after, before):
                        self.assertLess(float((mine + theirs).abs().max()), 1e-4 * float(theirs.abs().max()) + 1e-5)
            for _, _, report in run(2, applied, folder, 5, (), False, [[0], []], 2):
                self.assertIn("what ranks 1 held back was not loaded, and is lost", report)


def refused_states(rank):
    """Loads invalid states. Returns the errors."""
    hook = attached(wrapped(network()))
    state = hook.state_dict()
    said = []
    for wrong in ({}, {**state, "rank": 1 - rank}, {**state, "way": 3}):
        try:
            hook.load_state_dict(wrong)
            said.append("accepted")
        except hipress.InvalidRequest as error:
            said.append(str(error))
    return said


class Checkpoints(unittest.TestCase):
    def test_a_job_goes_on_with_its_plan_and_bits(self):
        with tempfile.TemporaryDirectory() as folder:
            expected = run(2, in_two_parts, folder, False)
            found = run(2, in_two_parts, folder, True)
        self.assertIn("watching; onebit", expected[0][1])
        self.assertEqual([one for one, _ in found], [one for one, _ in expected])
        self.assertIn("went on with the checkpoint's plan: onebit", found[0][1])

    def test_another_number_of_ranks_plans_anew(self):
        with tempfile.TemporaryDirectory() as folder:
            run(2, in_two_parts, folder, False)
            for _, report in run(4, in_two_parts, folder, True, 4):
                self.assertIn("the checkpoint is of 2 ranks, and this job has 4: plans anew", report)

    def test_what_is_no_state_is_refused(self):
        for said in run(2, refused_states):
            self.assertIn("this is no state of hipress.attach(model)", said[0])
            self.assertIn("residuals belong to one rank", said[1])
            self.assertIn("'way' of a state", said[2])


def counted(rank):
    """Returns the number of this process's threads before attach(), while the plan averages, and after close()."""
    ddp = wrapped(network())
    train(ddp, torch.optim.SGD(ddp.parameters(), lr=0.1), rank, range(2))
    counts = [len(os.listdir("/proc/self/task"))]
    with decided(["onebit"]):
        hook = attached(ddp)
        train(ddp, torch.optim.SGD(ddp.parameters(), lr=0.1), rank, range(40))
    counts.append(len(os.listdir("/proc/self/task")))
    torch.distributed.barrier()
    hook.close()
    train(ddp, torch.optim.SGD(ddp.parameters(), lr=0.1), rank, range(2))
    return [*counts, len(os.listdir("/proc/self/task"))]


def compiled(rank):
    """Trains as trained() does, with a DistributedDataParallel that torch.compile wraps."""
    ddp = torch.compile(wrapped(network()), backend="eager")
    with decided(["none"]):
        hook = attached(ddp)
        train(ddp, torch.optim.SGD(ddp.parameters(), lr=0.1, momentum=0.9), rank, range(STEPS))
    return bits(ddp._orig_mod), hook.report()


def without_folder(rank):
    """Returns the report of a job that has no folder for its measurements."""
    for name in ("HIPRESS_CACHE", "XDG_CACHE_HOME", "HOME"):
        os.environ.pop(name, None)
    ddp = wrapped(network())
    hook = hipress.attach(ddp)
    train(ddp, torch.optim.SGD(ddp.parameters(), lr=0.1), rank, range(3))
    return hook.report()


def unplanned(rank):
    """Returns the report of a job whose profile does not exist."""
    ddp = wrapped(network())
    with mock.patch.object(_links.LinkEngine, "feel", lambda *_: 0.0), mock.patch.object(_control, "_LOOK_S", 0):
        hook = _ddp.attach_ddp(ddp, plan="auto", profile="no such profile", pace=Pace(warmup=2, measured=4))
        optimizer = torch.optim.SGD(ddp.parameters(), lr=0.1)
        train(ddp, optimizer, rank, range(9))
        if rank == 0:
            hook._planning._thread.join()
        train(ddp, optimizer, rank, range(9, 30))
    return hook.report()


def uncaptured(rank):
    """Returns the report of a job whose steps cannot be captured, and its log messages."""
    said = []
    handler = logging.Handler()
    handler.emit = lambda record: said.append(record.getMessage())
    logging.getLogger("hipress").addHandler(handler)
    with mock.patch.object(_auto._Beside, "text", side_effect=ValueError("nothing was seen")), \
            mock.patch.object(_links.LinkEngine, "feel", lambda *_: 0.0), mock.patch.object(_control, "_LOOK_S", 0):
        ddp = wrapped(network())
        hook = attached(ddp)
        train(ddp, torch.optim.SGD(ddp.parameters(), lr=0.1), rank, range(20))
    return hook.report(), said


def unfit(rank):
    """Returns the report of a model that only DDP can average, and a digest of the weights."""
    ddp = wrapped(network().double())
    hook = hipress.attach(ddp, profile="v100-100g")
    optimizer = torch.optim.SGD(ddp.parameters(), lr=0.1)
    values, classes = data(rank, 0)
    torch.nn.functional.cross_entropy(ddp(values.double()), classes).backward()
    optimizer.step()
    return hook.report(), bits(ddp)


def others(rank):
    """Attaches a job of one rank in a group of its own, trains a copy of an attached model, and attaches with options that do not
    belong together. Returns the report and the errors."""
    group = [torch.distributed.new_group([0]), torch.distributed.new_group([1])][rank]
    alone = wrapped(network(), process_group=group)
    hook = hipress.attach(alone)
    train(alone, torch.optim.SGD(alone.parameters(), lr=0.1), rank, range(3))
    said = [hook.report()]
    original = wrapped(network())
    attached(original)
    copied = copy.deepcopy(original)
    train(copied, torch.optim.SGD(copied.parameters(), lr=0.1), rank, range(3))
    for options in ({"model": "model.yaml"}, {"plan": "onebit", "algorithms": "fp16"}, {"plan": "onebit" if rank else "auto"}):
        try:
            hipress.attach(wrapped(network()), **{"profile": "v100-100g", **options} if "plan" not in options else options)
        except hipress.InvalidRequest as error:
            said.append(str(error))
    return said


#: Program that plans with a budget that no test awaits.
PLANS_LONG = """
import time
from hipress import _planning
from hipress._control import Links
_planning._LEAST_BUDGET_S = _planning._MOST_BUDGET_S = 3000
planning = _planning.Planning({"nnodes": 2, "profile": "v100-100g", "topology": "BEST", "nodes_per_host": 1}, "int8block,fp16")
rows = "".join(f"- {{name: g{i}, elements: {4000 * (i + 1)}, ready: {i}ms}}\\n" for i in range(30))
planning.start("name: m\\nforward: 9ms\\ngradients:\\n" + rows, Links(1e8, 1e-4), "", 0.1)
while planning._asked is None:
    time.sleep(0.01)
"""


class Others(unittest.TestCase):
    def test_no_thread_is_left(self):
        for before, during, after in run(2, counted):
            self.assertGreater(during, before)
            self.assertEqual(after, before)

    @unittest.skipIf(ranks.MISSING is not None or not hasattr(torch, "compile"), "needs PyTorch 2")
    def test_a_compiled_model_is_looked_through(self):
        for (found, report), (plain, _) in zip(run(2, compiled), run(2, trained, None, True)):
            self.assertEqual(found, plain)
            self.assertIn("watching; none", report)

    def test_a_process_does_not_wait_for_its_planner(self):
        for ending in ("planning.close()", ""):
            with self.subTest(ending=ending):
                subprocess.run([sys.executable, "-B", "-c", PLANS_LONG + ending], check=True, timeout=200)

    def test_without_costs_or_a_capture_plain_ddp_averages(self):
        for report in run(2, without_folder):
            self.assertIn("set HIPRESS_CACHE, XDG_CACHE_HOME or HOME", report)
        for report in run(2, unplanned):
            self.assertRegex(report, r"no plan \(profile 'no such profile'")
            self.assertIn("watching; plain DDP", report)
        (report, said), (other, others_said) = run(2, uncaptured)
        self.assertEqual(report, other)
        self.assertIn("no plan (nothing was seen)", report)
        self.assertIn("watching; plain DDP", report)
        self.assertEqual((said, others_said), (["plain DDP averages on: no plan (nothing was seen)"], []))

    def test_what_cannot_be_planned_for_stays_with_ddp(self):
        (report, first), (_, second) = run(2, unfit)
        self.assertIn("gradients are averaged as plain DDP does: parameter '0.weight' is of float64", report)
        self.assertEqual(first, second)

    def test_one_rank_copies_and_wrong_options(self):
        for said in run(2, others):
            self.assertIn("there is one rank", said[0])
            self.assertIn("model is of a plan that is given: leave it out, or give the plan", said[1])
            self.assertIn("algorithms is of plan='auto'", said[2])
            self.assertIn("rank 1 calls hipress.attach with plan='onebit', rank 0 with 'auto'", said[3])


class Measured(unittest.TestCase):
    def test_rank_0_plans_for_what_it_has_captured(self):
        # With links of 1 Mbit/s between two machines, the gradients' 27 kB take 0.2 s; fp16 halves them.
        with mock.patch.object(_links.LinkEngine, "burst", lambda engine: Links(125e3, 1e-3)), \
                mock.patch.object(_job, "machine", lambda: str(os.getpid())), mock.patch.dict(os.environ, MASTER_ADDR="127.0.0.1"):
            (report, page), (_, nothing) = run(2, really_planned)
        self.assertRegex(report, r"planned in [\d.]+ s: \S+ for \d of 6 gradients, [\d.]+ times as fast predicted")
        # The page is the planner's page of the plan, with the measurements as its first section.
        self.assertRegex(page, r'(?s)<h1>.*<section id="measured">.*planned in .*<section id="comparison">.*"plan"')
        self.assertEqual(nothing, "")


def really_planned(rank):
    """Plans with a shipped profile. Returns the report, and rank 0's page."""
    ddp = wrapped(network())
    hook = attached(ddp)
    optimizer = torch.optim.SGD(ddp.parameters(), lr=0.1)
    train(ddp, optimizer, rank, range(9))
    if rank == 0:
        hook._planning._thread.join()
    train(ddp, optimizer, rank, range(9, 60))
    with tempfile.TemporaryDirectory() as folder:
        path = pathlib.Path(folder, "report.html")
        return hook.report(path), path.read_text() if path.exists() else ""


if __name__ == "__main__":
    unittest.main()
