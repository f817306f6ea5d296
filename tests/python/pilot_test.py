"""Tests of python -m hipress.pilot: trainings under several plans, and the steps that these need for the loss of plain DDP."""

import logging
import pathlib
import random
import signal
import statistics
import subprocess
import sys
import tempfile
import time
import unittest
import warnings

import hipress
import ranks
from hipress import _pilot, _pilot_file, _steps_ratio

#: Script that learns classes of synthetic data, with or without DistributedDataParallel.
TRAIN = """
import sys, torch, hipress
torch.set_num_threads(1)
torch.manual_seed(3)
model = torch.nn.Sequential(torch.nn.Linear(24, 64), torch.nn.ReLU(), torch.nn.Linear(64, 64), torch.nn.Tanh(),
                            torch.nn.Linear(64, 5))
{wrap}
optimizer = torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9)
for number in range({first}, {batches}, {ranks}):
    values = torch.randn(16, 24, generator=torch.Generator().manual_seed(1000 + number))
    optimizer.zero_grad()
    loss = torch.nn.functional.cross_entropy(model(values), values[:, :5].argmax(dim=1))
    loss.backward()
    optimizer.step()
with torch.no_grad():
    hipress.pilot.report(sum(float(one.double().pow(3).sum()) for one in model.parameters()), held_out=True)
"""
DDP = """
import torch.distributed as dist
dist.init_process_group("gloo")
model = torch.nn.parallel.DistributedDataParallel(model)
"""
#: Script that accumulates two batches, clips the mean, and lowers the learning rate with every step and every quarter of the data.
ACCUMULATES = """
import torch, hipress
torch.set_num_threads(1)
torch.manual_seed(3)
model = torch.nn.Linear(6, 3)
optimizer = torch.optim.SGD(model.parameters(), lr=0.5)
of_steps, of_parts = (torch.optim.lr_scheduler.ExponentialLR(optimizer, gamma) for gamma in (0.9, 0.8))
generator = torch.Generator().manual_seed(5)
for part in range(4):
    for _ in range(6):
        optimizer.zero_grad()
        for _ in range(2):
            (model(torch.randn(4, 6, generator=generator)) - 1).pow(2).mean().backward()
        torch.nn.utils.clip_grad_norm_(model.parameters(), 0.3)
        optimizer.step()
        of_steps.step()
    of_parts.step()
hipress.pilot.report(model.weight.double().sum(), held_out=True)
"""
#: Scripts that cannot be piloted, with the message for each; HEAD comes before them.
HEAD = """
import torch, hipress, random, time
model, other = torch.nn.Linear(4, 3), torch.nn.Linear(3, 1)
optimizer, second = (torch.optim.SGD(one.parameters(), lr=0.01) for one in (model, other))
"""
REFUSED = {
    "no loss": ("no loss was found: backward\\(\\) was called for a tensor of shape \\[2, 3\\].*hipress.pilot.report", """
for _ in range(40):
    model(torch.ones(2, 4)).backward(torch.ones(2, 3))
    optimizer.step()
"""),
    "another order": ("two runs of none with seed 1 differ by more than rounding: in step 1.*seed what shuffles", """
source = random.Random(time.time_ns())
for _ in range(40):
    optimizer.zero_grad()
    model(torch.ones(2, 4) * source.random()).pow(2).sum().backward()
    optimizer.step()
"""),
    "few steps": ("ended after 9 steps of the 10 .*each of 2 passes.*--steps 9", """
for _ in range(19):
    optimizer.zero_grad()
    model(torch.ones(2, 4)).pow(2).sum().backward()
    optimizer.step()
"""),
    "in turn": ("optimizers take their steps in turn", """
for _ in range(40):
    model(torch.ones(2, 4)).pow(2).sum().backward()
    optimizer.step()
    other(torch.ones(2, 3)).pow(2).sum().backward()
    second.step()
"""),
    "reported too seldom": ("report\\(\\) was called 1 times in 2 steps of the script: call it once per step", """
for number in range(40):
    optimizer.zero_grad()
    model(torch.ones(2, 4)).pow(2).sum().backward()
    optimizer.step()
    if number % 2:
        hipress.pilot.report(1 / (1 + number))
"""),
}


def setUpModule() -> None:
    ranks.require_torch()


