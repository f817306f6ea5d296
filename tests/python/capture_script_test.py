"""Tests that python -m hipress.capture runs scripts as python does, and finds the models that they train."""

import json
import os
import pathlib
import re
import signal
import subprocess
import sys
import tempfile
import unittest

import ranks

TRAIN = """
import torch
model = torch.nn.Sequential(torch.nn.Linear(6, 5), torch.nn.ReLU(), torch.nn.Linear(5, 2))
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
for _ in range(6):
    optimizer.zero_grad()
    model(torch.randn(3, 6)).sum().backward()
    optimizer.step()
"""
#: Script that trains two models; the loss of one goes through the other.
GAN = """
import torch
generator = torch.nn.Sequential(torch.nn.Linear(8, 64), torch.nn.ReLU(), torch.nn.Linear(64, 2))
discriminator = torch.nn.Sequential(torch.nn.Linear(2, 16), torch.nn.ReLU(), torch.nn.Linear(16, 1))
both = [torch.optim.Adam(model.parameters()) for model in (generator, discriminator)]
for _ in range(8):
    both[1].zero_grad()
    discriminator(torch.randn(4, 2)).mean().backward()
    discriminator(generator(torch.randn(4, 8)).detach()).mean().backward()
    both[1].step()
    both[0].zero_grad()
    discriminator(generator(torch.randn(4, 8))).mean().backward()
    both[0].step()
"""
#: Script with a helper net in training mode that is not trained, and a copy of the model.
HELPERS = """
import copy, torch
helper = torch.nn.Linear(20, 20)
model = torch.nn.Sequential(torch.nn.Linear(20, 3), torch.nn.ReLU(), torch.nn.Linear(3, 20))
follower = copy.deepcopy(model)
optimizer = torch.optim.Adam(model.parameters())
for number in range(12):
    values = torch.randn(4, 20)
    target = helper(values).detach() + follower(values).detach()
    optimizer.zero_grad()
    (model(values) - target).pow(2).mean().backward()
    optimizer.step()
    if number == 4:
        follower = copy.deepcopy(model)
"""
#: Scripts that call only parts of modules: parameters in the capture, exit status, and script.
PARTS = {
    "a head that a function uses, and an optimizer of its own": (("body.weight", "head.weight", "head.bias"), 0, """
class Model(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.body, self.head = torch.nn.Linear(8, 4, bias=False), torch.nn.Linear(4, 9)
model = Model()
optimizers = [torch.optim.SGD(model.body.parameters(), lr=0.1), torch.optim.Adagrad(model.head.parameters())]
def loss():
    hidden = model.body(torch.randn(16, 8))
    return sum(torch.nn.functional.linear(part, model.head.weight, model.head.bias).pow(2).sum() for part in hidden.chunk(4))
"""),
    "methods of an agent": (("critic.weight", "actor.weight", "spread"), 0, """
class Agent(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.critic, self.actor = torch.nn.Linear(8, 1, bias=False), torch.nn.Linear(8, 4, bias=False)
        self.spread = torch.nn.Parameter(torch.zeros(4))
    def act(self, values):
        return self.actor(values) * self.spread.exp(), self.critic(values)
agent = Agent()
optimizers = [torch.optim.Adam(agent.parameters())]
def loss():
    action, value = agent.act(torch.randn(16, 8))
    return action.sum() + value.sum()
"""),
    "two modules with an optimizer each, and one loss": (("encoder.weight", "decoder.weight"), 0, """
encoder, decoder = torch.nn.Linear(8, 4, bias=False), torch.nn.Linear(4, 8, bias=False)
optimizers = [torch.optim.SGD(module.parameters(), lr=0.1) for module in (encoder, decoder)]
def loss():
    return decoder(encoder(torch.randn(16, 8))).sum()
"""),
    "a parameter of no module": (("0.weight",), 1, """
model, spread = torch.nn.Sequential(torch.nn.Linear(8, 4, bias=False)), torch.zeros(3, requires_grad=True)
optimizers = [torch.optim.SGD([{"params": model.parameters()}, {"params": [spread]}], lr=0.1)]
def loss():
    return (model(torch.randn(16, 8)).sum() * spread.exp()).sum()
"""),
    "an optimizer after another": (("0.weight", "1.weight"), 0, """
model = torch.nn.Sequential(torch.nn.Linear(8, 4, bias=False), torch.nn.Linear(4, 2, bias=False))
optimizers = [torch.optim.SGD(model[1].parameters(), lr=0.1)]
def loss():
    if number == 4:
        optimizers[:] = [torch.optim.SGD(model.parameters(), lr=0.1)]
    return model(torch.randn(16, 8)).sum()
"""),
}
LOOP = """
for number in range(10):
    one = loss()
    for optimizer in optimizers:
        optimizer.zero_grad()
    one.backward()
    for optimizer in optimizers:
        optimizer.step()
"""
WORKER = """
import sys, torch, torch.distributed as dist, torch.multiprocessing as multiprocessing
from torch.nn.parallel import DistributedDataParallel

def work(rank, ranks, folder):
    torch.set_num_threads(1)
    if ranks:
        dist.init_process_group("gloo", init_method=f"file://{folder}/group", rank=rank, world_size=ranks)
    torch.manual_seed(0)
    model = torch.nn.Linear(4, 4 + 3 * rank * (ranks == 0))
    if ranks:
        model = DistributedDataParallel(model)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    for _ in range(6):
        optimizer.zero_grad()
        model(torch.full((2 + rank, 4), float(rank))).sum().backward()
        optimizer.step()
    if ranks:
        dist.destroy_process_group()

if __name__ == "__main__":
    how, ranks, folder = sys.argv[1], int(sys.argv[2]), sys.argv[3]
    if how == "spawn":
        multiprocessing.spawn(work, args=(ranks, folder), nprocs=ranks or 2)
    else:
        processes = [multiprocessing.get_context(how).Process(target=work, args=(rank, ranks, folder)) for rank in range(ranks)]
        [process.start() for process in processes]
        [process.join() for process in processes]
"""


