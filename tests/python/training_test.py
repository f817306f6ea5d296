"""Tests of training by DDP with a plan, on two to four ranks of this machine: weights, several models, checkpoints, buckets."""

import pathlib
import tempfile
import unittest
import warnings

import ranks
from ranks import data, network, run, train, weights, wrapped

if ranks.MISSING is None:
    import hipress
    import torch

#: Algorithms of all kinds: raw, casts, lossless, quantised (by blocks, with a residual, or with random draws), sparse, and low rank
#: with two stages and with one.
ALGORITHMS = ("none", "fp16", "bf16", "lossless", "int8block", "int4block", "fp8block", "fp4block(format=e2m1)", "onebit",
              "tbq", "terngrad", "dgc", "graddrop", "powersgd(rank=2)", "acpsgd(rank=2)", "rsketch(rank=2)")
STEPS = 6


def setUpModule() -> None:
    ranks.require_torch()


def trained(rank, plan, options=None, attach=None, steps=STEPS, accumulate=False):
    """Trains several steps; `plan` None: under plain DDP. Returns the weights."""
    ddp = wrapped(network(), **(options or {}))
    if plan is not None:
        hook = hipress.attach(ddp, plan, **(attach or {}))
    train(ddp, torch.optim.SGD(ddp.parameters(), lr=0.1, momentum=0.9), rank, range(steps), accumulate)
    if plan is not None:
        hook.close()
    return weights(ddp.module)


