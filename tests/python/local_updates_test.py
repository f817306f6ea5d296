"""Tests of local updates: comparison with a loop in plain torch, checkpoints, compression, refusals, failures."""

import copy
import importlib
import os
import pathlib
import signal
import tempfile
import time
import unittest

import hipress
import ranks
from hipress._local import _schedule_of
from hipress._schedule import layers_of, parse_schedule
from ranks import data, network, run, train, weights, wrapped

if ranks.MISSING is None:
    import torch
    from torch.distributed.optim import ZeroRedundancyOptimizer

#: Schedules for a network of three layers. Each averages the whole network three times in 18 steps. The third averages several
#: fragments at the same time.
SCHEDULES = ("local(steps=6)", "local(steps=6, fragments=3, overlap=1)", "local(steps=6, fragments=3, every=1, overlap=3)",
             "local(steps=6, fragments=2, pattern=sequential)")
STEPS = 18


def setUpModule() -> None:
    ranks.require_torch()
    if hasattr(torch, "compile"):
        importlib.import_module("torch._dynamo")  # optimizers import it; without this line, every rank does


def trained(rank, schedule, plan="none", steps=STEPS, **options):
    """Trains a number of steps. Returns this rank's weights, and the outer weights."""
    model = network(seed=rank)  # local updates give every rank the model of rank 0
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9)
    local = hipress.LocalUpdates(model, optimizer, plan=plan, schedule=schedule, **options)
    train(model, optimizer, rank, range(steps))
    outer = {name: weight.detach().clone() for name, weight in local.outer_weights().items()}
    local.close()
    return weights(model), outer


def trained_by_two(rank, schedule):
    """Trains like trained(), with two optimizers, each for some of the parameters."""
    model = network(seed=rank)
    first, second = (torch.optim.SGD(model[layers].parameters(), lr=0.1, momentum=0.9) for layers in (slice(0, 1), slice(1, None)))
    local = hipress.LocalUpdates(model, [first, second], schedule=schedule)
    for step in range(STEPS):
        model.zero_grad(set_to_none=True)
        second.step()  # a step without gradients changes nothing
        train_once(model, rank, step)
        second.step()
        first.step()
    outer = {name: weight.detach().clone() for name, weight in local.outer_weights().items()}
    local.close()
    return weights(model), outer


def train_once(model, rank, step):
    """Adds the gradients of the step's batch."""
    values, classes = data(rank, step)
    torch.nn.functional.cross_entropy(model(values), classes).backward()


def trained_by(rank, schedule, options):
    return trained(rank, schedule, **options)


def reference(_rank, size, parts, every, period, overlap, alpha):
    """Trains by DiLoCo in one process. Returns the weights of all ranks, and the outer weights. `parts` are the names of each
    fragment's parameters."""
    models = [network() for _ in range(size)]
    optimizers = [torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9) for model in models]
    outer = {name: torch.nn.Parameter(value) for name, value in weights(models[0]).items()}
    outer_optimizer = torch.optim.SGD(outer.values(), lr=0.7, momentum=0.9, nesterov=True)
    arriving = {}  # means by the step at whose end they arrive, by name
    for step in range(1, STEPS + 1):
        for rank in range(size):
            train(models[rank], optimizers[rank], rank, [step - 1])
        with torch.no_grad():
            local = [dict(model.named_parameters()) for model in models]

            def take():
                means = arriving.pop(step, {})
                for name, weight in outer.items():
                    weight.grad = means.get(name)
                outer_optimizer.step()
                for name in means:
                    for rank in range(size):
                        local[rank][name].copy_(alpha * local[rank][name] + (1 - alpha) * outer[name])

            take()
            for p, names in enumerate(parts):
                if (step - 1) % period + 1 == (p + 1) * every:
                    arriving[step + overlap] = {name: sum(outer[name] - weight[name] for weight in local) / size for name in names}
            take()
    return [weights(model) for model in models], {name: value.detach() for name, value in outer.items()}