def setUpModule() -> None:
    ranks.require_torch()


class Script(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = pathlib.Path(folder.name).resolve()
        self.output = self.folder / "model.yaml"

    def script(self, text: str, name="train.py"):
        path = self.folder / name
        path.parent.mkdir(exist_ok=True)
        path.write_text(text)
        return path

    def capture(self, *arguments, status=0, **options):
        done = subprocess.run([sys.executable, "-B", "-W", "ignore", "-m", "hipress.capture", "--output", self.output, *arguments],
                              capture_output=True, text=True, check=False, cwd=self.folder, **options)
        self.assertEqual(done.returncode, status, done.stderr)
        return done

    def shapes(self):
        return re.findall(r"- \{name: \"?([\w.]+)\"?, .*?shape: \[([\d, ]+)\]", self.output.read_text())

    def test_a_script_finds_its_siblings_arguments_and_itself(self):
        self.script("VALUE = 7\n", "deep/sibling.py")
        path = self.script("import json, sibling, sys\n"
                           "print(json.dumps([sibling.VALUE, sys.argv, __file__, sys.path[0], __name__]))\n" + TRAIN, "deep/train.py")
        done = self.capture("deep/train.py", "--flag", "-m", "3")
        self.assertEqual(json.loads(done.stdout), [7, ["deep/train.py", "--flag", "-m", "3"], "deep/train.py", str(path.parent),
                                                   "__main__"])
        self.assertEqual(done.stderr, f"hipress.capture: wrote {self.output}\n")

    def test_a_module_is_run_by_its_name(self):
        self.script("", "package/__init__.py")
        path = self.script("import json, sys\nprint(json.dumps([sys.argv, __name__, __package__]))\n" + TRAIN, "package/train.py")
        done = self.capture("-m", "package.train", "--flag")
        self.assertEqual(json.loads(done.stdout), [[str(path), "--flag"], "__main__", "package"])

    def test_of_several_models_the_largest_is_written_and_the_others_are_named(self):
        path = self.script(GAN)
        done = self.capture(path)
        self.assertEqual(done.stderr, f"hipress.capture: wrote {self.output}, of module 1 (generator, Sequential, 706 elements). "
                         "Also trained: module 0 (discriminator, Sequential, 65 elements). --module with an index or name takes "
                         "another\n")
        self.assertIn(("2.weight", "2, 64"), self.shapes())
        self.assertIn("micro_steps: 1\n", self.output.read_text())

    def test_a_model_can_be_chosen(self):
        path = self.script(GAN)
        for choice in ("discriminator", "0"):
            self.capture("--module", choice, path)
            self.assertIn(("2.weight", "1, 16"), self.shapes())
            self.assertIn("micro_steps: 2\n", self.output.read_text())
        for choice, number in (("critic", "none"), ("Sequential", "2"), ("2", "none")):
            self.assertIn(f"--module {choice}: {number} of the trained modules ha", self.capture("--module", choice, path,
                                                                                                status=2).stderr)

    def test_helpers_and_copies_are_not_what_is_trained(self):
        done = self.capture(self.script(HELPERS))
        self.assertEqual(done.stderr, f"hipress.capture: wrote {self.output}\n")
        self.assertIn(("0.weight", "3, 20"), self.shapes())

    def test_a_part_that_is_called_first_is_not_the_model(self):
        self.capture(self.script(TRAIN.replace("for _ in range(6):", "model[0](torch.randn(3, 6))\nfor _ in range(6):")))
        self.assertEqual(len(self.shapes()), 4)

    def test_what_optimizers_train_is_the_model(self):
        for what, (names, status, text) in PARTS.items():
            with self.subTest(what):
                done = self.capture(self.script("import torch\n" + text + LOOP), status=status)
                self.assertEqual(sorted(name for name, _ in self.shapes()), sorted(names))
                said = "It is not of the whole: optimizers also train 1 parameter (3 elements: spread [3])"
                self.assertEqual(said in done.stderr, status == 1, done.stderr)
                self.assertRegex(self.output.read_text(), "Captured from [678] steps")  # 10 without 2 of warm-up, perhaps without
                                                                                        # the last
                self.assertNotIn("without a gradient", self.output.read_text())

    def test_compiled_functions_that_call_the_model(self):
        if not hasattr(ranks.torch, "compile"):
            self.skipTest("this PyTorch does not compile")
        whole = """
import torch
model = torch.nn.Sequential(torch.nn.Linear(4, 3), torch.nn.ReLU(), torch.nn.Linear(3, 2))
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
def output(inputs):
    return model(inputs)
@torch.compile(backend="eager", fullgraph=True)
def loss(inputs):
    return output(inputs).square().sum()
"""
        method = """
import torch
class Trainer:
    def __init__(self):
        self.model = torch.nn.Sequential(torch.nn.Linear(4, 3), torch.nn.ReLU(), torch.nn.Linear(3, 2))
        self.loss = torch.compile(self.compute, backend="eager")
    def compute(self, inputs):
        return self.model(inputs).square().sum()
trainer = Trainer()
loss, optimizer = trainer.loss, torch.optim.SGD(trainer.model.parameters(), lr=0.1)
"""
        steps = """
for _ in range(6):
    optimizer.zero_grad()
    loss(torch.ones(5, 4)).backward()
    optimizer.step()
"""
        for text in (whole, method):
            self.capture(self.script(text + steps))
            self.assertIn(("0.weight", "3, 4"), self.shapes())
            self.assertIn("batch: 5\n", self.output.read_text())

    def test_processes_are_captured(self):
        """Ranks in processes of mp.spawn, with and without a process group, and in processes that are forked."""
        path = self.script(WORKER)
        for how, count in (("spawn", 2), ("spawn", 0), ("fork", 2)):
            with self.subTest(how=how, ranks=count):
                self.output.unlink(missing_ok=True)
                (self.folder / "group").unlink(missing_ok=True)
                done = self.capture(path, how, str(count), str(self.folder))
                self.assertEqual(done.stderr.count(f"hipress.capture: wrote {self.output}"), 1, done.stderr)
                self.assertEqual(done.stderr.count("the 2 ranks"), 1 if count else 0)
                if count:
                    self.assertIn("batch: 2\n", self.output.read_text())  # rank 0's batch

    def test_ranks_that_have_a_communication_hook_are_captured(self):
        """Capture finds the module only within a forward pass, too late for a hook of its own."""
        path = self.script(WORKER.replace("        model = DistributedDataParallel(model)\n", """        model = DistributedDataParallel(model)
        from torch.distributed.algorithms.ddp_comm_hooks.default_hooks import fp16_compress_hook
        model.register_comm_hook(None, fp16_compress_hook)
"""))
        done = self.capture(path, "spawn", "2", str(self.folder))
        self.assertIn("it has a communication hook", done.stderr)
        self.assertEqual(self.shapes(), [("bias", "4"), ("weight", "4, 4")])

    def test_what_trains_nothing_says_why(self):
        for text, reason in (("print('nothing')", "no module with parameters was called in training mode"),
                             (TRAIN.replace("model(", "torch.no_grad()(model)(").replace(".sum().backward()", ""),
                              "no module with parameters was called"),
                             (TRAIN.replace(".sum().backward()", ".sum()"),
                              "backward did not reach the model's output of type Tensor"),
                             ("import torch\nclass Hidden(torch.nn.Linear):\n    def forward(self, values):\n"
                              "        output = super().forward(values)\n        return lambda: output\n" +
                              TRAIN.replace("torch.nn.Sequential(torch.nn.Linear(6, 5), torch.nn.ReLU(), torch.nn.Linear(5, 2))",
                                            "Hidden(6, 2)").replace(".sum()", "().sum()"),
                              "no tensor was found in the output of type function of the model"),
                             (TRAIN.replace("range(6)", "range(2)"), "(1 did in all): run more steps")):
            with self.subTest(reason=reason):
                self.assertIn(reason, self.capture(self.script(text), status=1).stderr)
                self.assertFalse(self.output.exists())

    def test_models_that_cannot_be_captured_say_why(self):
        double = TRAIN.replace("optimizer =", "model.double()\noptimizer =").replace("(3, 6)", "(3, 6).double()")
        done = self.capture(self.script(double), status=1)
        self.assertIn("Sequential: parameter '0.weight' is of torch.float64", done.stderr)

    def test_a_script_that_fails_fails(self):
        self.assertIn("ZeroDivisionError", self.capture(self.script(TRAIN + "1 / 0\n"), status=1).stderr)
        self.capture(self.script(TRAIN + "raise SystemExit(5)\n"), status=5)
        self.assertFalse(self.output.exists())
        self.capture(self.script(TRAIN + "raise SystemExit(0)\n"))
        self.assertTrue(self.output.exists())

    def killed(self, text: str, *arguments):
        """Returns the output of a capture whose script kills its own process by a signal that cannot be caught."""
        done = subprocess.run([sys.executable, "-B", "-W", "ignore", "-m", "hipress.capture", "--output", self.output, *arguments,
                               self.script(text)], capture_output=True, text=True, check=False, cwd=self.folder)
        self.assertEqual(done.returncode, -signal.SIGKILL, done.stderr)
        return done.stderr

    def test_a_script_that_is_killed_after_its_steps_keeps_its_capture(self):
        # The file needs 2 steps of warm-up, 3 measured steps, and one more, which ends the last of these.
        kill = "\nimport os, signal\nos.kill(os.getpid(), signal.SIGKILL)\n"
        long = TRAIN.replace("range(6)", "range(12)")
        said = self.killed(long + kill, "--steps", "3")
        self.assertEqual(said, f"hipress.capture: wrote {self.output}\n")
        self.assertIn("Captured from 3 steps", self.output.read_text())
        self.assertEqual(len(self.shapes()), 4)
        self.assertEqual([path.name for path in self.folder.glob(".*")], [])  # no partial file

    def test_a_script_that_is_killed_before_leaves_what_there_was(self):
        kill = "\nimport os, signal\nos.kill(os.getpid(), signal.SIGKILL)\n"
        self.output.write_text("before")
        self.assertEqual(self.killed(TRAIN + kill), "")  # without --steps, no step is the last
        self.assertEqual(self.killed(TRAIN + kill, "--steps", "9"), "")
        self.assertEqual(self.output.read_text(), "before")

    def test_what_is_written_early_is_what_the_end_would_write(self):
        """The first process writes once, for the largest model. The script draws the same random numbers as without a capture."""
        path = self.script(GAN.replace("range(8)", "range(20)"))
        done = self.capture("--steps", "2", path)
        self.assertEqual(done.stderr.count("wrote"), 1)
        self.assertIn("of module 1 (generator, Sequential, 706 elements). Also trained: module 0", done.stderr)
        self.assertIn("Captured from 2 steps", self.output.read_text())
        drawn = "import torch\ntorch.manual_seed(3)\n" + TRAIN.replace("range(6)", "range(12)") + "print(torch.rand(1).item())\n"
        self.assertEqual(self.capture("--steps", "3", self.script(drawn)).stdout, self.capture(self.script(drawn)).stdout)
        worker = self.script(WORKER.replace("range(6)", "range(12)"))
        done = self.capture("--steps", "3", worker, "spawn", "2", str(self.folder))
        self.assertEqual(done.stderr.count(f"hipress.capture: wrote {self.output}"), 1, done.stderr)
        self.assertIn("Captured from 3 steps", self.output.read_text())

    def test_a_capture_in_a_script_writes_after_its_steps(self):
        text = "import hipress, os\n" + TRAIN.replace("for _ in range(6):\n", (
            "context = hipress.capture(model, 'inside.yaml', optimizer=optimizer, steps=3)\ncontext.__enter__()\n"
            "for step in range(12):\n    print(step, os.path.exists('inside.yaml'))\n"))
        done = subprocess.run([sys.executable, "-B", "-W", "ignore", self.script(text)], capture_output=True, text=True, check=True,
                              cwd=self.folder)
        # The optimizer of step 6 ends step 5, the last of 3 measured steps.
        self.assertEqual(done.stdout.split("\n")[:12], [f"{step} {step > 6}" for step in range(12)])

    def test_bad_numbers_are_refused(self):
        path = self.script(TRAIN)
        for option, values in (("--steps", ("0", "-1")), ("--warmup", ("-1",)),
                               ("--bucket-mb", ("0", "-2", "nan", "inf", "1e300"))):
            for value in values:
                self.assertIn(f"{option} must be ", self.capture(f"{option}={value}", path, status=2).stderr)
        for option in ("--steps", "--warmup", "--bucket-mb"):
            self.assertIn(f"{option}: invalid ", self.capture(f"{option}=much", path, status=2).stderr)

    def test_an_output_that_cannot_be_written_is_refused_before_the_training(self):
        path = self.script("print('trained')\n" + TRAIN)
        before = sorted(self.folder.iterdir())
        for output, reason in ((path, "which is read"), (self.folder, "is a folder"),
                               (self.folder / "no" / "model.yaml", "No such file")):
            done = self.capture("--output", output, path, status=2)
            self.assertIn(f"--output '{output}'" if output != path else f"--output {output}", done.stderr)
            self.assertIn(reason, done.stderr)
            self.assertEqual(done.stdout, "")
        self.assertEqual(sorted(self.folder.iterdir()), before)

    def test_the_help_says_that_it_is_a_measurement(self):
        done = self.capture("--help")
        self.assertIn("The run is a measurement", done.stdout)
        self.assertTrue(done.stdout.startswith("python -m hipress.capture "))


class Import(unittest.TestCase):
    def test_the_function_stays_callable_whatever_is_imported(self):
        check = "import hipress, torch\nassert type(hipress.capture(torch.nn.Linear(2, 2), None)).__name__ == 'Capture'\n"
        for before in ("", "import hipress.capture\n", "import hipress\nhipress.capture\nimport hipress.capture\n",
                       "from hipress import capture\ncapture(__import__('torch').nn.Linear(2, 2), None)\nimport hipress.capture\n",
                       "import importlib\nimportlib.import_module('hipress.capture').main\n"):
            done = subprocess.run([sys.executable, "-B", "-c", before + check], capture_output=True, text=True, check=False,
                                  env=dict(os.environ))
            self.assertEqual((done.returncode, done.stderr), (0, ""), before)

    def test_what_is_no_module_is_refused(self):
        import hipress

        with self.assertRaisesRegex(TypeError, "needs the torch.nn.Module that is trained, got NoneType"):
            hipress.capture(None)


if __name__ == "__main__":
    unittest.main()