def pilot(folder: str, script: str, *, name: str = "train.py", **options):
    """Pilots a script given as text. Returns the document that it wrote."""
    (pathlib.Path(folder) / name).write_text(script)
    return hipress.pilot(str(pathlib.Path(folder) / name), output=pathlib.Path(folder) / f"{name}.yaml", **options)


def runs(document) -> dict:
    return {(row["plan"], row["seed"]): row for row in document["plans"]}


def curve(steps: int, ratio: float = 1.0, noise: float = 0.0, seed: int = 0) -> list:
    """Makes losses that fall as 1 + 3 / (1 + steps / 20), `ratio` times as slowly, with noise."""
    source = random.Random(seed)
    return [1 + 3 / (1 + step / ratio / 20) + noise * source.gauss(0, 1) for step in range(1, steps + 1)]


class Ratios(unittest.TestCase):
    def test_smoothing_keeps_lines_and_halves_noise(self):
        line = [5 - 0.25 * step for step in range(40)]
        for one, other in zip(line, _steps_ratio.smoothed(line)):
            self.assertAlmostEqual(one, other, places=10)
        # The middle of a line fitted to a window of 2·40+1 values has the variance of their mean, 1/81.
        noise = curve(400, noise=1.0, seed=3)
        middle = [one - other for one, other in zip(_steps_ratio.smoothed(noise)[50:350], curve(400)[50:350])]
        self.assertLess((sum(one * one for one in middle) / len(middle)) ** 0.5, 3 / 81 ** 0.5)

    def test_the_ratio_is_that_of_the_curves(self):
        for ratio in (0.8, 1.0, 1.02, 1.5, 2.5):
            found = _steps_ratio.of_curves(curve(300), curve(300, ratio))
            self.assertAlmostEqual(found.ratio / ratio, 1, delta=0.01)
            self.assertLessEqual(found.p10, found.ratio)
            self.assertGreaterEqual(found.p90, found.ratio)
            # The plan has 300 steps, so it reaches the loss of at most 300 / r of DDP's steps.
            self.assertLessEqual(found.after, 300 / ratio + 3)

    def test_noise_moves_it_little(self):
        for seed in range(5):
            found = _steps_ratio.of_curves(curve(300, noise=0.05, seed=seed), curve(300, 2.0, noise=0.05, seed=100 + seed))
            self.assertAlmostEqual(found.ratio / 2, 1, delta=0.08)

    def test_never_is_an_answer(self):
        # The plan ends at the loss that DDP has after 300 / 12 = 25 steps, less than a tenth of DDP's steps.
        self.assertIsNone(_steps_ratio.of_curves(curve(300), curve(300, 12)).ratio)
        self.assertIsNone(_steps_ratio.of_curves(curve(300), [4.0] * 300).ratio)
        self.assertIsNone(_steps_ratio.of_curves(curve(300), []).ratio)

    def test_seeds_give_an_interval(self):
        of = [_steps_ratio.Ratio(ratio, ratio, ratio, 100.0) for ratio in (1.0, 1.21)]
        found = _steps_ratio.over_seeds(of)
        # The geometric mean is 1.1. The logarithms' standard deviation is √2·log 1.1; the half width is 3.078·√1.5 times that.
        half = 1.1 ** (3.078 * 2 ** 0.5 * 1.5 ** 0.5)
        self.assertAlmostEqual(found.ratio, 1.1)
        self.assertAlmostEqual(found.p90, 1.1 * half)
        self.assertAlmostEqual(found.p10, 1.1 / half)
        never = _steps_ratio.Ratio(None, None, None, None)
        self.assertIsNone(_steps_ratio.over_seeds([*of, never]).p90)
        self.assertIsNone(_steps_ratio.over_seeds([of[0], never]).ratio)

    def test_divergence(self):
        def ends_after(losses) -> int:
            divergence = _steps_ratio.Divergence(100)
            return next((step for step, loss in enumerate(losses, 1) if divergence.add(loss)), 0)

        self.assertEqual(ends_after([2.0, 1.5, float("nan")]), 3)
        self.assertEqual(ends_after([2.0, float("inf")]), 2)
        self.assertEqual(ends_after(curve(100)), 0)
        # A temporary rise of 15 steps does not count: it must last for 20.
        self.assertEqual(ends_after([2.0] * 10 + [3.0] * 15 + [1.0] * 75), 0)
        # From the second step at 3 on, the mean of the last five, 2.4, is above 2 · 1.1. It must stay so for 20 steps.
        self.assertEqual(ends_after([2.0] * 10 + [3.0] * 90), 10 + 2 + 20 - 1)

    def test_ratios_are_told_in_words(self):
        rows = [{"plan": "fp16", "ratio": 1.0, "p10": 0.99, "p90": 1.01, "after": 150.0, "runs": 3},
                {"plan": "onebit", "ratio": 2.21, "p10": 2.1, "after": 68.0, "runs": 3},
                {"plan": "x.yaml", "ratio": "never", "runs": 3}]
        self.assertEqual(_pilot.summary({"ratios": rows}), (
            "fp16: 1.00 (0.99 to 1.01) times the steps of none, after 150 of them",
            "onebit: 2.21 (from 2.10) times the steps of none, after 68 of them",
            "x.yaml: never reaches the loss of none within the pilot"))

    def test_plans_have_commas_of_their_own(self):
        self.assertEqual(_pilot.plans_of("fp16, int8block(block=64, x=1),none,,fp16,plan.yaml"),
                         ["none", "fp16", "int8block(block=64, x=1)", "plan.yaml"])

    def test_the_noise_scale_is_that_of_made_gradients(self):
        from hipress import _piloted

        # |G|² is 4, and the variances of a batch's 8 elements sum up to 8·9 = 72. So the noise scale is 18 batches.
        source, steps, ranks_ = random.Random(7), 4000, 4
        norms = []
        for _ in range(steps):
            of_ranks = [[(2.0 if place == 0 else 0.0) + source.gauss(0, 3) for place in range(8)] for _ in range(ranks_)]
            mean = [sum(parts) / ranks_ for parts in zip(*of_ranks)]
            norms.append([sum(one * one for rank in of_ranks for one in rank) / ranks_, sum(one * one for one in mean)])
        self.assertAlmostEqual(_piloted.noise_scale(norms, ranks_), 18, delta=2)


