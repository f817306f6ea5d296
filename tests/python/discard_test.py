"""Tests that gradients that are not applied leave residuals unchanged: those of layers that no rank uses in a step, and of skipped
steps."""

import itertools
import unittest
import warnings

import ranks
from ranks import run, wrapped

if ranks.MISSING is None:
    import hipress
    import torch

#: Algorithms with residuals, with random draws, and with stages (acpsgd alternates between two).
ALGORITHMS = ("onebit", "tbq(tau=0.1)", "terngrad", "dgc", "graddrop", "int8block", "int4block", "fp4block", "powersgd(rank=2)",
              "acpsgd(rank=2)", "rsketch(rank=2)")


def setUpModule() -> None:
    ranks.require_torch()


if ranks.MISSING is None:
    class Two(torch.nn.Module):
        """Two layers, of which the second may be left out."""

        def __init__(self):
            super().__init__()
            self.always = torch.nn.Linear(24, 24, bias=False)
            self.second = torch.nn.Linear(24, 24, bias=False)

        def forward(self, inputs, use):
            return self.always(inputs) + self.second(inputs) if use else self.always(inputs)


def factors(rank, step):
    """Returns gradients of a step, different on every rank."""
    return torch.randn(24, 24, generator=torch.Generator().manual_seed(100 * step + rank))


def applied(rank, plan, uses, options, set_to_none=True):
    """Trains with the second layer in some steps, and returns its applied gradients. `uses`: pairs of step and true if used."""
    torch.manual_seed(0)
    ddp = wrapped(Two(), find_unused_parameters=True, **options)
    hook = hipress.attach(ddp, plan)
    given = []
    for step, use in uses:
        ddp.zero_grad(set_to_none=set_to_none)
        (ddp(torch.eye(24), use) * factors(rank, step)).sum().backward()
        if use:
            given.append(ddp.module.second.weight.grad.clone())
        elif set_to_none:
            assert ddp.module.second.weight.grad is None
    hook.close()
    return given


def after_overflow(rank, plan, steps, by_hand):
    """Trains. Returns the last step's gradients. Step -1 overflows on rank 1, so the hook discards it; the test discards -2."""
    torch.manual_seed(0)
    ddp = wrapped(torch.nn.Sequential(torch.nn.Linear(24, 24), torch.nn.Linear(24, 16)), bucket_cap_mb=0.001)
    hook = hipress.attach(ddp, plan)
    for step in steps:
        ddp.zero_grad(set_to_none=True)
        loss = (ddp(torch.eye(24)) * factors(rank, step + 10)[:, :16]).sum()
        (loss * float("inf") if step == -1 and rank == 1 else loss).backward()
        if step == -1:
            # The step is discarded as a whole, with its finite buckets.
            assert not all(torch.isfinite(parameter.grad).all() for parameter in ddp.parameters())
        if step == -2 and by_hand:
            hook.discard()
    hook.close()
    return [parameter.grad.clone() for parameter in ddp.parameters()]


def announced(rank):
    """Returns the warnings of an algorithm that does not average, and of one that does."""
    texts = []
    for plan in ("dgc(momentum=0.9)", "dgc"):
        ddp = wrapped(torch.nn.Linear(24, 24))
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            hipress.attach(ddp, plan, topology="allgather").close()
        texts.append([str(warning.message) for warning in caught])
    return texts


class Discarded(unittest.TestCase):
    def assert_equal(self, ours, theirs) -> None:
        self.assertEqual(len(ours), len(theirs))
        for mine, other in zip(ours, theirs):
            self.assertTrue(torch.equal(mine, other), f"{(mine - other).abs().max()} apart")

    def test_a_layer_that_no_rank_uses_keeps_its_residual(self):
        every_second = [(step, step % 2 == 0) for step in range(12)]
        used = [(step, True) for step in range(0, 12, 2)]
        for plan in ALGORITHMS:
            for view, set_to_none in itertools.product((False, True), (True, False)):
                if view and not set_to_none:
                    continue  # gradients are the buckets themselves, so all means are applied
                with self.subTest(plan=plan, view=view, set_to_none=set_to_none):
                    options = {"gradient_as_bucket_view": view}
                    skipped = run(2, applied, plan, every_second, options, set_to_none)
                    self.assert_equal(skipped[0], skipped[1])
                    self.assert_equal(skipped[0], run(2, applied, plan, used, options, set_to_none)[0])

    def test_a_step_that_is_skipped_leaves_no_trace(self):
        for plan in ALGORITHMS:
            with self.subTest(plan=plan):
                plain = run(2, after_overflow, plan, (0, 1, 3), False)
                for steps, by_hand in (((0, 1, -1, 3), False), ((0, 1, -2, 3), True), ((-1, 0, 1, -1, -1, 3), False)):
                    self.assert_equal(run(2, after_overflow, plan, steps, by_hand)[0], plain[0])

    def test_an_algorithm_with_momentum_is_announced(self):
        momentum, plain = run(2, announced)[0]
        self.assertEqual(len(momentum), 1)
        self.assertIn("not the mean of gradients, but up to 10 times it", momentum[0])
        self.assertEqual(plain, [])


if __name__ == "__main__":
    unittest.main()