class Schedule(unittest.TestCase):
    def test_a_schedule_says_when_each_fragment_has_its_turn(self):
        for text, turns in (("local(steps=4)", {4: 0, 8: 0}),
                            ("local(steps=7, fragments=3)", {2: 0, 4: 1, 6: 2, 9: 0}),
                            ("local(steps=2, fragments=3)", {1: 0, 2: 1, 3: 2, 4: 0, 5: 1, 6: 2, 7: 0, 8: 1, 9: 2}),
                            ("local(steps=4, fragments=2, every=3)", {3: 0, 6: 1, 9: 0})):
            schedule = parse_schedule(text)
            self.assertEqual({step: schedule.due(step) for step in range(1, 10) if schedule.due(step) is not None}, turns, text)
            self.assertEqual(parse_schedule(str(schedule)), schedule)

    def test_a_layer_is_what_a_name_says_up_to_its_first_number(self):
        names = ["embedding.weight", "scale", "blocks.0.a.weight", "blocks.0.b.3.weight", "blocks.1.a.weight", "head.norm.weight",
                 "head.out.weight"]
        layers = [["embedding.weight"], ["scale"], names[2:4], ["blocks.1.a.weight"], ["head.norm.weight"], ["head.out.weight"]]
        self.assertEqual(layers_of(names), layers)
        for pattern, parts in (("strided", ((0, 2, 4), (1, 3, 5))), ("sequential", ((0, 1, 2), (3, 4, 5)))):
            schedule = parse_schedule(f"local(fragments=2, pattern={pattern})")
            self.assertEqual(schedule.fragments_of(names), [[name for layer in part for name in layers[layer]] for part in parts])

    def test_what_is_no_schedule_is_refused_in_words(self):
        for text, words in (("global", "give local(steps=100, fragments=4, overlap=1)"), ("local(steps=4", "is none: give"),
                            ("local(steps=0)", "steps=0 is out of range"), ("local(steps=1.5)", "steps=1.5 is not a whole number"),
                            ("local(fragments=0)", "fragments=0 is out of range"), ("local(every=0)", "every=0 is out of range"),
                            ("local(overlap=-1)", "overlap=-1 is out of range"),
                            ("local(steps)", "'steps' is not of the form name=value"),
                            ("local(pause=3)", "there is no parameter 'pause'"),
                            ("local(steps=1, steps=2)", "'steps' is given twice"),
                            ("local(pattern=random)", "there is no pattern 'random'; parameters of local: steps"),
                            ("local(steps=8, overlap=8)", "so that 7 is the most for steps=8")):
            with self.subTest(text), self.assertRaises(hipress.InvalidRequest) as caught:
                parse_schedule(text)
            self.assertIn(words, str(caught.exception))
        with self.assertRaisesRegex(hipress.InvalidRequest, "the model has 3 layers.*take fragments=3 or fewer"):
            parse_schedule("local(fragments=4)").fragments_of(["a", "b.c", "b.d"])

    def test_a_plan_says_its_schedule(self):
        with tempfile.TemporaryDirectory() as folder:
            plan = pathlib.Path(folder, "plan.yaml")
            plan.write_text("schema: hipress.plan/1\nschedule: local(steps=20, fragments=4, overlap=1)\n")
            self.assertEqual(_schedule_of(str(plan), None).steps, 20)
            self.assertEqual(_schedule_of(str(plan), "local(overlap=1,steps=20,fragments=4)").overlap, 1)
            with self.assertRaisesRegex(hipress.InvalidRequest, r"is for schedule local\(steps=20.*leave the schedule out"):
                _schedule_of(str(plan), "local(steps=20)")
            plan.write_text("schema: hipress.plan/1\n")
            self.assertEqual(_schedule_of(str(plan), None).steps, 100)
        self.assertEqual(_schedule_of("int4block", "local(steps=7)").steps, 7)


#: Head of a plan whose rule puts all gradients into buckets. A bucket must not wait for another fragment's gradients.
PLAN = "schema: hipress.plan/1\nmodel: small\ntopology: ps\nnodes: 2\nbulk: {threshold: 64KiB}\ngradients:\n"


