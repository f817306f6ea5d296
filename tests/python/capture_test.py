"""Tests of captured models: their files, and the tools that read them."""

import collections
import copy
import dataclasses
import gc
import os
import pathlib
import pickle
import re
import subprocess
import sys
import tempfile
import time
import unittest
import warnings
from unittest import mock

import ranks

if ranks.MISSING is None:
    import hipress
    import torch
    from hipress import _memory, _model_file
    from torch.nn.parallel import DistributedDataParallel

SCRIPT = """
import sys, torch
torch.manual_seed(0)
model = torch.nn.Sequential(torch.nn.Linear(20, 30), torch.nn.ReLU(), torch.nn.Linear(30, 4))
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
loss_of = torch.nn.CrossEntropyLoss()
for step in range(int(sys.argv[1])):
    optimizer.zero_grad()
    loss_of(model(torch.randn(16, 20)), torch.randint(4, (16,))).backward()
    optimizer.step()
"""


def wide_model():
    """Makes a model with gradients of 0.7 and 1.4 MiB, and of a few bytes."""
    torch.manual_seed(0)
    return torch.nn.Sequential(torch.nn.Linear(600, 300), torch.nn.ReLU(), torch.nn.Linear(300, 600), torch.nn.ReLU(),
                               torch.nn.Linear(600, 600), torch.nn.ReLU(), torch.nn.Linear(600, 4))


def bucket_bytes(_rank, bucket_mb: float) -> list:
    """Returns the sizes in bytes of the buckets that DDP has rebuilt after its first step."""
    ddp = DistributedDataParallel(wide_model(), bucket_cap_mb=bucket_mb)
    ddp._set_ddp_runtime_logging_sample_rate(1)
    for _ in range(3):
        ddp(torch.ones(2, 600)).sum().backward()
    return [int(size) for size in ddp._get_ddp_logging_data()["rebuilt_bucket_sizes"].split(",")]


def names_of(_rank, compiled_inside: bool, compiled_outside: bool = False):
    """Returns the parameters' names in a captured model, and the names that attach() uses."""
    module = torch.nn.Linear(3, 3)
    ddp = DistributedDataParallel(torch.compile(module, backend="eager") if compiled_inside else module)
    called = torch.compile(ddp, backend="eager") if compiled_outside and hasattr(torch, "compile") else ddp
    capture = hipress.capture(called, None)
    with capture:
        for _ in range(3):
            called(torch.ones(1, 3)).sum().backward()
    return set(re.findall(r"- \{name: ([\w.]+)", capture.text())), {name for name, _ in ddp.module.named_parameters()}


def setUpModule() -> None:
    ranks.require_torch()


class Slow(torch.autograd.Function if ranks.MISSING is None else object):
    """Identity whose backward takes at least 20 ms."""

    @staticmethod
    def forward(ctx, values):
        return values.clone()

    @staticmethod
    def backward(ctx, gradient):
        import time
        time.sleep(0.02)
        return gradient


