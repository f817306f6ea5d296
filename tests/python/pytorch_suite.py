"""Runs PyTorch's own tests of DistributedDataParallel (torch.testing._internal.distributed.distributed_test) on CPUs with gloo,
with one of three hooks on every model: PyTorch's allreduce_hook, hipress's with a raw plan, or hipress's without a plan (auto).
Tests that pass with the first must pass with the others, and tests that fail with both must fail for the same reason.

    python3 pytorch_suite.py [--hook allreduce|hipress|auto] [TEST…]

Without arguments it runs each hook in a process of its own, and compares. The exit status is 1 if a test fails only with one of
ours, or for a different reason, and EXPECTED does not list that reason; 77 if this torch has no tests or lacks what they need."""

import argparse
import contextlib
import json
import os
import re
import subprocess
import sys
import tempfile
import unittest
import warnings

#: Tests that are expected to fail under a plan: the reason, and a part of the error.
EXPECTED = {"test_ddp_logging_data_cpu": ("one of its models has fp64 parameters, which attach() refuses", "InvalidRequest"),
            "test_ddp_profiling_torch_profiler": ("it counts events gloo:all_reduce; the hook's ranges are hipress::submit and "
                                                  "wait", "AssertionError")}
WORLD_SIZE = 2
HOOKS = ("allreduce", "hipress", "auto")
#: Names of the hooks in logs.
HOOK_NAMES = "allreduce_hook|synchronise"
SKIPPED = 77
#: Time limits for one test, and for all tests with one hook, in seconds.
TEST_LIMIT_S, LIMIT_S = 100, 1500


def prepare(folder: str) -> None:
    """Sets the environment that distributed_test.py reads when it is imported."""
    os.environ.update(BACKEND="gloo", WORLD_SIZE=str(WORLD_SIZE), TEMP_DIR=folder, INIT_METHOD=f"file://{folder}/init",
                      DISTRIBUTED_TESTS_DEFAULT_TIMEOUT=str(TEST_LIMIT_S))
    for name in ("barrier", "test_dir", "init_dir"):
        os.makedirs(f"{folder}/{name}", exist_ok=True)


def move_to_cpu() -> None:
    """Makes tests for GPUs run on CPUs: tensors that they move to a GPU stay in place."""
    import torch
    from torch.overrides import TorchFunctionMode
    from torch.testing._internal import common_distributed

    def any_number(*_arguments, **_options):
        return lambda test: test

    def is_gpu(device) -> bool:
        return isinstance(device, int) and not isinstance(device, bool) or str(device).startswith("cuda")

    class OnCpu(TorchFunctionMode):
        def __torch_function__(self, function, types, arguments=(), options=None):
            options = dict(options or {})
            if function is torch.Tensor.cuda:
                return arguments[0]
            if is_gpu(options.get("device")):
                options["device"] = "cpu"
            if function is torch.Tensor.to:
                arguments = (arguments[0], *("cpu" if is_gpu(one) else one for one in arguments[1:]))
            return function(*arguments, **options)

    common_distributed.skip_if_lt_x_gpu = common_distributed.skip_if_no_gpu = any_number
    torch.cuda.set_device = lambda device: None
    torch.cuda.synchronize = lambda device=None: None
    torch.cuda.current_device = lambda: 0
    torch.cuda.device = lambda device: contextlib.nullcontext()
    OnCpu().__enter__()  # stays in force in forked processes, too


def put_hook_on_every_model(hook: str) -> None:
    """Registers the hook with every model when it is made. Tests that register a hook themselves fail with any of the hooks."""
    from torch.distributed.algorithms.ddp_comm_hooks import default_hooks
    from torch.nn.parallel import DistributedDataParallel

    import hipress

    make = DistributedDataParallel.__init__

    def make_with_hook(self, module, device_ids=None, output_device=None, *arguments, **options):
        make(self, module, None, None, *arguments, **options)
        if hook == "hipress":
            hipress.attach(self, "none")
        elif hook == "auto":
            hipress.attach(self, profile="v100-100g")
        else:
            self.register_comm_hook(None, default_hooks.allreduce_hook)

    DistributedDataParallel.__init__ = make_with_hook


def is_of_ddp(name: str) -> bool:
    return name.startswith("test_") and ("ddp" in name.lower() or "DistributedDataParallel" in name)


#: A line of a traceback that names an exception.
EXCEPTION = re.compile(r"(?:\w+\.)*(\w*(?:Error|Exception|Lost|Request|Interrupt|Failure))\b(.*)")


