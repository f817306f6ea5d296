"""Tests how a capture finds steps: micro-steps, several calls, several backward passes. Only the tests advance the clock."""

import contextlib
import json
import os
import pathlib
import re
import subprocess
import tempfile
import unittest
from unittest import mock

import ranks

if ranks.MISSING is None:
    import hipress
    import torch
    from hipress import _own_time, _passes
    from torch.nn.parallel import DistributedDataParallel

FORWARD, BACKWARD, OPTIMIZER, BATCH = 0.010, 0.020, 0.003, 0.001


def setUpModule() -> None:
    ranks.require_torch()


class Clock:
    """Clock that only tests advance, in seconds."""

    on_cores = False

    def __init__(self):
        self.now = 0.0

    def mark(self) -> float:
        return self.now

    def seconds(self, first: float, second: float) -> float:
        return second - first


class CoreClock(Clock):
    """Clock of a process with two threads, which use 1.5 cores. A thread waits for a core as long as it runs."""

    on_cores = True

    def core_seconds(self, first: float, second: float) -> float:
        return 1.5 * (second - first)

    def waited(self, first: float, second: float) -> float:
        return second - first


class Passing(torch.autograd.Function if ranks.MISSING is None else object):
    """Identity whose backward takes a given time."""

    @staticmethod
    def forward(ctx, values, clock, seconds):
        ctx.clock, ctx.seconds = clock, seconds
        return values.clone()

    @staticmethod
    def backward(ctx, gradient):
        ctx.clock.now += ctx.seconds
        return gradient, None, None


class Timed(torch.nn.Module if ranks.MISSING is None else object):
    """Module with two layers, between which forward and backward take given times."""

    def __init__(self, clock, forward=FORWARD, backward=BACKWARD):
        super().__init__()
        self.clock, self.seconds = clock, (forward, backward)
        self.first, self.second = torch.nn.Linear(4, 3), torch.nn.Linear(3, 2)

    def forward(self, values):
        self.clock.now += self.seconds[0]
        return self.second(Passing.apply(self.first(values), self.clock, self.seconds[1]))


def timed_sgd(clock, parameters):
    class Sgd(torch.optim.SGD):
        def step(self, *arguments, **options):
            clock.now += OPTIMIZER
            return super().step(*arguments, **options)

    return Sgd(parameters, lr=0.01)


def facts(text: str) -> dict:
    found = {key: float(value) * 1e-6 for key, value in re.findall(r"(?m)^(forward|optimizer): ([\d.]+)us", text)}
    found["ready"] = {name: float(value) * 1e-6 for name, value in re.findall(r"- \{name: ([^,]+), .*?ready: ([\d.]+)us", text)}
    found["last"] = max(found["ready"].values())
    for key in ("micro_steps", "batch"):
        number = re.search(rf"(?m)^{key}: (\d+)", text)
        found[key] = int(number[1]) if number else None
    found["steps"] = int(re.search(r"Captured from (\d+) steps", text)[1])
    return found