def averaged_over_tcp(rank: int, plans: list, steps: int) -> dict:
    """Trains under a hook, with ranks that are processes over tcp. Returns the applied gradients of the last step, by plan."""
    import torch
    import torch.distributed as dist

    found = {}
    for plan in plans:
        module = ranks.network()
        ddp = ranks.wrapped(module)
        attached = hipress.attach(ddp, plan=plan, seed=1)
        for step in range(steps):
            ddp.zero_grad()
            values, classes = ranks.data(rank, step)
            torch.nn.functional.cross_entropy(ddp(values), classes).backward()
        found[plan] = [one.grad.clone() for one in module.parameters()]
        dist.barrier()
        attached.close()
    return found


class Bits(unittest.TestCase):
    def test_ranks_of_one_process_have_the_bits_of_processes(self):
        import torch
        import training_test
        from hipress import _piloted
        from hipress._library import Gradient

        plans, steps = list(training_test.ALGORITHMS), 2
        for count in (2, 4):
            over_tcp = ranks.run(count, averaged_over_tcp, plans, steps)[0]
            module = ranks.network()
            named = list(reversed(list(module.named_parameters())))
            for plan in plans:
                averager = _piloted.Averager([Gradient(name, tuple(one.shape)) for name, one in named], count, plan, 1)
                for step in range(steps):
                    buffers = []
                    for rank in range(count):
                        module.zero_grad()
                        values, classes = ranks.data(rank, step)
                        torch.nn.functional.cross_entropy(module(values), classes).backward()
                        buffers.append([one.grad.clone() for _, one in named])
                    averager.average(buffers)
                for (name, _), mine, theirs in zip(named, buffers[0], reversed(over_tcp[plan])):
                    self.assertTrue(torch.equal(mine, theirs), f"{plan}, {count} ranks, {name}")


def held_back(rank: int, plan: str) -> list:
    """Returns residuals by name after each of three steps: from statistics(), and from the gradients that were not applied."""
    import torch

    module = ranks.network()
    ddp = ranks.wrapped(module)
    attached = hipress.attach(ddp, plan=plan)
    found, left = [], {name: torch.zeros_like(one) for name, one in module.named_parameters()}
    for step in range(3):
        own = ranks.network()
        values, classes = ranks.data(rank, step)
        torch.nn.functional.cross_entropy(own(values), classes).backward()
        ddp.zero_grad()
        torch.nn.functional.cross_entropy(ddp(values), classes).backward()
        for (name, one), alone in zip(module.named_parameters(), own.parameters()):
            left[name] += alone.grad - one.grad
        found.append((attached.statistics(), {name: float(left[name].norm() / one.grad.norm())
                                              for name, one in module.named_parameters()}))
    attached.close()
    return found