def reasons_in(text: str) -> list:
    """Returns the exceptions in several processes' tracebacks: types and messages, without parts that differ between runs. RankLost
    is left out, since it only follows another rank's error."""
    found = []
    for match in map(EXCEPTION.match, text.splitlines()):
        if match is None or match[1] == "RankLost" or "exited with error code" in match[2]:
            continue
        message = re.sub(rf"0x[0-9a-f]+|/[\w./-]+|\d+(\.\d+)?|{HOOK_NAMES}", "#", match[2])[:120]
        found.append(match[1] + message)
    return sorted(set(found))


def outcomes(hook: str, chosen: list) -> dict:
    """Runs the tests. Returns the outcomes by test: passed, skipped, or the reason of the failure."""
    found = {}

    class Recorder(unittest.TestResult):
        def startTest(self, test):
            super().startTest(test)
            print(f"{hook}: {test._testMethodName}", file=sys.stderr, flush=True)

        def addSuccess(self, test):
            found[test._testMethodName] = "passed"

        def addSkip(self, test, reason):
            found[test._testMethodName] = "skipped"

        def addFailure(self, test, error):
            super().addFailure(test, error)
            found[test._testMethodName] = "failed: " + "; ".join(reasons_in(str(error[1])) or [type(error[1]).__name__])

        addError = addFailure

    with tempfile.TemporaryDirectory(prefix="hipress-suite-") as folder:
        prepare(folder)
        warnings.simplefilter("ignore")
        import torch

        move_to_cpu()
        from torch.testing._internal.distributed import distributed_test

        torch.set_num_threads(1)
        put_hook_on_every_model(hook)

        class Suite(distributed_test.TestDistBackend, distributed_test.DistributedTest._DistTestBase):
            def setUp(self):
                super().setUp()
                self._start_processes(torch.multiprocessing.get_context("fork").Process)

        Suite.__name__ = Suite.__qualname__ = "TestDistBackendWithFork"
        names = sorted(name for name in dir(Suite) if is_of_ddp(name) and (not chosen or name in chosen))
        unittest.TestSuite(Suite(name) for name in names).run(Recorder())
    return found


def run_apart(hook: str) -> dict:
    done = subprocess.run([sys.executable, "-B", __file__, "--hook", hook], stdout=subprocess.PIPE, timeout=LIMIT_S, check=False)
    if done.returncode:
        sys.exit(f"the tests with {hook} ended with status {done.returncode}")
    return json.loads(done.stdout.splitlines()[-1])


def compare(by_hook: dict) -> int:
    """Prints the outcomes, and returns the exit status."""
    for hook, results in by_hook.items():
        count = {kind: sum(result.startswith(kind) for result in results.values()) for kind in ("passed", "failed", "skipped")}
        print(f"{hook}: {count['passed']} passed, {count['failed']} failed, {count['skipped']} skipped")
    return int(any([differs(hook, by_hook[hook], by_hook["allreduce"]) for hook in HOOKS[1:]]))


def differs(hook: str, ours: dict, theirs: dict) -> bool:
    """Prints the tests that fail with this hook otherwise than with PyTorch's. Returns true if any of them is not expected."""
    for name, result in theirs.items():
        if result.startswith("failed") and ours.get(name) == "passed":
            print(f"fails with allreduce and not with {hook}: {name}: {result}")
    failed = [name for name in ours if ours[name].startswith("failed")]
    both = [name for name in failed if shared(ours[name], theirs.get(name, ""))]
    print(f"fail with allreduce and {hook}, for one reason: " + (", ".join(both) or "none"))
    unexpected = []
    for name in failed:
        if name in both:
            continue
        why, words = EXPECTED.get(name, ("not expected", None))
        if words is None or words not in ours[name]:
            unexpected.append(name)
        print(f"fails with {hook} otherwise than with allreduce: {name}: {why}; {ours[name]}; with allreduce: {theirs.get(name)}")
    return bool(unexpected)


def shared(ours: str, theirs: str) -> bool:
    """True if two failures have a reason in common."""
    prefix = "failed: "
    return theirs.startswith(prefix) and bool(set(ours[len(prefix):].split("; ")) & set(theirs[len(prefix):].split("; ")))


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--hook", choices=HOOKS, help="run the tests with this hook, and write their outcomes as JSON")
    parser.add_argument("tests", nargs="*", metavar="TEST", help="names of tests (default: all of DistributedDataParallel)")
    options = parser.parse_args()
    if options.hook:
        print(json.dumps(outcomes(options.hook, options.tests)))
        return 0
    with tempfile.TemporaryDirectory() as folder:
        prepare(folder)
        try:
            from torch.testing._internal.distributed import distributed_test  # noqa: F401
        except (ImportError, ValueError) as error:
            print(f"skipped: this python3 cannot import PyTorch's tests ({error})")
            return SKIPPED
    return compare({hook: run_apart(hook) for hook in HOOKS})


if __name__ == "__main__":
    sys.exit(main())