class Steps(unittest.TestCase):
    def setUp(self):
        self.clock = Clock()
        self.model = Timed(self.clock)
        self.optimizer = timed_sgd(self.clock, self.model.parameters())

    def captured(self, train, module=None, **options):
        """Calls train() within a capture. Returns the values in the model file."""
        module = self.model if module is None else module
        capture = hipress.capture(module, None, **options)
        capture._clock = self.clock
        with capture:
            train()
        return facts(capture.text())

    def check(self, found, *, forward, last, optimizer, micro_steps):
        for key, value in (("forward", forward), ("last", last), ("optimizer", optimizer)):
            self.assertAlmostEqual(found[key], value, 7, key)
        self.assertEqual(found["micro_steps"], micro_steps)

    def micro_step(self, rows=8, retain_graph=None):
        loss = self.model(torch.randn(rows, 4)).sum()
        loss.backward(retain_graph=retain_graph)

    def step(self, micro_steps, rows=8):
        self.optimizer.zero_grad()
        for _ in range(micro_steps):
            self.clock.now += BATCH
            self.micro_step(rows)
        self.optimizer.step()

    def test_backward_passes_between_two_steps_are_micro_steps(self):
        # Fetching the first batch of a step counts as optimizer time. Fetching those of the other k - 1 micro-steps counts as
        # forward, of which each of the k micro-steps gets an equal part.
        for known in (True, False):
            for micro_steps in (1, 2, 5):
                with self.subTest(known=known, micro_steps=micro_steps):
                    found = self.captured(lambda: [self.step(micro_steps) for _ in range(6)],
                                          **({"optimizer": self.optimizer} if known else {}))
                    self.check(found, forward=FORWARD + BATCH * (micro_steps - 1) / micro_steps, last=BACKWARD,
                               optimizer=OPTIMIZER + BATCH, micro_steps=micro_steps)
                    whole = found["optimizer"] + micro_steps * (found["forward"] + found["last"])
                    self.assertAlmostEqual(whole, OPTIMIZER + micro_steps * (BATCH + FORWARD + BACKWARD), 7)
                    self.assertEqual(found["steps"], 4)

    def test_predictions_are_of_the_whole_step(self):
        tools = os.environ.get("HIPRESS_TOOLS")
        if not tools:
            self.skipTest("HIPRESS_TOOLS is not set")
        with tempfile.TemporaryDirectory() as folder:
            path = pathlib.Path(folder, "model.yaml")
            capture = hipress.capture(self.model, path, optimizer=self.optimizer)
            capture._clock = self.clock
            with capture:
                for _ in range(6):
                    self.step(4)
            done = subprocess.run([f"{tools}/hipress-sim", "--input", path, "--plan", "none", "--nnodes", "1", "--json"],
                                  capture_output=True, text=True, check=False)
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertAlmostEqual(json.loads(done.stdout)["iteration_s"], OPTIMIZER + 4 * (BATCH + FORWARD + BACKWARD), 7)

    def test_core_times_are_those_of_the_parts_of_a_step(self):
        self.clock = CoreClock()
        self.model = Timed(self.clock)
        self.optimizer = timed_sgd(self.clock, self.model.parameters())
        capture = hipress.capture(self.model, None, optimizer=self.optimizer)
        capture._clock = self.clock
        with capture:
            for _ in range(6):
                self.step(2)
        own = _own_time.OwnTime(2e-3, 1e-3)
        with mock.patch.object(_own_time, "measure", return_value=own), mock.patch("torch.get_num_threads", return_value=2):
            text = capture.text()
        found = facts(text)
        self.assertIn("\nthreads: 2  # for 50 % of these steps it waited for a core, which is left out\n", text)
        self.assertIn(f"\nforward_core_time: {1.5e6 * found['forward']:.1f}us\n", text)
        self.assertIn(f"\noptimizer_core_time: {1.5e6 * found['optimizer']:.1f}us\n", text)
        self.assertIn("\nhook: {backward: 2000.0us, after: 1000.0us}\n", text)
        times = re.findall(r"ready: ([\d.]+)us, shape: .*?, core_time: ([\d.]+)us", text)
        self.assertEqual(len(times), 4)
        self.assertAlmostEqual(sum(float(core) for _, core in times), 1.5 * max(float(ready) for ready, _ in times), delta=0.2)

    def test_steps_with_another_number_are_left_out(self):
        found = self.captured(lambda: [self.step(count) for count in (4, 4, 4, 4, 1, 4, 4, 1, 4)], optimizer=self.optimizer)
        self.check(found, forward=FORWARD + BATCH * 3 / 4, last=BACKWARD, optimizer=OPTIMIZER + BATCH, micro_steps=4)
        self.assertEqual(found["steps"], 5)

    def test_a_limit_is_of_steps_and_not_of_micro_steps(self):
        for micro_steps in (1, 4):
            found = self.captured(lambda: [self.step(micro_steps) for _ in range(9)], optimizer=self.optimizer, warmup=1, steps=3)
            self.assertEqual((found["steps"], found["micro_steps"]), (3, micro_steps))
            self.assertAlmostEqual(found["optimizer"], OPTIMIZER + BATCH, 7)

    def test_the_batch_is_the_most_frequent_one(self):
        found = self.captured(lambda: [self.step(1, rows) for rows in (16, 16, 16, 16, 16, 7)], optimizer=self.optimizer)
        self.assertEqual(found["batch"], 16)

    def test_two_calls_of_one_backward_are_one_forward(self):
        def train():
            for _ in range(5):
                self.optimizer.zero_grad()
                (self.model(torch.randn(8, 4)).sum() - self.model(torch.randn(8, 4)).sum()).backward()
                self.optimizer.step()

        # Backward goes through the layers twice, and completes each parameter's gradient once.
        self.check(self.captured(train), forward=2 * FORWARD, last=2 * BACKWARD, optimizer=OPTIMIZER, micro_steps=1)

    def test_one_call_of_two_backward_passes_is_two_micro_steps(self):
        def train():
            for _ in range(5):
                self.optimizer.zero_grad()
                loss = self.model(torch.randn(8, 4)).sum()
                loss.backward(retain_graph=True)
                loss.backward()
                self.optimizer.step()

        self.check(self.captured(train), forward=FORWARD / 2, last=BACKWARD, optimizer=OPTIMIZER, micro_steps=2)

    def test_backward_passes_of_different_parts_are_one(self):
        other = Timed(self.clock)
        both = torch.nn.ModuleList([self.model, other])
        optimizer = timed_sgd(self.clock, both.parameters())

        def train():
            for _ in range(5):
                optimizer.zero_grad()
                self.model(torch.randn(8, 4)).sum().backward()
                other(torch.randn(8, 4)).sum().backward()
                optimizer.step()

        found = self.captured(train, both, called=[self.model, other])
        self.check(found, forward=FORWARD, last=2 * BACKWARD + FORWARD, optimizer=OPTIMIZER, micro_steps=1)
        self.assertAlmostEqual(found["ready"]['"0.first.weight"'], BACKWARD, 7)

    def test_steps_that_are_skipped_count_for_nothing(self):
        def train():
            for _ in range(5):
                for applied in (False, True):  # every second step is applied, as with a loss scaler
                    self.optimizer.zero_grad()
                    self.micro_step()
                    if applied:
                        self.optimizer.step()

        found = self.captured(train, optimizer=self.optimizer)
        self.check(found, forward=FORWARD, last=BACKWARD, optimizer=OPTIMIZER + FORWARD + BACKWARD, micro_steps=1)

    def test_another_models_loss_is_not_a_micro_step(self):
        """The captured model is a discriminator, through which the generator's loss goes, too."""
        generator = torch.nn.Linear(3, 4)
        other = torch.optim.SGD(generator.parameters(), lr=0.01)

        def train():
            for _ in range(6):
                self.optimizer.zero_grad()
                self.model(torch.randn(8, 4)).sum().backward()
                self.model(generator(torch.randn(8, 3)).detach()).sum().backward()
                self.optimizer.step()
                other.zero_grad()
                self.model(generator(torch.randn(8, 3))).sum().backward()
                other.step()

        found = self.captured(train, optimizer=self.optimizer)
        self.check(found, forward=FORWARD, last=BACKWARD, optimizer=OPTIMIZER + FORWARD + BACKWARD, micro_steps=2)

    def test_gradients_of_inputs_are_no_backward_pass(self):
        def train():
            for _ in range(5):
                self.optimizer.zero_grad()
                values = torch.randn(8, 4, requires_grad=True)
                penalty, = torch.autograd.grad(self.model(values).sum(), values)
                (self.model(torch.randn(8, 4)).sum() + penalty.sum()).backward()
                self.optimizer.step()

        # Forward lasts until the last backward: two forward passes, and one backward.
        found = self.captured(train)
        self.check(found, forward=2 * FORWARD + BACKWARD, last=BACKWARD, optimizer=OPTIMIZER, micro_steps=1)

    def test_calls_whose_output_is_dropped_are_no_part_of_forward(self):
        def train():
            for _ in range(5):
                self.optimizer.zero_grad()
                self.model(torch.randn(8, 4)).detach()
                self.micro_step()
                self.optimizer.step()

        self.check(self.captured(train), forward=FORWARD, last=BACKWARD, optimizer=OPTIMIZER + FORWARD, micro_steps=1)

    def test_without_an_optimizer_each_backward_is_a_step(self):
        found = self.captured(lambda: [self.micro_step() for _ in range(5)])
        self.check(found, forward=FORWARD, last=BACKWARD, optimizer=0, micro_steps=1)
        self.assertEqual(found["steps"], 3)

    def test_the_closure_of_an_optimizer_is_not_its_step(self):
        def train():
            for _ in range(5):
                def closure():
                    self.optimizer.zero_grad()
                    loss = self.model(torch.randn(8, 4)).sum()
                    loss.backward()
                    return loss

                self.optimizer.step(closure)

        model, clock = self.model, self.clock

        class Sgd(torch.optim.SGD):
            def step(self, closure):
                super().step(closure)
                clock.now += OPTIMIZER

        self.optimizer = Sgd(model.parameters(), lr=0.01)
        capture = hipress.capture(model, None, optimizer=self.optimizer)
        capture._clock = clock
        with capture:
            train()
        self.check(facts(capture.text()), forward=FORWARD, last=BACKWARD, optimizer=OPTIMIZER, micro_steps=1)
        self.assertIn(f"step() alone {OPTIMIZER * 1e6:.1f}us", capture.text())

    def warned(self, train, module=None, **options):
        """Returns the values in the model file, and the messages, of a capture."""
        said = []
        return self.captured(train, module, say=said.append, **options), said

    def perturbed(self, move, first=contextlib.nullcontext):
        """Trains by sharpness-aware minimisation: applies the gradients of moved parameters to the old ones."""
        for _ in range(6):
            with first():
                self.micro_step()
            moves = [0.1 * parameter.grad for parameter in self.model.parameters()]
            for parameter, by in zip(self.model.parameters(), moves):
                move(parameter, by)
            self.optimizer.zero_grad()
            self.micro_step()
            for parameter, by in zip(self.model.parameters(), moves):
                move(parameter, -by)
            self.optimizer.step()
            self.optimizer.zero_grad()

    def test_parameters_that_move_within_a_step_do_not_end_it(self):
        @torch.no_grad()
        def seen(parameter, by):
            parameter.add_(by)

        def unseen(parameter, by):
            parameter.data.add_(by)

        found, said = self.warned(lambda: self.perturbed(seen), optimizer=self.optimizer)
        self.check(found, forward=FORWARD, last=BACKWARD, optimizer=OPTIMIZER, micro_steps=2)
        self.assertEqual(len(said), 1)
        self.assertIn("a step has 2 backward passes, and uses gradients after 2 of them", said[0])
        # If nothing shows that the first pass is used, it counts as optimizer time. The sum of the step's times is the same.
        found, said = self.warned(lambda: self.perturbed(unseen), optimizer=self.optimizer)
        self.check(found, forward=FORWARD, last=BACKWARD, optimizer=OPTIMIZER + FORWARD + BACKWARD, micro_steps=1)
        self.assertEqual(said, [])

    def test_evaluations_of_a_closure_are_micro_steps(self):
        clock = self.clock

        class Repeated(torch.optim.SGD):
            """Optimizer with three evaluations, between which the parameters move, like L-BFGS."""

            def step(self, closure):
                for _ in range(3):
                    closure()
                    with torch.no_grad():
                        [parameter.sub_(0.01 * parameter.grad) for parameter in self.param_groups[0]["params"]]
                clock.now += OPTIMIZER

        optimizer = Repeated(self.model.parameters(), lr=0.01)

        def closure():
            optimizer.zero_grad()
            loss = self.model(torch.randn(8, 4)).sum()
            loss.backward()
            return loss

        found, said = self.warned(lambda: [optimizer.step(closure) for _ in range(6)], optimizer=optimizer)
        self.check(found, forward=FORWARD, last=BACKWARD, optimizer=OPTIMIZER, micro_steps=3)
        self.assertIn("has 3 backward passes, and uses gradients after 3 of them", said[0])

    def two_parts(self):
        """Makes a model of two parts with an optimizer each."""
        both = torch.nn.ModuleList([self.model, Timed(self.clock)])
        return both, [timed_sgd(self.clock, part.parameters()) for part in both]

    def test_a_step_is_over_when_all_optimizers_have_taken_one(self):
        both, optimizers = self.two_parts()

        def train(first):
            for number in range(36):
                part = int(number % (first + 1) == first)  # `first` steps of the first optimizer, then one of the second
                optimizers[part].zero_grad()
                both[part](torch.randn(8, 4)).sum().backward()
                optimizers[part].step()

        # The second part's pass is joined with the one before it: 36 passes are 18 steps of two or 12 of three. The
        # first 2 steps are the warm-up.
        for first, steps in ((1, 16), (2, 10)):
            found, said = self.warned(lambda: train(first), both, called=list(both), optimizer=optimizers)
            self.assertEqual((found["micro_steps"], found["steps"]), (first, steps))
            self.assertEqual([one[:30].strip() for one in said], ["a step has 2 backward passes,"] if first == 2 else [])
            if first == 1:
                whole = found["optimizer"] + found["forward"] + found["last"]
                self.assertAlmostEqual(whole, 2 * (FORWARD + BACKWARD + OPTIMIZER), 7)

    def test_optimizers_that_end_or_begin_late_are_not_waited_for(self):
        both, optimizers = self.two_parts()

        def train():
            for number in range(24):
                both.zero_grad(set_to_none=True)
                (both[0](torch.randn(8, 4)).sum() + both[1](torch.randn(8, 4)).sum()).backward()
                optimizers[0].step() if number < 16 else None
                optimizers[1].step() if number >= 8 else None

        found = self.captured(train, both, called=list(both), optimizer=optimizers)
        # Each of 24 passes ends a step, but two passes may count as one where an optimizer begins or ends.
        self.assertEqual(found["micro_steps"], 1)
        self.assertGreaterEqual(found["steps"], 20)

    def test_without_an_optimizer_dropped_gradients_end_a_step(self):
        def train(drop):
            for _ in range(6):
                for _ in range(3):
                    self.micro_step()
                for parameter in self.model.parameters():
                    parameter.data.sub_(0.01 * parameter.grad.data)  # does not change the parameters' version
                drop()

        for drop in (lambda: self.model.zero_grad(set_to_none=True),
                     lambda: [parameter.grad.zero_() for parameter in self.model.parameters()]):
            found = self.captured(lambda: train(drop))
            self.check(found, forward=FORWARD, last=BACKWARD, optimizer=0, micro_steps=3)
            self.assertEqual(found["steps"], 4)

    def test_an_optimizer_of_copies_ends_steps(self):
        copies = [parameter.detach().clone() for parameter in self.model.parameters()]
        optimizer = timed_sgd(self.clock, copies)

        def train():
            for _ in range(6):
                self.model.zero_grad(set_to_none=True)
                for _ in range(2):
                    self.micro_step()
                for one, parameter in zip(copies, self.model.parameters()):
                    one.grad = parameter.grad
                optimizer.step()
                for one, parameter in zip(copies, self.model.parameters()):
                    parameter.data.copy_(one)

        self.check(self.captured(train, optimizer=optimizer), forward=FORWARD, last=BACKWARD, optimizer=OPTIMIZER, micro_steps=2)

    def test_parameters_that_the_loss_uses_are_ready_first(self):
        class Model(torch.nn.Module):
            def __init__(self, body):
                super().__init__()
                self.body, self.head = body, torch.nn.Linear(2, 5)

        model = Model(self.model)
        optimizer = timed_sgd(self.clock, model.parameters())

        def train():
            for _ in range(5):
                optimizer.zero_grad()
                torch.nn.functional.linear(self.model(torch.randn(8, 4)), model.head.weight, model.head.bias).sum().backward()
                optimizer.step()

        found = self.captured(train, model, called=[self.model], optimizer=optimizer)
        self.check(found, forward=FORWARD, last=BACKWARD, optimizer=OPTIMIZER, micro_steps=1)
        self.assertEqual([found["ready"][f"head.{kind}"] for kind in ("weight", "bias")], [0, 0])
        self.assertEqual(found["ready"]["body.first.weight"], BACKWARD)

    def test_parameters_that_only_the_optimizer_has_are_named(self):
        loose = torch.nn.Parameter(torch.zeros(3))
        optimizer = torch.optim.SGD([*self.model.parameters(), loose], lr=0.1)
        _, said = self.warned(lambda: [self.step(1) for _ in range(4)], optimizer=optimizer)
        self.assertEqual(len(said), 1)
        self.assertIn("the optimizer also trains 1 parameter (3 elements: without a name [3]) that the model does not have", said[0])

    def test_optimizers_within_backward(self):
        if not hasattr(torch.Tensor, "register_post_accumulate_grad_hook"):
            self.skipTest("this PyTorch has no hooks after gradients are accumulated")
        optimizers = {parameter: torch.optim.SGD([parameter], lr=0.01) for parameter in self.model.parameters()}

        def update(parameter):
            self.clock.now += OPTIMIZER
            optimizers[parameter].step()
            optimizers[parameter].zero_grad()

        for parameter in self.model.parameters():
            parameter.register_post_accumulate_grad_hook(update)
        for known in ({"optimizer": list(optimizers.values())}, {}):
            found, said = self.warned(lambda: [self.micro_step() for _ in range(6)], **known)
            # The last gradient is ready after BACKWARD and all four optimizers' steps.
            self.check(found, forward=FORWARD, last=BACKWARD + 4 * OPTIMIZER, optimizer=0, micro_steps=1)
            self.assertEqual((found["steps"], len(said)), (4, 1))
            self.assertIn("optimizers step within backward", said[0])

    def test_a_single_step_of_several_micro_steps(self):
        found = self.captured(lambda: self.step(3), warmup=0)
        self.assertEqual((found["micro_steps"], found["steps"]), (3, 1))

    def test_backward_that_fails_does_not_end_the_capture(self):
        def train():
            for number in range(8):
                self.optimizer.zero_grad()
                output = self.model(torch.randn(8, 4))
                if number == 3:
                    hook = self.model.second.weight.register_hook(lambda _: 1 / 0)
                    with contextlib.suppress(ZeroDivisionError, RuntimeError):
                        output.sum().backward()
                    hook.remove()
                else:
                    output.sum().backward()
                    self.optimizer.step()

        self.assertEqual(self.captured(train)["steps"], 5)


