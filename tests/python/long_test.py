"""Tests with longer trainings: 200 steps on three ranks with every algorithm, and the loss of accuracy by compression, over three
seeds on real digits."""

import gzip
import pathlib
import statistics
import unittest

import ranks
import training_test
from ranks import run, wrapped

if ranks.MISSING is None:
    import hipress
    import numpy
    import torch

DIGITS = pathlib.Path(__file__).resolve().parents[2] / "examples/data/digits.csv.gz"
SEEDS = (1, 2, 3)
#: Largest loss of accuracy by compression, in percentage points, as the mean of three seeds: 9 of the 297 test digits.
MARGIN = 3.0
#: Algorithms that train with their default parameters: they have no fixed step or threshold that would have to suit the model.
TRAINED = ("fp16", "bf16", "onebit", "dgc", "powersgd(rank=4)", "acpsgd(rank=4)")


def setUpModule() -> None:
    ranks.require_torch()


def accuracy(rank, plan, seed):
    """Trains 600 steps of 2 x 32 digits. Returns the accuracy in percent."""
    with gzip.open(DIGITS, "rt") as file:
        table = numpy.loadtxt(file, delimiter=",", dtype=numpy.float32)
    table = torch.from_numpy(table[numpy.random.RandomState(0).permutation(len(table))])
    images, labels = table[:, :-1] / 16, table[:, -1].long()
    torch.manual_seed(seed)
    ddp = wrapped(torch.nn.Sequential(torch.nn.Linear(64, 128), torch.nn.ReLU(), torch.nn.Linear(128, 10)))
    hipress.attach(ddp, plan)
    optimizer = torch.optim.SGD(ddp.parameters(), lr=0.1)
    generator = torch.Generator().manual_seed(1000 * seed + rank)
    for _ in range(600):
        chosen = torch.randint(len(labels) - 297, (32,), generator=generator)
        optimizer.zero_grad()
        torch.nn.functional.cross_entropy(ddp(images[chosen]), labels[chosen]).backward()
        optimizer.step()
    with torch.no_grad():
        right = ddp.module(images[-297:]).argmax(dim=1) == labels[-297:]
    return right.float().mean().item() * 100


class LongTest(unittest.TestCase):
    def test_ranks_stay_equal_for_200_steps(self):
        for plan in training_test.ALGORITHMS:
            with self.subTest(plan=plan):
                first, *others = run(3, training_test.trained, plan, None, None, 200)
                for other in others:
                    for name in first:
                        self.assertTrue(torch.equal(first[name], other[name]), name)

    def test_compression_costs_little_accuracy(self):
        mean = {plan: statistics.fmean(run(2, accuracy, plan, seed)[0] for seed in SEEDS) for plan in ("none", *TRAINED)}
        print("accuracy: " + ", ".join(f"{plan} {percent:.1f} %" for plan, percent in mean.items()))
        self.assertGreater(mean["none"], 90)
        for plan in TRAINED:
            self.assertGreater(mean[plan], mean["none"] - MARGIN, plan)


if __name__ == "__main__":
    unittest.main()