class Captured(unittest.TestCase):
    def setUp(self):
        self.folder = tempfile.TemporaryDirectory()
        self.addCleanup(self.folder.cleanup)
        self.path = pathlib.Path(self.folder.name, "model.yaml")

    def test_times_are_those_of_backward(self):
        first, second = torch.nn.Linear(8, 8), torch.nn.Linear(8, 2)

        class Model(torch.nn.Module):
            def __init__(self):
                super().__init__()
                self.first, self.second, self.unused = first, second, torch.nn.Linear(2, 2)

            def forward(self, values):
                return self.second(Slow.apply(self.first(values)))

        model = Model()
        optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
        with hipress.capture(model, self.path, optimizer=optimizer):
            for _ in range(4):
                optimizer.zero_grad()
                time.sleep(0.02)
                model(torch.ones(5, 8)).sum().backward()
                optimizer.step()
        text = self.path.read_text()
        times = {name: float(ready) * 1e-6 for name, ready in re.findall(r"- \{name: ([\w.]+), .*ready: ([\d.]+)us", text)}
        self.assertEqual(set(times), {name for name, _ in model.named_parameters()})
        # Backward reaches the second layer before the sleep of 20 ms, and the first layer after it.
        names = list(times)
        self.assertLess(max(names.index(f"second.{kind}") for kind in ("weight", "bias")),
                        min(names.index(f"first.{kind}") for kind in ("weight", "bias")))
        self.assertGreaterEqual(times["first.weight"] - times["second.weight"], 0.019)
        self.assertIn("# without a gradient in these steps: unused.weight", text)
        self.assertIn("batch: 5\n", text)
        between, alone = map(float, re.search(r"^optimizer: ([\d.]+)us  # .*; step\(\) alone ([\d.]+)us$", text, re.MULTILINE).groups())
        self.assertGreaterEqual(between, 20000 + alone)
        self.assertIn("shape: [2, 8]", text)
        self.assertNotIn("_on_ready", str(model._forward_pre_hooks))
        self.assertNotIn("step", vars(optimizer))

    def test_buckets_are_those_of_ddp(self):
        for bucket_mb in (0.5, 1, 2.5, 25):
            model = wide_model()
            with hipress.capture(model, self.path, bucket_mb=bucket_mb):
                for _ in range(3):
                    model(torch.ones(2, 600)).sum().backward()
            sizes = {}
            for elements, bucket in re.findall(r"elements: (\d+), .*bucket: (\d+)", self.path.read_text()):
                sizes[int(bucket)] = sizes.get(int(bucket), 0) + 4 * int(elements)
            self.assertEqual([sizes[bucket] for bucket in range(len(sizes))], ranks.run(1, bucket_bytes, bucket_mb)[0])
            times = _model_file.ready_times(self.path)
            self.assertLessEqual(len(set(times.values())), len(sizes))

    def test_numbers_out_of_range_are_errors(self):
        model = wide_model()
        for option, values in (("bucket_mb", (0, -1, float("nan"), float("inf"), 1e300, "1", None, True)),
                               ("warmup", (-1, 1.5, "2", None, float("nan"))), ("steps", (0, -3, 2.0, "9", True)),
                               ("batch", (0, -1, 1.0, "8"))):
            for value in values:
                with self.subTest(option=option, value=value), \
                        self.assertRaisesRegex(ValueError, re.escape(f"{option} must be a ") + ".*" + re.escape(f", got {value!r}")):
                    hipress.capture(model, self.path, **{option: value})

    def test_an_output_that_cannot_be_written_is_an_error_at_once(self):
        folder = pathlib.Path(self.folder.name)
        for output, reason in ((folder, "is a folder"), (f"{folder}/no/model.yaml", "No such file or directory"), ("", "is a folder"),
                               (folder / ("x" * 256), "File name too long"), (f"{__file__}/model.yaml", "Not a directory"),
                               (f"{folder}/\0", "null")):
            with self.subTest(output=output), self.assertRaisesRegex(ValueError, f"output .*{reason}"):
                hipress.capture(wide_model(), output)
        self.assertEqual(list(folder.iterdir()), [])
        hipress.capture(wide_model(), os.devnull)

    def test_gradients_of_a_bucket_are_ready_with_the_last_of_them(self):
        self.path.write_text("name: x\ngradients:\n- {name: a, elements: 4, ready: 5us, bucket: 0}  # 4us to 6us\n"
                             "- {name: b, elements: 4, ready: 1ms, bucket: 1}\n- {name: c, elements: 4, ready: 7us, bucket: 0}\n"
                             "- {name: d, elements: 4, ready: 2us}\n")
        self.assertEqual(_model_file.ready_times(self.path), {"a": 7e-6, "b": 1e-3, "c": 7e-6, "d": 2e-6})

    def test_hooks_are_gone_and_nothing_is_written_after_an_error(self):
        model = torch.nn.Linear(3, 3)
        with self.assertRaisesRegex(RuntimeError, "mine"):
            with hipress.capture(model, self.path):
                raise RuntimeError("mine")
        self.assertFalse(self.path.exists())
        self.assertFalse(model._forward_hooks)

    def test_of_one_step_only_the_optimizer_is_known_of_what_follows(self):
        model = torch.nn.Linear(3, 3)
        optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
        for known, line in ((optimizer, r"(?m)^optimizer: [\d.]+us  # [^;]*$"), (None, r"^(?![\s\S]*optimizer)")):
            with hipress.capture(model, self.path, optimizer=known, warmup=0):
                model(torch.ones(1, 3)).sum().backward()
                optimizer.step()
            self.assertRegex(self.path.read_text(), line)

    def test_only_the_first_rank_of_a_launcher_writes(self):
        script = pathlib.Path(self.folder.name, "train.py")
        script.write_text(SCRIPT)
        for rank, written in (("1", False), ("0", True)):
            subprocess.run([sys.executable, "-B", "-m", "hipress.capture", "--output", self.path, script, "6"],
                           env={**os.environ, "RANK": rank}, capture_output=True, check=True)
            self.assertEqual(self.path.exists(), written)

    def test_tensors_are_found_in_any_output(self):
        class Slotted:
            __slots__ = ("values",)

            def __init__(self, values):
                self.values = values

        class Plain:
            def __init__(self, values):
                self.own, self.name = {"values": [values]}, "plain"
                self.itself = self

        for wrap, values in ((dataclasses.make_dataclass("Output", ["values", "loss"], frozen=True), None),
                             (collections.namedtuple("Output", ["values", "loss"]), None),
                             (lambda values, _: collections.UserDict(values=values), None), (lambda values, _: Slotted(values), None),
                             (lambda values, _: Plain(values), None), (lambda values, _: [{"values": (values,)}], None)):
            model, found = torch.nn.Linear(3, 3), []
            model.register_forward_hook(lambda _module, _inputs, output, wrap=wrap, found=found: found.append(output) or
                                        wrap(output, None))
            with hipress.capture(model, self.path):
                for _ in range(4):
                    model(torch.ones(1, 3))
                    found.pop().sum().backward()
            self.assertIn("Captured from 2 steps", self.path.read_text())

    def test_a_beginning_that_is_not_seen_has_its_true_reason(self):
        def run(wrap, backward=True):
            class Model(torch.nn.Linear):
                def forward(self, values):
                    self.output = super().forward(values)
                    return wrap(self.output)

            model = Model(3, 3)
            with hipress.capture(model, self.path):
                for _ in range(4):
                    model(torch.ones(1, 3))
                    if backward:
                        model.output.sum().backward()

        for wrap, backward, reason in (
                (lambda output: lambda: output, True, "no tensor was found in the output of type function of the model"),
                (lambda output: output.detach(), True, "no tensor in the output of type Tensor of the model requires a gradient"),
                (lambda output: output, False, "backward did not reach the model's output of type Tensor"),
                (lambda output: output * 2, True, "backward did not reach the model's output of type Tensor")):
            with self.assertRaisesRegex(ValueError, reason):
                run(wrap, backward)
        with self.assertRaisesRegex(ValueError, "the model was not called while gradients are recorded"):
            with hipress.capture(torch.nn.Linear(2, 2), self.path):
                pass

    def test_copies_of_a_captured_model_are_plain(self):
        model = torch.nn.Linear(3, 3)
        capture = hipress.capture(model, None)
        with capture:
            for number in range(5):
                model(torch.ones(1, 3)).sum().backward()
                copies = [copy.deepcopy(model), pickle.loads(pickle.dumps(model))]
                for one in copies:
                    one(torch.ones(2, 3)).sum().backward()
        self.assertEqual(len(capture._passes), 5)
        self.assertIn("batch: 1\n", capture.text())

    def test_schedules_of_the_learning_rate_are_left_alone(self):
        model = torch.nn.Linear(3, 3)
        optimizer = torch.optim.SGD(model.parameters(), lr=1.0)
        before = torch.optim.lr_scheduler.ExponentialLR(optimizer, 0.5)
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            with hipress.capture(model, self.path, optimizer=optimizer):
                after = torch.optim.lr_scheduler.ExponentialLR(optimizer, 0.5)
                for _ in range(4):
                    model(torch.ones(1, 3)).sum().backward()
                    optimizer.step()
                    before.step()
                    after.step()
            model(torch.ones(1, 3)).sum().backward()
            optimizer.step()
            before.step()
        self.assertAlmostEqual(optimizer.param_groups[0]["lr"], 0.5 ** 9)
        self.assertRegex(self.path.read_text(), r"step\(\) alone")

    def test_names_are_those_that_attach_uses(self):
        for compiled, names in ((False, {"weight", "bias"}), (True, {"_orig_mod.weight", "_orig_mod.bias"})):
            if compiled and not hasattr(torch, "compile"):
                continue
            for found, expected in ranks.run(1, names_of, compiled):
                self.assertEqual((found, expected), (names, names))
        self.assertEqual(ranks.run(1, names_of, False, True)[0][0], {"weight", "bias"})

    def test_forked_workers_may_collect_garbage_after_a_capture(self):
        gc.disable()
        self.addCleanup(gc.enable)
        model = torch.nn.Linear(3, 3)
        with hipress.capture(model, self.path):
            for _ in range(3):
                model(torch.ones(1, 3)).sum().backward()
        # If the garbage had a process group, it would wait for threads that the worker does not have.
        self.assertEqual(ranks.run(1, lambda _rank: gc.collect() >= 0), [True])

    def test_a_compiled_function_that_calls_the_model(self):
        if not hasattr(torch, "compile"):
            self.skipTest("this PyTorch does not compile")
        for compiled_before in (True, False):
            model = torch.nn.Sequential(torch.nn.Linear(4, 4), torch.nn.ReLU(), torch.nn.Linear(4, 2))
            optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
            loss = torch.compile(lambda inputs: model(inputs).square().sum(), backend="eager")  # noqa: B023

            def step():
                optimizer.zero_grad()  # noqa: B023
                loss(torch.ones(3, 4)).backward()  # noqa: B023
                optimizer.step()  # noqa: B023

            if compiled_before:
                step()
            with hipress.capture(model, None, optimizer=optimizer) as capture:
                for _ in range(5):
                    step()
            self.assertIn("elements: 16", capture.text())
            self.assertIn("batch: 3", capture.text())

    def test_a_whole_graph_is_told_why_it_breaks(self):
        if not hasattr(torch, "compile"):
            self.skipTest("this PyTorch does not compile")
        model, said = torch.nn.Linear(4, 2), []
        loss = torch.compile(lambda inputs: model(inputs).sum(), backend="eager", fullgraph=True)
        with self.assertRaises(Exception), hipress.capture(model, None, say=said.append):
            loss(torch.ones(3, 4))
        self.assertIn("compile that with fullgraph=False", said[0])

    def test_a_module_that_compiles_itself(self):
        if not hasattr(torch.nn.Module, "compile"):
            self.skipTest("this PyTorch does not compile modules")
        model = torch.nn.Linear(3, 3)
        model.compile(backend="eager")
        compiled = model._compiled_call_impl
        with hipress.capture(model, self.path):
            for _ in range(4):
                model(torch.ones(1, 3)).sum().backward()
        self.assertIs(model._compiled_call_impl, compiled)
        self.assertIn("Captured from 2 steps", self.path.read_text())

    def test_too_few_steps_are_an_error(self):
        model = torch.nn.Linear(3, 3)
        with self.assertRaisesRegex(ValueError, "run more steps"):
            with hipress.capture(model, self.path):
                model(torch.ones(1, 3)).sum().backward()
        self.assertFalse(self.path.exists())

    def test_a_script_is_captured_as_it_is_and_planned_for(self):
        script = pathlib.Path(self.folder.name, "train.py")
        script.write_text(SCRIPT)
        done = subprocess.run([sys.executable, "-B", "-m", "hipress.capture", "--output", self.path, script, "6"],
                              capture_output=True, text=True, check=False)
        self.assertEqual((done.returncode, done.stderr), (0, f"hipress.capture: wrote {self.path}\n"))
        text = self.path.read_text()
        self.assertEqual(len(re.findall(r"^- \{name: ", text, re.MULTILINE)), 4)
        self.assertRegex(text, r"(?m)^optimizer: .*; step\(\) alone ")
        tools = os.environ.get("HIPRESS_TOOLS")
        if not tools:
            return
        planned = subprocess.run([f"{tools}/hipress-plan", "--input", self.path, "--nnodes", "2", "--output",
                                  self.path.with_name("plan.yaml"), "--json"], capture_output=True, text=True, check=False)
        self.assertEqual(planned.returncode, 0, planned.stderr)

    def test_a_script_that_trains_nothing(self):
        script = pathlib.Path(self.folder.name, "train.py")
        script.write_text("print('nothing')")
        done = subprocess.run([sys.executable, "-B", "-m", "hipress.capture", "--output", self.path, script],
                              capture_output=True, text=True, check=False)
        self.assertEqual(done.returncode, 1)
        self.assertIn("trained no model", done.stderr)

    def test_a_file_of_another_form_is_an_error_with_its_line(self):
        self.path.write_text("name: x\ngradients:\n- {name: a, elements: 4, ready: 5us}\n- {name: b, elements: 3, raedy: 1us}\n")
        with self.assertRaisesRegex(ValueError, r"model.yaml:4: .*raedy"):
            _model_file.ready_times(self.path)

    def test_a_file_that_would_be_read_for_ever_is_an_error_soon(self):
        files = {"spaces": b"name: x\ngradients:\n- {name: a" + 6000 * b" " + b"}\n",
                 "inf": b"name: x\ngradients:\n- {name: a, elements: 4, ready: infus}\n",
                 "dot": b"name: x\ngradients:\n- {name: a, elements: 4, ready: .us}\n",
                 "latin": b"name: x\ngradients:\n- {name: a, elements: 4, ready: \xe9us}\n"}
        for what, content in files.items():
            with self.subTest(what):
                self.path.write_bytes(content)
                with self.assertRaisesRegex(ValueError, "model.yaml"):
                    _model_file.ready_times(self.path)
        with self.assertRaises(hipress.Error):
            _model_file.ready_times("/dev/zero")