class Statistics(unittest.TestCase):
    def test_they_are_of_what_is_not_applied_yet(self):
        # A single rank applies its own gradients, except what its encoders hold back.
        for found, expected in ranks.run(1, held_back, "onebit")[0]:
            self.assertEqual(found.keys(), expected.keys())
            for name, ratio in found.items():
                self.assertGreater(ratio, 0.1)
                self.assertAlmostEqual(ratio / expected[name], 1, places=3)
        for of_rank in ranks.run(2, held_back, "powersgd(rank=1)"):
            self.assertEqual(of_rank[-1][0].keys(), {"0.weight", "2.weight", "4.weight"})
            self.assertGreater(min(of_rank[-1][0].values()), 0.1)
        self.assertEqual(ranks.run(2, held_back, "none")[0][-1][0], {})


def told(rank: int, make, pilot, steps: int) -> tuple:
    """Trains. Returns log lines and warnings about residuals, and statistics() in every second step, at which lines are logged."""
    import torch

    lines: list = []
    handler = logging.Handler()
    handler.emit = lambda record: lines.append(record.getMessage())  # type: ignore[method-assign]
    logging.getLogger("hipress").addHandler(handler)
    logging.getLogger("hipress").setLevel(logging.INFO)
    held = []
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        model, optimizer, attached = make(pilot)
        for step in range(steps):
            optimizer.zero_grad()
            values, classes = ranks.data(rank, step)
            torch.nn.functional.cross_entropy(model(values), classes).backward()
            optimizer.step()
            held += [attached.statistics()] if step % 2 else []
        attached.close()
    return [line for line in lines if "residuals" in line], [str(one.message) for one in caught if "residual" in str(one.message)], held


def averaged(pilot):
    import torch

    ddp = ranks.wrapped(ranks.network())
    attached = hipress.attach(ddp, plan="onebit", pilot=pilot, log_every=2)
    return ddp, torch.optim.SGD(ddp.parameters(), lr=0.1), attached


def locally_updated(_pilot):
    import torch

    model = ranks.network()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    return model, optimizer, hipress.LocalUpdates(model, optimizer, plan="onebit", schedule="local(steps=2)", log_every=2)


def line_of(steps: int, held: dict) -> str:
    most = max(held, key=held.get)
    return (f"after {steps} steps residuals hold {statistics.median(held.values()):.3g} (median) and {held[most]:.3g} ('{most}', the "
            "most) times the norm of their gradients")


class ResidualLines(unittest.TestCase):
    def check_lines(self, found) -> dict:
        (lines, warned, held), others = found
        self.assertEqual(lines, [line_of(2, held[0]), line_of(4, held[1]), line_of(6, held[2])])
        self.assertEqual(others[:2], ([], []))
        self.assertEqual(warned, [])
        return held

    def test_lines_say_what_statistics_say(self):
        held = self.check_lines(ranks.run(2, told, averaged, None, 6))
        self.check_lines(ranks.run(2, told, locally_updated, None, 6))
        # Ranges are those in the pilot, 1.5 times as wide at both ends. Here all but 2.weight's contain the residuals.
        with tempfile.TemporaryDirectory() as folder:
            path = f"{folder}/pilot.yaml"
            rows = [{"plan": "onebit", "gradient": name, "step": step, "error": 0.5, "error_with_residual": 1.0, "norm": 1.0,
                     "residual": ratio * (0.01 if name == "2.weight" else 1)}
                    for step, of_step in enumerate(held, 1) for name, ratio in of_step.items()]
            document = {"schema": 1, "script": "x", "digest": "", "ranks": 2, "steps": 6, "seeds": 1, "repeat": None,
                        "plans": [{"plan": "onebit", "seed": 1, "diverged": False, "loss": [1.0], "held_out": []}], "errors": rows}
            _pilot_file.write(path, document)
            (_, warned, again), others = ranks.run(2, told, averaged, path, 6)
            self.assertEqual(again, held)
            of_2 = [0.01 * of_step["2.weight"] for of_step in held]
            self.assertEqual(others[1], [])
            self.assertEqual(len(warned), 1)
            self.assertIn(f"after 2 steps the residual of '2.weight' holds {held[0]['2.weight']:.3g} times the norm of its gradient, "
                          f"and in the pilot {min(of_2) / 1.5:.3g} to {max(of_2) * 1.5:.3g}", warned[0])

    def test_wrong_pilots_are_refused(self):
        with tempfile.TemporaryDirectory() as folder:
            path = f"{folder}/pilot.yaml"
            self.assertIn("pilot.yaml: there is no such file", ranks.run(2, refused_pilot, path, 1)[1])
            _pilot_file.write(path, {"schema": 1, "plans": []})
            for said in ranks.run(2, refused_pilot, path, 1):
                self.assertIn(f"has no run of onebit: pilot it, with --plans 'onebit' --output {path}", said)
            self.assertIn("log_every must be a whole number, at least 0, got -1", ranks.run(2, refused_pilot, None, -1)[0])