def accumulating(rank, micro_steps):
    """Accumulates gradients within no_sync() of DistributedDataParallel. Each collective takes 7 s, which must not be captured."""
    clock = Clock()
    all_reduce, met = torch.distributed.all_reduce, []

    def slow(*arguments, **options):
        clock.now += 7.0
        met.append(clock.now)
        return all_reduce(*arguments, **options)

    torch.distributed.all_reduce = slow
    ddp = DistributedDataParallel(Timed(clock))
    optimizer = timed_sgd(clock, ddp.parameters())
    capture = hipress.capture(ddp, None, optimizer=optimizer)
    capture._clock = clock
    with capture:
        for _ in range(5):
            optimizer.zero_grad()
            for number in range(micro_steps):
                with ddp.no_sync() if number < micro_steps - 1 else contextlib.nullcontext():
                    ddp(torch.ones(2, 4)).sum().backward()
            optimizer.step()
    return {**facts(capture.text()), "met": len(met)}


def apart(rank, hooked):
    """Trains a model with a buffer before, during and after a capture. Returns one gradient, and true if buffers were sent, for
    each step; the messages; and DDP's flags afterwards."""
    module = torch.nn.Sequential(torch.nn.Linear(3, 2, bias=False), torch.nn.BatchNorm1d(2))
    ddp = DistributedDataParallel(module)
    if hooked:
        ddp.register_comm_hook(None, lambda _, bucket: (
            torch.distributed.all_reduce(bucket.buffer().div_(2), async_op=True).get_future().then(lambda done: done.value()[0])))
    said, gradients = [], []

    def step():
        ddp.zero_grad()
        module[1].running_mean.fill_(rank)
        (ddp(torch.zeros(4, 3)).sum() * 0 + module[0].weight.sum() * 0 + (rank + 1) * sum(
            parameter.sum() for parameter in module.parameters())).backward()
        gradients.append([module[0].weight.grad[0, 0].item(), module[1].running_mean[0].item() < 0.5])

    step()
    capture = hipress.capture(ddp, None, warmup=0, say=said.append)
    with capture:
        for _ in range(3):
            step()
    step()
    return gradients, said, ddp.broadcast_buffers, ddp.require_backward_grad_sync