class Weights(unittest.TestCase):
    def assert_equal(self, ours, theirs) -> None:
        self.assertEqual(ours.keys(), theirs.keys())
        for name in ours:
            self.assertTrue(torch.equal(ours[name], theirs[name]), f"{name}: {(ours[name] - theirs[name]).abs().max()}")

    def expected(self, text, alpha):
        schedule = parse_schedule(text)
        parts = schedule.fragments_of([name for name, _ in network().named_parameters()])
        return run(1, reference, 2, parts, schedule.every, schedule.period, schedule.overlap, alpha)[0]

    def test_two_ranks_have_the_bits_of_a_loop_in_one_process(self):
        for text in SCHEDULES:
            all_local, outer = self.expected(text, 0.5 if "overlap" in text else 0)
            for topology in ("ring", "ps", "allreduce"):
                with self.subTest(schedule=text, topology=topology):
                    for (mine, mean), local in zip(run(2, trained_by, text, {"topology": topology}), all_local):
                        self.assert_equal(mine, local)
                        self.assert_equal(mean, outer)

    def test_alpha_is_what_a_rank_keeps_of_its_own(self):
        all_local, outer = self.expected(SCHEDULES[1], 0.25)
        for (mine, mean), local in zip(run(2, trained_by, SCHEDULES[1], {"alpha": 0.25}), all_local):
            self.assert_equal(mine, local)
            self.assert_equal(mean, outer)

    def test_several_optimizers_have_the_bits_of_one(self):
        # SGD handles each parameter on its own. The second optimizer steps first, and once more within a step.
        for ours, theirs in zip(run(2, trained_by_two, SCHEDULES[1]), run(2, trained, SCHEDULES[1])):
            for mine, one in zip(ours, theirs):
                self.assert_equal(mine, one)

    def test_a_plan_with_bulk_groups(self):
        names = {name: weight.numel() for name, weight in network().named_parameters()}
        with tempfile.TemporaryDirectory() as path:
            pathlib.Path(path, "plan.yaml").write_text(PLAN + "".join(
                f"  - {{name: {name}, elements: {elements}, algorithm: none, K: 2}}\n" for name, elements in names.items()))
            for (mine, _), (plain, _) in zip(run(2, trained, SCHEDULES[1], f"{path}/plan.yaml"), run(2, trained, SCHEDULES[1])):
                self.assert_equal(mine, plain)

    def test_outer_weights_are_equal_with_every_kind_of_codec(self):
        for plan in ("fp16", "int4block", "onebit", "dgc(rho=0.1)", "powersgd(rank=2)", "lossless"):
            with self.subTest(plan=plan):
                (_, first), *others = run(3, trained, SCHEDULES[1], plan)
                for _, outer in others:
                    self.assert_equal(first, outer)
                self.assertTrue(all(torch.isfinite(value).all() for value in first.values()))


def finished(rank, schedule, steps):
    """Trains in a `with` block, and a step alone after it. Returns the weights at its end, and the losses before and after."""
    model = network(seed=rank)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    before = train(model, torch.optim.SGD(model.parameters(), lr=0), rank, range(1000, 1001))
    with hipress.LocalUpdates(model, optimizer, plan="int4block", schedule=schedule):
        train(model, optimizer, rank, range(steps))
    ended = weights(model)
    after = train(model, torch.optim.SGD(model.parameters(), lr=0), rank, range(1000, 1001))
    optimizer.step()
    return ended, before, after


class Finish(unittest.TestCase):
    def test_all_ranks_have_the_same_weights_and_a_lower_loss(self):
        for schedule in ("local(steps=5)", "local(steps=6, fragments=3, overlap=2)"):
            for steps in (120, 121, 122):  # at the end of a period, and within one
                with self.subTest(schedule=schedule, steps=steps):
                    (first, before, after), *others = run(2, finished, schedule, steps)
                    self.assertLess(after, 0.7 * before)
                    for other, *_ in others:
                        for name in first:
                            self.assertTrue(torch.equal(first[name], other[name]), name)


class Tied(torch.nn.Module if ranks.MISSING is None else object):
    """A layer that is used twice, so its weight has two names, and batch statistics."""

    def __init__(self, seed):
        super().__init__()
        torch.manual_seed(seed)
        self.first, self.second, self.last = torch.nn.Linear(24, 24), torch.nn.Linear(24, 24), torch.nn.Linear(24, 5)
        self.second.weight = self.first.weight
        self.norm = torch.nn.BatchNorm1d(24)

    def forward(self, values):
        return self.last(self.second(self.norm(self.first(values))))


def finished_with_buffers(rank):
    """Trains in a `with` block. Returns the model's state at its end. Also returns, from after ten steps: weights of a copy for
    evaluation, the outer weights, and true if the copy's weights are tied."""
    model = Tied(seed=rank)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    with hipress.LocalUpdates(model, optimizer, schedule="local(steps=4, fragments=2, overlap=1)") as local:
        train(model, optimizer, rank, range(10))
        evaluated = copy.deepcopy(model)
        evaluated.load_state_dict(local.outer_weights(), strict=False)
        outer = {name: weight.detach().clone() for name, weight in local.outer_weights().items()}
        tied = evaluated.second.weight is evaluated.first.weight
        train(model, optimizer, rank, range(10, 14))
    return {name: value.clone() for name, value in model.state_dict().items()}, weights(evaluated), outer, tied