def ring_mean(local, unit, rails=1):
    """Returns the mean of the ranks' tensors, added in the order of a ring. There are as many partitions as ranks, and each has a
    multiple of 32 elements. The sum of partition k begins at place (unit + k) mod N, every next place adds its own values, and the
    last divides by N. Place p is rank p. If hosts have `rails` ranks, it is the rank k places further on p's host, cyclically."""
    size = len(local)
    mean = torch.empty_like(local[0])
    length = -(-mean.numel() // (32 * size)) * 32
    for k in range(size):
        cut = slice(k * length, min(mean.numel(), (k + 1) * length))
        places = [(unit + k + hop) % size for hop in range(size)]
        first, *others = [place - place % rails + (place + k) % rails for place in places]
        total = local[first][cut].clone()
        for rank in others:
            total += local[rank][cut]
        mean[cut] = total / size
    return mean


def ring_reference(_rank, size, steps, rails=None):
    """Trains in one process, with means as rings compute them. Returns the weights. All gradients are small and
    form one unit: they are joined from the last to the first, and the unit's number is the number of gradients. If `rails` is
    given, every gradient is a unit of its own. Run it in a fork: torch runs no backward in forks of a process that has run one."""
    module = network()
    optimizer = torch.optim.SGD(module.parameters(), lr=0.1, momentum=0.9)
    parameters = list(module.parameters())[::-1]
    for step in range(steps):
        local = []
        for rank in range(size):
            optimizer.zero_grad()
            values, classes = data(rank, step)
            torch.nn.functional.cross_entropy(module(values), classes).backward()
            local.append([parameter.grad.flatten().clone() for parameter in parameters])
        if rails:
            means = [ring_mean(of_ranks, unit, rails) for unit, of_ranks in enumerate(zip(*local))]
        else:
            together = ring_mean([torch.cat(gradients) for gradients in local], len(parameters))
            means = together.split([parameter.numel() for parameter in parameters])
        for parameter, mean in zip(parameters, means):
            parameter.grad = mean.view_as(parameter)
        optimizer.step()
    return weights(module)


def write_rails(path, rails) -> None:
    """Writes a plan for four ranks: every gradient is a unit, and the rings of a unit's partitions leave a host of `rails` ranks by
    different ranks."""
    lines = [f"- {{name: {name}, elements: {value.numel()}, algorithm: none, K: 4}}"
             for name, value in reversed(list(network().named_parameters()))]
    pathlib.Path(path).write_text("\n".join(["schema: hipress.plan/1", "model: small", "topology: ring", "nodes: 4",
                                             f"rails: {rails}", "gradients:", *lines, ""]), encoding="utf-8")


class Weights(unittest.TestCase):
    def assert_equal(self, ours, theirs) -> None:
        self.assertEqual(ours.keys(), theirs.keys())
        for name in ours:
            self.assertTrue(torch.equal(ours[name], theirs[name]), f"{name}: {(ours[name] - theirs[name]).abs().max()}")

    def test_two_ranks_have_the_bits_of_plain_ddp(self):
        plain = run(2, trained, None)
        for topology in ("ring", "ps", "allreduce"):
            with self.subTest(topology=topology):
                for mine, theirs in zip(run(2, trained, "none", None, {"topology": topology}), plain):
                    self.assert_equal(mine, theirs)

    def test_more_ranks_have_the_bits_of_a_serial_ring(self):
        for size in (3, 4):
            with self.subTest(size=size):
                expected = run(1, ring_reference, size, STEPS)[0]
                all_ranks = run(size, trained, "none")
                for mine in all_ranks:
                    self.assert_equal(mine, expected)
                # DDP adds in another order. A mean of N floats is off by at most N - 1 roundings, each 2^-24 of the sum of absolute
                # values. Six steps with rate 0.1 and momentum 0.9 through a smooth network enlarge that by less than 1000.
                for name, theirs in run(size, trained, None)[0].items():
                    bound = 1000 * (size - 1) * 2.0**-24
                    self.assertLess((all_ranks[0][name] - theirs).abs().max().item(), bound, name)

    def test_a_plan_with_rails_has_the_bits_of_its_rings(self):
        expected = {}
        with tempfile.TemporaryDirectory() as folder:
            for rails in (1, 2):
                write_rails(f"{folder}/plan.yaml", rails)
                expected[rails] = run(1, ring_reference, 4, STEPS, rails)[0]
                for mine in run(4, trained, f"{folder}/plan.yaml"):
                    self.assert_equal(mine, expected[rails])
        self.assertFalse(all(torch.equal(expected[1][name], expected[2][name]) for name in expected[1]))

    def test_ranks_stay_equal_with_every_algorithm(self):
        raw = run(3, trained, "none")[0]
        for plan in ALGORITHMS:
            with self.subTest(plan=plan):
                first, *others = run(3, trained, plan)
                for other in others:
                    self.assert_equal(first, other)
                for name, value in first.items():
                    self.assertTrue(torch.isfinite(value).all(), name)
                # Lossless gradients are not grouped, so they are added in another order. All other algorithms lose more.
                distance = max((first[name] - raw[name]).abs().max().item() for name in first)
                self.assertEqual(distance < 1e-6, plan in ("none", "lossless"), distance)

    def test_ranks_stay_equal_with_gathered_messages(self):
        for plan in ("dgc(rho=0.1)", "graddrop(rho=0.1,packing=2)", "onebit"):
            with self.subTest(plan=plan):
                first, *others = run(3, trained, plan, None, {"topology": "allgather"})
                for other in others:
                    self.assert_equal(first, other)
                self.assertTrue(all(torch.isfinite(value).all() for value in first.values()))

    def test_options_of_ddp_change_nothing(self):
        for options in ({"find_unused_parameters": True}, {"static_graph": True}, {"gradient_as_bucket_view": True},
                        {"bucket_cap_mb": 0.01}):
            with self.subTest(options=options):
                plain = run(2, trained, None, options)[0]
                for mine in run(2, trained, "none", options):
                    self.assert_equal(mine, plain)

    def test_gradients_accumulate_under_no_sync(self):
        plain = run(2, trained, None, None, None, STEPS, True)[0]
        for mine in run(2, trained, "none", None, None, STEPS, True):
            self.assert_equal(mine, plain)


class Half(torch.nn.Module if ranks.MISSING is None else object):
    """Model with one parameter in fp16. It has no matrix product, since torch 1.13 has none in fp16 on CPUs."""

    def __init__(self):
        super().__init__()
        self.weight = torch.nn.Parameter(torch.zeros(3, 8, dtype=torch.float16))

    def forward(self, values):
        return self.weight.float() * values


class Partly(torch.nn.Module if ranks.MISSING is None else object):
    """Model that uses its second branch in every other step."""

    def __init__(self):
        super().__init__()
        self.always, self.sometimes = network(1), network(2)
        self.step = 0

    def forward(self, values):
        self.step += 1
        out = self.always(values)
        return out + self.sometimes(values) if self.step % 2 else out


def train_partly(rank, plan):
    ddp = wrapped(Partly(), find_unused_parameters=True)
    if plan is not None:
        hipress.attach(ddp, plan)
    train(ddp, torch.optim.SGD(ddp.parameters(), lr=0.1), rank, range(4))
    return weights(ddp.module)


def train_two_models(rank, plan):
    models = [wrapped(network(seed)) for seed in (1, 2)]
    for ddp in models:
        if plan is not None:
            hipress.attach(ddp, plan)
    optimizers = [torch.optim.SGD(ddp.parameters(), lr=0.1) for ddp in models]
    for step in range(4):
        losses = []
        for ddp, optimizer in zip(models, optimizers):
            optimizer.zero_grad()
            values, classes = data(rank, step)
            losses.append(torch.nn.functional.cross_entropy(ddp(values), classes))
        for loss in reversed(losses):
            loss.backward()
        for optimizer in optimizers:
            optimizer.step()
    return [weights(ddp.module) for ddp in models]


def train_halves(rank):
    """Returns the mean gradient of a model in half precision."""
    ddp = wrapped(Half())
    hipress.attach(ddp, "none")
    ddp(torch.full((3, 8), float(2 * rank + 2))).sum().backward()
    return ddp.module.weight.grad.float()


class Models(unittest.TestCase):
    def test_parameters_that_a_step_does_not_use(self):
        for mine, theirs in zip(run(2, train_partly, "none"), run(2, train_partly, None)):
            for name in mine:
                self.assertTrue(torch.equal(mine[name], theirs[name]), name)

    def test_several_models_in_one_process(self):
        for mine, theirs in zip(run(2, train_two_models, "none"), run(2, train_two_models, None)):
            for ours, plain in zip(mine, theirs):
                for name in ours:
                    self.assertTrue(torch.equal(ours[name], plain[name]), name)

    def test_half_precision(self):
        # Each rank's gradient is 2 (rank + 1), so the mean over 3 ranks is 4.
        for gradient in run(3, train_halves):
            self.assertTrue(torch.equal(gradient, torch.full((3, 8), 4.0)))


def train_in_two_parts(rank, plan, path, resume):
    """Trains six steps, with a checkpoint after three; with `resume`, the last three from that checkpoint. Returns the weights."""
    ddp = wrapped(network())
    hook = hipress.attach(ddp, plan)
    optimizer = torch.optim.SGD(ddp.parameters(), lr=0.1, momentum=0.9)
    if resume:
        checkpoint = torch.load(f"{path}/{rank}.pt")
        ddp.module.load_state_dict(checkpoint["model"])
        optimizer.load_state_dict(checkpoint["optimizer"])
        hook.load_state_dict(checkpoint["hipress"])
    else:
        train(ddp, optimizer, rank, range(3))
        torch.save({"model": ddp.module.state_dict(), "optimizer": optimizer.state_dict(), "hipress": hook.state_dict()},
                   f"{path}/{rank}.pt")
    train(ddp, optimizer, rank, range(3, 6))
    return weights(ddp.module)


def load_elsewhere(rank, path):
    """Loads the states of ranks 0 and 1. Returns the errors, or "loaded"."""
    hook = hipress.attach(wrapped(network()), "onebit")
    said = []
    for number in (0, 1):
        try:
            hook.load_state_dict(torch.load(f"{path}/{number}.pt")["hipress"])
            said.append("loaded")
        except hipress.InvalidRequest as error:
            said.append(str(error))
    return said


def load_other_plan(rank, path):
    hook = hipress.attach(wrapped(network()), "dgc")
    try:
        hook.load_state_dict(torch.load(f"{path}/{rank}.pt")["hipress"])
    except hipress.InvalidRequest as error:
        return str(error)
    return "loaded"


class Checkpoints(unittest.TestCase):
    def test_a_job_goes_on_with_the_same_bits(self):
        for plan in ("none", "onebit", "dgc", "terngrad", "powersgd(rank=2)", "acpsgd(rank=2)", "rsketch(rank=2)"):
            with self.subTest(plan=plan), tempfile.TemporaryDirectory() as path:
                whole = run(2, train_in_two_parts, plan, path, False)
                resumed = run(2, train_in_two_parts, plan, path, True)
                for mine, theirs in zip(resumed, whole):
                    for name in mine:
                        self.assertTrue(torch.equal(mine[name], theirs[name]), name)

    def test_states_of_other_jobs_are_refused(self):
        with tempfile.TemporaryDirectory() as path:
            run(2, train_in_two_parts, "onebit", path, False)
            said = run(2, load_elsewhere, path)
            self.assertEqual(said[0][0], "loaded")
            self.assertIn("of rank 1, and this is rank 0", said[0][1])
            self.assertIn("of rank 0, and this is rank 1", said[1][0])
            for text in run(3, load_elsewhere, path)[2]:
                self.assertIn("a job of 2 ranks, and this is 3 ranks", text)
            for text in run(2, load_other_plan, path):
                self.assertIn("load it under the plan", text)


def warned_of_buckets(_rank, width, bucket_mb):
    """Returns the warnings of attach() about buckets."""
    ddp = wrapped(torch.nn.Linear(width, width), bucket_cap_mb=bucket_mb)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        hipress.attach(ddp, "none")
    return [str(one.message) for one in caught if "bucket" in str(one.message)]


class Buckets(unittest.TestCase):
    def test_large_ones_are_warned_of_by_one_rank(self):
        for bucket_mb in (5, 25):
            first, second = run(2, warned_of_buckets, 1200, bucket_mb)  # the gradients have 5.5 MiB
            self.assertEqual(len(first), 1)
            self.assertIn(f"buckets of up to {bucket_mb} MiB", first[0])
            self.assertIn("bucket_cap_mb=1", first[0])
            self.assertEqual(second, [])

    def test_small_ones_and_small_models_are_not(self):
        self.assertEqual(run(2, warned_of_buckets, 1200, 1), [[], []])
        self.assertEqual(run(2, warned_of_buckets, 100, 25), [[], []])


if __name__ == "__main__":
    unittest.main()
