"""Tests of the Python package: models trained over gloo on loopback, with the hook and without.

Usage: training_test.py TOOLS [long]
"""

import pathlib
import sys
import tempfile
import subprocess
import unittest

try:
    import torch
except ImportError:
    print("skipped: this python3 has no torch (Debian package python3-torch)")
    sys.exit(0)
import numpy

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent))
import jobs  # noqa: E402  (found through the path above)
import ranks  # noqa: E402

TOOLS = pathlib.Path(".")
LONG = False

ALGORITHMS = ["fp16", "bf16", "onebit", "tbq", "terngrad", "dgc", "graddrop", "powersgd(rank=2)", "acpsgd(rank=2)", "rsketch(rank=2)"]


def same_bits(a: list, b: list) -> bool:
    return all(numpy.array_equal(x.view(numpy.uint32), y.view(numpy.uint32)) for x, y in zip(a, b))


class TrainingTest(unittest.TestCase):
    def test_two_ranks_without_compression_end_with_the_bits_of_plain_ddp(self):
        for options in ({}, {"gradient_as_bucket_view": True}, {"static_graph": True}):
            with self.subTest(options):
                plain = ranks.run(jobs.train, 2, None, 10, {}, options)
                ours = ranks.run(jobs.train, 2, "none", 10, {}, options)
                for rank in (0, 1):
                    self.assertTrue(same_bits(plain[rank][0], ours[rank][0]))
                self.assertEqual(plain[0][1], ours[0][1])

    def test_means_are_those_of_the_serial_reference_to_the_bit_and_of_ddp_but_for_rounding(self):
        for count in (3, 4):
            with self.subTest(count), tempfile.TemporaryDirectory() as folder:
                outcomes = ranks.run(jobs.one_step, count, "none", folder)
                sizes = [weight.numel() for weight in jobs.model().parameters()][::-1]
                names = [name for name, _ in jobs.model().named_parameters()][::-1]
                table = pathlib.Path(folder) / "model.csv"
                table.write_text("name,elements\n" + "".join(f"{name},{size}\n" for name, size in zip(names, sizes)))
                subprocess.run([TOOLS / "hipress-exec", "--input", table, "--plan", "none", "--topology", "ring", "--nnodes",
                                str(count), "--iterations", "1", "--warmup", "0", "--gradients", folder, "--means",
                                f"{folder}/means", "--no-bulk"], check=True, capture_output=True)
                for rank, (plain, ours) in enumerate(outcomes):
                    for index, (mean, expected) in enumerate(zip(ours[::-1], plain[::-1])):
                        reference = numpy.fromfile(f"{folder}/means/rank{rank}/{index}.f32", dtype=numpy.float32)
                        self.assertTrue(same_bits([mean.ravel()], [reference]), names[index])
                        self.assertTrue(numpy.allclose(mean, expected, rtol=1e-5, atol=1e-7), names[index])

    def test_all_ranks_end_with_the_same_bits_under_every_algorithm(self):
        outcomes = ranks.run(jobs.several_trainings, 3, ALGORITHMS, 200 if LONG else 20)
        for index, algorithm in enumerate(ALGORITHMS):
            with self.subTest(algorithm):
                weights = [outcome[index][0] for outcome in outcomes]
                self.assertTrue(all(numpy.isfinite(weight).all() for weight in weights[0]))
                self.assertTrue(same_bits(weights[0], weights[1]) and same_bits(weights[0], weights[2]))

    def test_a_resumed_training_goes_on_with_the_same_bits(self):
        for plan in ("onebit", "dgc", "acpsgd(rank=2)", "powersgd(rank=2)"):
            with self.subTest(plan):
                for whole, resumed in ranks.run(jobs.resumed, 2, plan):
                    self.assertTrue(same_bits(whole, resumed))

    def test_states_of_others_are_refused_on_all_ranks_and_nothing_changes(self):
        zero, one = ranks.run(jobs.refused_states, 2)
        self.assertIn("the state is of rank 0 of 5, this is rank 0 of 2", zero[0])
        self.assertIn("another plan, strategy, algorithm or seed", zero[1])
        self.assertIn("of version 99", zero[2])
        self.assertEqual(one, [f"rank 0: {text}" for text in zero])

    def test_a_killed_rank_is_named_within_the_timeout_and_no_thread_is_left(self):
        for text, rank, seconds, threads in ranks.run(jobs.killed, 3, survivors=[0, 2]):
            self.assertIn("rank 1", text)
            self.assertLess(seconds, 10)
            self.assertEqual(threads, ["MainThread"])
            self.assertIn(rank, (1, None))  # PyTorch may pass on the text alone

    def test_an_interrupt_ends_a_wait(self):
        self.assertEqual(ranks.run(jobs.interrupted, 2), ["slept", "interrupted"])

    def test_ddps_ways_of_training_give_its_bits(self):
        for job in (jobs.unused_parameters, jobs.accumulated, jobs.two_models):
            with self.subTest(job.__name__):
                for plain, ours in ranks.run(job, 2):
                    self.assertTrue(same_bits(plain, ours))

    def test_verify_lays_each_gradient_beside_plain_ddp(self):
        rows, text = ranks.run(jobs.verified, 2, "none")[0]
        self.assertEqual(sorted(name for name, *_ in rows), sorted(name for name, _ in jobs.model().named_parameters()))
        self.assertTrue(all(same for *_, same in rows))
        self.assertIn("6 of 6 gradients have the bits of plain DDP", text)
        rows, text = ranks.run(jobs.verified, 2, "onebit")[0]
        self.assertTrue(all(0.01 < difference < 2 for _, elements, difference, _ in rows if elements > 8))

    def test_what_cannot_be_attached_is_refused_with_the_reason(self):
        for said in ranks.run(jobs.refused, 2):
            self.assertIn("TypeError: attach() takes a DistributedDataParallel, not a Sequential", said[0])
            self.assertIn("parameter '4.bias': gradients of torch.float64 cannot be averaged", said[1])
            self.assertIn("no_such_algorithm", said[2])
            self.assertIn("nothing is attached", said[3])


if __name__ == "__main__":
    TOOLS = pathlib.Path(sys.argv.pop(1)).resolve()
    if sys.argv[1:2] == ["long"]:
        LONG = True
        sys.argv.pop(1)
    unittest.main()