class Buffers(unittest.TestCase):
    def test_all_ranks_end_with_the_same_statistics(self):
        (first, *_), (second, *_) = run(2, finished_with_buffers)
        self.assertIn("norm.running_mean", first)
        self.assertEqual(first["norm.num_batches_tracked"], 14)
        for name in first:
            self.assertTrue(torch.equal(first[name], second[name]), name)

    def test_a_copy_of_the_model_takes_the_outer_weights_for_evaluation(self):
        for _, evaluated, outer, tied in run(2, finished_with_buffers):
            self.assertTrue(tied)
            self.assertEqual(evaluated.keys(), outer.keys())
            for name in outer:
                self.assertTrue(torch.equal(evaluated[name], outer[name]), name)


def train_in_two_parts(rank, schedule, plan, path, part):
    """Trains all 20 steps; or the first ten, and saves a checkpoint; or the last ten from the checkpoint."""
    model = network()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9)
    local = hipress.LocalUpdates(model, optimizer, lambda weights: torch.optim.Adam(weights, lr=0.02), plan, schedule=schedule)
    if part == "second":
        checkpoint = torch.load(f"{path}/{rank}.pt")
        model.load_state_dict(checkpoint["model"])
        optimizer.load_state_dict(checkpoint["optimizer"])
        local.load_state_dict(checkpoint["local"])
    train(model, optimizer, rank, {"all": range(20), "first": range(10), "second": range(10, 20)}[part])
    if part == "first":
        torch.save({"model": model.state_dict(), "optimizer": optimizer.state_dict(), "local": local.state_dict()},
                   f"{path}/{rank}.pt")
    local.finish()
    return weights(model)


def load_elsewhere(rank, schedule, path, options):
    """Loads a state. Returns the error; "loaded" without one."""
    model = network()
    local = hipress.LocalUpdates(model, torch.optim.SGD(model.parameters(), lr=0.1), schedule=schedule, **options)
    try:
        local.load_state_dict(torch.load(f"{path}/{rank % 2}.pt")["local"])
    except hipress.InvalidRequest as error:
        return str(error)
    return "loaded"


class Checkpoints(unittest.TestCase):
    def test_a_job_goes_on_with_the_bits_of_one_that_was_not_interrupted(self):
        # After step 10, the last two schedules have fragments that are being averaged.
        for schedule in ("local(steps=4)", SCHEDULES[1], "local(steps=6, fragments=3, every=1, overlap=4)"):
            for plan in ("none", "onebit", "terngrad", "powersgd(rank=2)"):
                with self.subTest(schedule=schedule, plan=plan), tempfile.TemporaryDirectory() as path:
                    run(2, train_in_two_parts, schedule, plan, path, "first")
                    resumed = run(2, train_in_two_parts, schedule, plan, path, "second")
                    for mine, theirs in zip(resumed, run(2, train_in_two_parts, schedule, plan, path, "all")):
                        for name in mine:
                            self.assertTrue(torch.equal(mine[name], theirs[name]), name)

    def test_states_of_other_jobs_are_refused(self):
        with tempfile.TemporaryDirectory() as path:
            run(2, train_in_two_parts, SCHEDULES[1], "none", path, "first")
            for size, schedule, options, words in (
                    (3, SCHEDULES[1], {}, "a job of 2 ranks, and this is 3 ranks"),
                    (2, SCHEDULES[0], {}, "of the schedule local(steps=6, fragments=3, every=2, pattern=strided, overlap=1), and"),
                    (2, SCHEDULES[1], {"topology": "allreduce"}, "save it after a multiple of 6 steps")):
                for said in run(size, load_elsewhere, schedule, path, options):
                    self.assertIn(words, said)


