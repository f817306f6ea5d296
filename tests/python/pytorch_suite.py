"""PyTorch's own tests of DistributedDataParallel (torch.testing._internal.distributed.distributed_test), on CPUs with gloo, once with
hipress's hook on every model and once with PyTorch's allreduce_hook: what passes with the second passes with the first.

    python3 pytorch_suite.py [--hook hipress|allreduce] [TEST…]

Without arguments it runs each hook in a process of its own, and compares. Exit status 1 for a test that fails with hipress alone and
is not listed in EXPECTED; 77 where this torch has no tests or lacks what they need."""

import argparse
import json
import os
import subprocess
import sys
import tempfile
import unittest
import warnings

#: Tests that cannot pass with any hook that does not call the process group's all-reduce, or that computes in fp32.
EXPECTED = {}
WORLD_SIZE = 2
HOOKS = ("allreduce", "hipress")
SKIPPED = 77
#: Seconds for a test, and for all of one hook.
TEST_LIMIT_S, LIMIT_S = 100, 1500


def prepare(folder: str) -> None:
    """What distributed_test.py reads when it is imported."""
    os.environ.update(BACKEND="gloo", WORLD_SIZE=str(WORLD_SIZE), TEMP_DIR=folder, INIT_METHOD=f"file://{folder}/init",
                      DISTRIBUTED_TESTS_DEFAULT_TIMEOUT=str(TEST_LIMIT_S))
    for name in ("barrier", "test_dir", "init_dir"):
        os.makedirs(f"{folder}/{name}", exist_ok=True)


def put_hook_on_every_model(hook: str) -> None:
    """A model gets it when it is made; one that its test gives another hook goes without. Functions that look into a profile for the
    process group's events look for the hook's."""
    from torch.distributed.algorithms.ddp_comm_hooks import default_hooks
    from torch.nn.parallel import DistributedDataParallel

    import hipress

    make = DistributedDataParallel.__init__

    def make_with_hook(self, *arguments, **options):
        make(self, *arguments, **options)
        if hook == "hipress":
            hipress.attach(self)
        else:
            self.register_comm_hook(self.process_group, default_hooks.allreduce_hook)

    DistributedDataParallel.__init__ = make_with_hook


def is_of_ddp(name: str) -> bool:
    return name.startswith("test_") and ("ddp" in name.lower() or "DistributedDataParallel" in name)


def outcomes(hook: str, chosen: list) -> dict:
    """By test: passed, skipped, or the last line of why it failed."""
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
            lines = [line for line in str(error[1]).splitlines() if "Error" in line] or str(error[1]).splitlines() or ["failed"]
            found[test._testMethodName] = f"failed: {lines[-1].strip()}"

        addError = addFailure

    with tempfile.TemporaryDirectory(prefix="hipress-suite-") as folder:
        prepare(folder)
        warnings.simplefilter("ignore")
        import torch
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
    ours, theirs = by_hook["hipress"], by_hook["allreduce"]
    for hook, results in by_hook.items():
        count = {kind: sum(result.startswith(kind) for result in results.values()) for kind in ("passed", "failed", "skipped")}
        print(f"{hook}: {count['passed']} passed, {count['failed']} failed, {count['skipped']} skipped")
    both = [name for name in ours if ours[name].startswith("failed") and theirs.get(name, "").startswith("failed")]
    print("fail with both: " + (", ".join(both) or "none"))
    alone = [name for name in ours if ours[name].startswith("failed") and theirs.get(name) == "passed"]
    for name in alone:
        print(f"fails with hipress alone: {name}: {EXPECTED.get(name, ours[name])}")
    return int(any(name not in EXPECTED for name in alone))


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