class Ranks(unittest.TestCase):
    def test_ranks_compute_apart_while_captured(self):
        for hooked in (False, True):
            for rank, (gradients, said, broadcast, sync) in enumerate(ranks.run(2, apart, hooked)):
                with self.subTest(hooked=hooked, rank=rank):
                    self.assertEqual([gradient for gradient, _ in gradients], [1.5, rank + 1, rank + 1, rank + 1, 1.5])
                    if rank == 1:  # forward brings rank 0's buffers, except during a capture
                        self.assertEqual([sent for _, sent in gradients], [True, False, False, False, True])
                    self.assertEqual((broadcast, sync), (True, True))
                    self.assertEqual(len(said), 1)
                    self.assertIn("the 2 ranks of this DistributedDataParallel do not average", said[0])
                    self.assertEqual("it has a communication hook" in said[0], hooked)

    def test_a_single_rank_is_left_alone(self):
        self.assertEqual(ranks.run(1, apart, False)[0][1], [])

    def test_micro_steps_of_ddp(self):
        for found, met in zip(ranks.run(1, accumulating, 3) + ranks.run(2, accumulating, 3), (0, 5, 5)):
            self.assertEqual((found["micro_steps"], found["steps"], found["met"]), (3, 3, met))
            for key, value in (("forward", FORWARD), ("last", BACKWARD), ("optimizer", OPTIMIZER)):
                self.assertAlmostEqual(found[key], value, 7, key)
            self.assertEqual(set(found["ready"]), {"first.weight", "first.bias", "second.weight", "second.bias"})


class Waits(unittest.TestCase):
    def test_a_gradient_is_later_by_the_waits_before_it_alone(self):
        # Waits last from 10 to 14 and from 20 to 26. A gradient at 5 comes before both; one at 15 is later by 4, and one at 30 by
        # 10. There is no wait between the last gradient, at 30, and the next call, at 45.
        done = _passes.Pass(0.0, 1, 0, 0)
        done.backward, done.waits = 0.0, [(10.0, 14.0), (20.0, 26.0)]
        done.ready, done.waits_before = {1: 5.0, 2: 15.0, 3: 30.0}, {1: 0, 2: 1, 3: 2}
        seconds = self.seconds
        self.assertEqual(done.ready_times(seconds), {1: 5.0, 2: 11.0, 3: 20.0})
        after = _passes.Pass(45.0, 1, 0, 0)
        self.assertEqual(done.until(after, seconds), 15.0)
        # Without the last gradient, the second wait lies between the gradient at 15 and the next call.
        del done.ready[3]
        self.assertEqual(done.until(after, seconds), 24.0)

    @staticmethod
    def seconds(first: float, second: float) -> float:
        return second - first


if __name__ == "__main__":
    unittest.main()