def refusals(rank):
    """Messages of refused models and calls."""
    said = {}

    def refused(name, model, *arguments, optimizer=None, **options):
        try:
            optimizer = torch.optim.SGD(model.parameters(), lr=0.1) if optimizer is None else optimizer
            hipress.LocalUpdates(model, optimizer, *arguments, **options)
            said[name] = "accepted"
        except hipress.InvalidRequest as error:
            said[name] = str(error)

    refused("ddp", wrapped(network()))
    refused("no module", {"model": network()}, optimizer="none")
    refused("DataParallel", torch.nn.DataParallel(network()))
    refused("double", network().double())
    refused("optimizer", network(), optimizer=torch.optim.SGD(network().parameters(), lr=0.1))
    refused("no optimizer", network(), optimizer="SGD")
    refused("list", network(), optimizer=[])
    refused("sharded", model := network(), optimizer=ZeroRedundancyOptimizer(model.parameters(), torch.optim.SGD, lr=0.1))
    model = network()
    refused("several", model, optimizer=[torch.optim.SGD(model[place].parameters(), lr=0.1) for place in (0, 4)])
    refused("part", model, optimizer=torch.optim.SGD(model[4].parameters(), lr=0.1))
    refused("outer", network(), torch.optim.SGD(network().parameters(), lr=0.1))
    refused("outer of others", network(), lambda _: torch.optim.SGD(network().parameters(), lr=0.1))
    refused("outer of none", network(), lambda _: None)
    refused("alpha", network(), alpha=2)
    refused("layers", network(), schedule="local(fragments=4)")
    refused("schedules", network(), schedule=f"local(steps={10 + rank})")
    refused("plans", network(), None, "onebit" if rank else "none")
    refused("models", network() if rank else torch.nn.Linear(3, 3))
    kept = hipress.LocalUpdates(model, torch.optim.SGD(model.parameters(), lr=0.1))
    refused("twice", model)
    kept.close()
    refused("again", model)
    return said


REFUSED = (("ddp", "give the module in it, as model.module"), ("no module", "got dict: give it the model itself"),
           ("DataParallel", "give the module before it was wrapped"), ("double", "float64"),
           ("optimizer", "the optimizer does not have the model's '0.weight' and 5 more: make it of model.parameters()"),
           ("no optimizer", "optimizer is a str, and not a torch.optim.Optimizer"),
           ("list", "the list of optimizers is empty"),
           ("sharded", "a ZeroRedundancyOptimizer, which makes the ranks' weights alike in every step: give local updates"),
           ("several", "'2.weight' and 1 more: make it of model.parameters(), or give the list of all optimizers that train it"),
           ("part", "does not have the model's '0.weight' and 3 more"),
           ("outer", "outer_optimizer is a SGD, which has no outer weights: give a function"),
           ("outer of others", "the outer_optimizer does not have the model's '0.weight' and 5 more: make it of the outer weights"),
           ("outer of none", "outer_optimizer is a NoneType"), ("alpha", "alpha must be a number at least 0 and at most 1, got 2"),
           ("layers", "take fragments=3 or fewer"),
           ("schedules", "rank 1 calls hipress.LocalUpdates with schedule='local(steps=11, fragments=1, every=11, pattern=strided, "
                         "overlap=0)', rank 0 with 'local(steps=10,"),
           ("plans", "rank 1 calls hipress.LocalUpdates with plan='onebit', rank 0 with 'none'"),
           ("models", "rank 1 calls hipress.LocalUpdates with gradient 0.weight of shape [64, 24]"),
           ("twice", "this model has local updates already"), ("again", "accepted"))


def changed(rank, change):
    """Changes a model or its optimizer after local updates were made, and trains. Returns the error, or "trained"."""
    model = network(seed=rank)
    model[4].weight.requires_grad_(change != "unfrozen")
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    try:
        with hipress.LocalUpdates(model, optimizer, schedule="local(steps=4)", timeout=20):
            if change == "unfrozen":
                model[4].weight.requires_grad_()
            elif change == "replaced":
                model[4] = torch.nn.Linear(64, 5)
            elif change == "unseen":
                optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
            train(model, optimizer, rank, range(6))
    except hipress.Error as error:
        return str(error)
    return "trained"


def take_steps(rank, counts):
    """Lets ranks take different numbers of steps. Returns the lost rank and the error on this rank, if any."""
    model = network()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    try:
        with hipress.LocalUpdates(model, optimizer, schedule="local(steps=5)", timeout=20):
            train(model, optimizer, rank, range(counts[rank]))
    except hipress.RankLost as error:
        return error.rank, str(error)
    return None