class Host(unittest.TestCase):
    """Tests of a captured model's lines about the host's cores and memory."""

    @staticmethod
    def text(**options):
        torch.manual_seed(0)
        model = torch.nn.Linear(64, 64)
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            capture = hipress.capture(model, None, **options)
            with capture:
                for _ in range(8):
                    model.zero_grad()
                    model(torch.ones(8, 64)).sum().backward()
                    with torch.no_grad():
                        for parameter in model.parameters():
                            parameter -= 0.1 * parameter.grad
            return capture.text()

    def test_threads_core_times_and_the_hook(self):
        text = self.text()
        self.assertIn(f"\nthreads: {torch.get_num_threads()}", text)
        self.assertRegex(text, r"\nforward_core_time: [\d.]+us\n")
        self.assertEqual(len(re.findall(r", core_time: [\d.]+us", text)), 2)
        before, after = map(float, re.search(r"\nhook: \{backward: ([\d.]+)us, after: ([\d.]+)us\}", text).groups())
        self.assertGreater(before + after, 0)
        self.assertFalse(torch.distributed.is_initialized())
        with tempfile.TemporaryDirectory() as folder:
            path = pathlib.Path(folder, "model.yaml")
            path.write_text(text)
            ready = _model_file.ready_times(path)
        said = {name: float(time) * 1e-6 for name, time in re.findall(r"name: (\w+), .*?ready: ([\d.]+)us", text)}
        # The only bucket is ready after its last gradient, and after the hook's overhead before that.
        self.assertAlmostEqual(ready["weight"], max(said.values()) + before * 1e-6, 9)

    def test_memory_needs_a_core_of_its_own(self):
        with mock.patch("os.sched_getaffinity", return_value=set(range(torch.get_num_threads()))), \
                self.assertRaisesRegex(ValueError, "needs a core of its own"):
            hipress.capture(torch.nn.Linear(2, 2), None, memory=True)

    def test_memory_is_measured_beside_a_copy(self):
        cores = torch.get_num_threads() + 1
        with mock.patch("os.sched_getaffinity", return_value=set(range(cores))), mock.patch.object(_memory, "_ALONE_S", 0.01):
            text = self.text(memory=True)
        self.assertRegex(text, r"\n(memory_traffic: [\d.]+GB/s  )?# beside a copy a step takes [\d.]+ times as long")
        self.assertEqual(text.count("Captured from 3 steps"), 1)  # every second of six steps

    def test_the_traffic_of_computation_beside_a_copy(self):
        probe = _memory.MemoryProbe.__new__(_memory.MemoryProbe)
        probe.one, probe.all = 6e9, 10e9
        self.assertEqual(probe.traffic(1.0, 1.0), 0)  # memory has room for both
        self.assertAlmostEqual(probe.traffic(2.0, 2.5), 6.5e9)  # (6.5 + 6) GB/s, slowed by 1.25, is the bandwidth of 10


if __name__ == "__main__":
    unittest.main()