def refused_pilot(_rank: int, path, every: int) -> str:
    try:
        hipress.attach(ranks.wrapped(ranks.network()), plan="onebit", pilot=path, log_every=every)
    except hipress.InvalidRequest as error:
        return str(error)
    return "accepted"


class Pilots(unittest.TestCase):
    def test_turns_train_as_processes_do(self):
        plans = ["onebit"]
        with tempfile.TemporaryDirectory() as folder:
            turns = pilot(folder, TRAIN.format(wrap="", first=0, batches=48, ranks=1), name="turns.py", ranks=2, steps=24,
                          plans=plans)
            of_ranks = TRAIN.format(wrap=DDP, first="dist.get_rank()", batches=48, ranks="dist.get_world_size()")
            processes = pilot(folder, of_ranks, name="processes.py", ranks=2, steps=24, plans=plans)
            for key in ("plans", "ratios", "errors", "noise_scale", "repeat"):
                self.assertEqual(turns[key], processes[key], key)
            self.check_errors(turns)
            for row in turns["plans"]:
                self.assertEqual(len(row["loss"]), 24)
                self.assertEqual([one["step"] for one in row["held_out"]], [24])
            self.assertLess(runs(turns)["none", 1]["loss"][-1], runs(turns)["none", 1]["loss"][0])
            self.assertNotEqual(runs(turns)["none", 1]["held_out"], runs(turns)["onebit", 1]["held_out"])
            self.assertEqual(_pilot_file.read(pathlib.Path(folder) / "turns.py.yaml"), turns)

    def check_errors(self, document) -> None:
        rows = {(row["plan"], row["gradient"], row["step"]): row for row in document["errors"]}
        # The residual is zero in the first step, so the errors with and without it are equal.
        first = rows["onebit", "2.weight", 1]
        self.assertEqual(first["error"], first["error_with_residual"])
        self.assertGreater(first["residual"], 0.1)
        self.assertNotEqual(rows["onebit", "2.weight", 24]["error"], rows["onebit", "2.weight", 24]["error_with_residual"])
        # A sign and a mean magnitude leave out √(1 − 2/π) = 0.6 of the norm of normally distributed values.
        self.assertGreater(rows["onebit", "0.weight", 12]["error"], 0.3)
        self.assertEqual(sorted({step for _, _, step in rows}), [1, 3, 6, 12, 18, 24])

    def test_accumulation_clipping_and_schedules_are_of_steps(self):
        import torch

        with tempfile.TemporaryDirectory() as folder:
            document = pilot(folder, ACCUMULATES, ranks=2, steps=12, plans=[])
        # Trains the same in plain torch, with the batches of both ranks together.
        torch.manual_seed(3)
        model, generator, losses = torch.nn.Linear(6, 3), torch.Generator().manual_seed(5), []
        for step in range(12):
            parts = [(model(torch.randn(4, 6, generator=generator)) - 1).pow(2).mean() for _ in range(4)]
            losses.append(sum(map(float, parts)) / 4)
            model.zero_grad()
            (sum(parts) / 2).backward()
            torch.nn.utils.clip_grad_norm_(model.parameters(), 0.3)
            with torch.no_grad():
                for one in model.parameters():
                    one -= 0.5 * 0.9 ** step * 0.8 ** (step // 3) * one.grad
        for mine, other in zip(runs(document)["none", 1]["loss"], losses):
            self.assertAlmostEqual(mine, other, places=5)
        self.assertAlmostEqual(runs(document)["none", 1]["held_out"][0]["loss"], float(model.weight.double().sum()), places=5)

    def test_a_pilot_that_is_killed_resumes_to_the_same_file(self):
        script = TRAIN.format(wrap="", first=0, batches=24, ranks=1)
        with tempfile.TemporaryDirectory() as folder:
            whole = pilot(folder, script, ranks=2, steps=12, plans=[], seeds=2, jobs=2)
            expected = (pathlib.Path(folder) / "train.py.yaml").read_bytes()
            output = pathlib.Path(folder) / "killed.yaml"
            command = [sys.executable, "-B", "-m", "hipress.pilot", "--ranks", "2", "--steps", "12", "--plans", "none",
                       "--seeds", "2", "--output", str(output), str(pathlib.Path(folder) / "train.py")]
            process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
            end = time.monotonic() + ranks.DEADLINE_S
            while not output.exists() and time.monotonic() < end:
                time.sleep(0.01)
            process.send_signal(signal.SIGKILL)
            process.wait()
            kept = _pilot_file.read(output)
            self.assertGreaterEqual(len(kept["plans"]), 1)
            self.assertLess(len(kept["plans"]), len(whole["plans"]))
            done = subprocess.run(command, capture_output=True, text=True, check=False)
            self.assertEqual(done.returncode, 0, done.stderr)
            self.assertEqual(output.read_bytes(), expected)
            self.assertIn(f"wrote {output}", done.stdout)
            # The pilot's seeds shift those that the script sets. All runs are done now.
            self.assertNotEqual(runs(whole)["none", 1]["loss"], runs(whole)["none", 2]["loss"])
            self.assertNotIn("seed", subprocess.run(command, capture_output=True, text=True, check=True).stderr)
            other = subprocess.run([word.replace("12", "11") for word in command], capture_output=True, text=True, check=False)
            self.assertEqual(other.returncode, 2)
            self.assertIn("is of a pilot with steps 12, and this is of 11", other.stderr)

    def test_what_diverges_is_ended(self):
        # Uncompressed steps converge. Under onebit, small elements move by the mean magnitude of their sign, and diverge.
        script = """
import torch, hipress
weight = torch.nn.Parameter(torch.linspace(0, 1, 256) ** 8)
optimizer = torch.optim.SGD([weight], lr=0.5, momentum=0.9)
for _ in range(200):
    optimizer.zero_grad()
    (0.5 * weight.pow(2).sum()).backward()
    optimizer.step()
"""
        with tempfile.TemporaryDirectory() as folder:
            document = pilot(folder, script, ranks=2, steps=100, plans=["onebit"])
        self.assertFalse(runs(document)["none", 1]["diverged"])
        self.assertTrue(runs(document)["onebit", 1]["diverged"])
        self.assertLess(len(runs(document)["onebit", 1]["loss"]), 100)
        self.assertEqual(document["ratios"], [{"plan": "onebit", "ratio": "never", "runs": 1}])

    def test_scripts_that_cannot_be_piloted(self):
        with tempfile.TemporaryDirectory() as folder:
            for number, (what, (said, script)) in enumerate(REFUSED.items()):
                with self.subTest(what), self.assertRaisesRegex(hipress.InvalidRequest, said):
                    pilot(folder, HEAD + script, name=f"{number}.py", ranks=2, steps=10, plans=[])

    def test_wrong_requests(self):
        with tempfile.TemporaryDirectory() as folder:
            for options, said in (({"ranks": 1}, "ranks must be a whole number, at least 2"),
                                  ({"steps": 2}, "steps must be a whole number, at least 10"),
                                  ({"plans": ["onebyte"]}, "onebyte"),
                                  ({"plans": ["no.yaml"]}, "no.yaml: cannot be read")):
                with self.subTest(options), self.assertRaisesRegex(hipress.InvalidRequest, said):
                    pilot(folder, "", **{"ranks": 2, "steps": 10, "plans": [], **options})
            with self.assertRaisesRegex(hipress.Error, "(?s)plan none, seed 1: rank 0 ended with status 1.*ZeroDivisionError"):
                pilot(folder, "1 / 0", ranks=2, steps=10, plans=[])
            (pathlib.Path(folder) / "train.py.yaml").write_text("schema: 1\nmodel: x\n")
            with self.assertRaisesRegex(hipress.InvalidRequest, "train.py.yaml:2: is no file of a pilot"):
                pilot(folder, "", ranks=2, steps=10, plans=[])


if __name__ == "__main__":
    unittest.main()