def scheduled(rank, first):
    """Makes a learning-rate scheduler before or after local updates, trains, and takes a step after close(). Returns the number of
    counted steps, and the learning rate."""
    model = network()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    if first:
        scheduler = torch.optim.lr_scheduler.StepLR(optimizer, 2)
    local = hipress.LocalUpdates(model, optimizer, schedule="local(steps=3)")
    if not first:
        scheduler = torch.optim.lr_scheduler.StepLR(optimizer, 2)
    for step in range(4):
        train(model, optimizer, rank, [step])
        scheduler.step()
    counted = local.state_dict()["step"]
    local.close()
    train(model, optimizer, rank, [4])
    return counted, round(optimizer.param_groups[0]["lr"], 6)


class Making(unittest.TestCase):
    def test_what_cannot_be_trained_is_refused_in_words(self):
        for said in run(2, refusals):
            self.assertEqual(sorted(said), sorted(name for name, _ in REFUSED))
            for name, words in REFUSED:
                self.assertIn(words, said[name], name)

    def test_what_would_leave_ranks_with_weights_of_their_own_is_refused(self):
        for change, words in (("unfrozen", "the model's '4.weight' is trained now, and was not when local updates were made"),
                              ("replaced", "the model's '4.weight' is trained now"),
                              ("unseen", "the model's weights have changed, and the optimizer took no step")):
            with self.subTest(change):
                for said in run(2, changed, change):
                    self.assertIn(words, said)

    def test_schedulers_of_learning_rates_work_beside_it(self):
        for first in (True, False):
            for counted, rate in run(2, scheduled, first):
                self.assertEqual((counted, rate), (4, 0.001))


def train_until_stopped(rank, path):
    """Trains until rank 1 is stopped from outside. Returns this rank's error, the lost rank, the error of the next step, and true
    if it is kept as failure and if the engine is closed."""
    model = network()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    local = hipress.LocalUpdates(model, optimizer, schedule="local(steps=2, fragments=2, overlap=1)", timeout=20)
    train(model, optimizer, rank, range(3))
    pathlib.Path(path, str(rank)).touch()
    try:
        while True:
            train(model, optimizer, rank, range(3, 4))
    except hipress.RankLost as error:
        try:
            train(model, optimizer, rank, range(4, 5))
        except hipress.RankLost as again:
            return str(error), error.rank, str(again), local.failure is error, local.engine.closed
    return None


def fail_in_with(rank):
    """Raises in the loop of rank 1. Returns the type and message of this rank's error."""
    model = network()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    try:
        with hipress.LocalUpdates(model, optimizer, schedule="local(steps=2)", timeout=20):
            train(model, optimizer, rank, range(3))
            if rank == 1:
                raise ValueError("no more data")
            train(model, optimizer, rank, range(3, 9))
    except (hipress.RankLost, ValueError) as error:
        return type(error).__name__, str(error)
    return None


class Failures(unittest.TestCase):
    def test_a_rank_that_is_killed_is_named_by_the_others(self):
        with tempfile.TemporaryDirectory() as path:
            job = ranks.Job(3, train_until_stopped, path)
            end = time.monotonic() + ranks.DEADLINE_S
            while len(os.listdir(path)) < 3 and time.monotonic() < end:
                time.sleep(0.05)
            job.signal(1, signal.SIGKILL)
            outcomes = job.outcomes()
        for rank in (0, 2):
            succeeded, result = outcomes[rank]
            self.assertTrue(succeeded, result)
            said, culprit, again, kept, closed = result
            self.assertIn("rank 1", said)
            self.assertIn("rank 1", again)
            self.assertEqual((culprit, kept, closed), (1, True, True))

    def test_a_rank_that_ends_early_is_named_with_the_remedy(self):
        # Rank 0 ends right after the turn at step 10 in the first case, and before this turn, which rank 1 begins, in the second.
        for counts in ((10, 11), (9, 14)):
            first, second = run(2, take_steps, counts)
            self.assertIsNone(first)
            self.assertEqual(second[0], 0)
            self.assertIn("let all ranks take the same number of steps", second[1])

    def test_an_exception_in_a_with_ends_the_job_of_all_ranks(self):
        first, second = run(2, fail_in_with)
        self.assertEqual(second, ("ValueError", "no more data"))
        self.assertEqual(first[0], "RankLost")
        self.assertIn("ValueError: no more data", first[1])


if __name__ == "__main__":
    unittest.main()
