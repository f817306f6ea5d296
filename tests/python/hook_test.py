"""Tests of hooks in a job: failures, forks, refusals, copies, profilers, other hooks, verify()."""

import copy
import os
import pathlib
import pickle
import random
import signal
import subprocess
import sys
import tempfile
import time
import unittest
from unittest import mock

import ranks
from ranks import data, network, run, train, weights, wrapped
from training_test import STEPS, trained

if ranks.MISSING is None:
    import hipress
    import numpy
    import torch
    import torch.distributed as dist
    from hipress import _ddp, _job
    from torch.distributed.algorithms.ddp_comm_hooks.default_hooks import allreduce_hook


def setUpModule() -> None:
    ranks.require_torch()


def train_until_stopped(rank, path):
    """Trains until rank 1 is stopped from outside. Returns the error of this rank, the failed rank, the error of the next step, and
    true if the engine is closed."""
    ddp = wrapped(network())
    hook = hipress.attach(ddp, "none", timeout=20)
    optimizer = torch.optim.SGD(ddp.parameters(), lr=0.1)
    train(ddp, optimizer, rank, range(3))
    pathlib.Path(path, str(rank)).touch()
    try:
        while True:
            train(ddp, optimizer, rank, range(3, 4))
    except KeyboardInterrupt:  # between two hooks
        return "KeyboardInterrupt", None, "", hook.engine.closed
    except RuntimeError as error:  # the hook's error, or under PyTorch 1.13 its name and text
        again = ""
        try:
            train(ddp, optimizer, rank, range(4, 5))
        except RuntimeError as second:
            again = str(second)
        return f"{type(error).__name__}: {error}", getattr(hook.failure, "rank", None), again, hook.engine.closed


def fork_and_train(rank, path):
    """Kills rank 1 after it has forked a child that outlives it. Returns the failed rank and the error of this rank."""
    ddp = wrapped(network())
    hook = hipress.attach(ddp, "none", timeout=4 * ranks.DEADLINE_S)
    optimizer = torch.optim.SGD(ddp.parameters(), lr=0.1)
    train(ddp, optimizer, rank, range(2))
    if rank == 1:
        child = os.fork()
        if child == 0:
            signal.alarm(2 * ranks.DEADLINE_S)
            while True:
                signal.pause()
        pathlib.Path(path, "child").write_text(str(child))
        os.kill(os.getpid(), signal.SIGKILL)
    try:
        train(ddp, optimizer, rank, range(2, 4))
    except RuntimeError:
        return hook.failure.rank, str(hook.failure)
    return None


def fork_and_drop(rank):
    """Trains before and after a forked child has closed its copy of the hook."""
    ddp = wrapped(network())
    hook = hipress.attach(ddp, "none")
    optimizer = torch.optim.SGD(ddp.parameters(), lr=0.1)
    train(ddp, optimizer, rank, range(2))
    child = os.fork()
    if child == 0:
        hook.close()
        os._exit(0)
    status = os.waitpid(child, 0)[1]
    train(ddp, optimizer, rank, range(2, 4))
    hook.close()
    return status


def threads() -> int:
    """Number of threads of this process."""
    return len(os.listdir("/proc/self/task"))


class Failures(unittest.TestCase):
    def stop_rank_1(self, number):
        with tempfile.TemporaryDirectory() as path:
            job = ranks.Job(3, train_until_stopped, path)
            end = time.monotonic() + ranks.DEADLINE_S
            while len(os.listdir(path)) < 3 and time.monotonic() < end:
                time.sleep(0.05)
            job.signal(1, number)
            outcomes = job.outcomes()
        for rank in (0, 2):
            succeeded, result = outcomes[rank]
            self.assertTrue(succeeded, result)
            said, culprit, again, closed = result
            self.assertEqual(culprit, 1, said)
            self.assertIn("RankLost: rank 1", said)
            self.assertIn("rank 1", again)
            self.assertTrue(closed)
        return outcomes[1]

    def test_a_rank_that_is_killed_is_named_by_the_others(self):
        self.assertEqual(self.stop_rank_1(signal.SIGKILL), (False, None))

    def test_an_interrupt_of_one_rank_ends_all(self):
        succeeded, result = self.stop_rank_1(signal.SIGINT)
        self.assertTrue(succeeded, result)
        self.assertIn("KeyboardInterrupt", result[0])


class Forks(unittest.TestCase):
    def test_a_killed_rank_is_named_though_its_child_lives(self):
        # If the child held the connection, only the timeout would reveal the loss, and it is longer than this test may take.
        with tempfile.TemporaryDirectory() as path:
            job = ranks.Job(2, fork_and_train, path)
            noticed = job.pipes[0].poll(ranks.DEADLINE_S)
            os.kill(int(pathlib.Path(path, "child").read_text()), signal.SIGKILL)
            outcomes = job.outcomes()
        self.assertTrue(noticed)
        succeeded, result = outcomes[0]
        self.assertTrue(succeeded, result)
        self.assertEqual(result[0], 1)
        self.assertIn("rank 1 closed the connection", result[1])

    def test_a_child_that_closes_the_hook_leaves_the_job_alone(self):
        self.assertEqual(run(2, fork_and_drop), [0, 0])


def count_threads(rank):
    ddp = wrapped(network())
    before = threads()
    hook = hipress.attach(ddp, "onebit")
    during = threads()
    train(ddp, torch.optim.SGD(ddp.parameters(), lr=0.1), rank, range(2))
    dist.barrier()
    hook.close()
    return before, during, threads()


def refusals(rank):
    """Returns the messages for refused models and calls."""
    said = {}

    def refused(name, call):
        try:
            call()
            said[name] = "accepted"
        except hipress.InvalidRequest as error:
            said[name] = str(error)

    refused("no ddp", lambda: hipress.attach(network()))
    refused("no module", lambda: hipress.attach({"model": network()}))
    refused("DataParallel", lambda: hipress.attach(torch.nn.DataParallel(network())))
    refused("double", lambda: hipress.attach(wrapped(network().double()), "none"))
    refused("sparse", lambda: hipress.attach(wrapped(torch.nn.Embedding(10, 4, sparse=True)), "none"))
    refused("other plans", lambda: hipress.attach(wrapped(network()), "onebit" if rank else "none"))
    refused("no plan", lambda: hipress.attach(wrapped(network()), "nothing-of-this-name"))
    ddp = wrapped(network())
    refused("verify", lambda: hipress.verify(ddp))
    hipress.attach(ddp, "none")
    refused("twice", lambda: hipress.attach(ddp, "none"))
    # Topologies of a broadcast give rank 0's values, not a mean.
    refused("broadcast", lambda: hipress.attach(wrapped(network()), "none", topology="chain"))
    hooked = wrapped(network())
    hooked.register_comm_hook(None, allreduce_hook)
    before = threads()
    refused("another hook", lambda: hipress.attach(hooked, "none"))
    said["threads"] = threads() - before
    return said


def copies(rank):
    """Attaches a hook to a model and trains copies of the model, which come without the hook. Returns the copies' weights, the
    weights that plain DDP gives, and the error that a copy of the hook raises."""
    ddp = wrapped(network())
    hook = hipress.attach(ddp, "onebit")
    found = []
    for copied in (copy.deepcopy(ddp), pickle.loads(pickle.dumps(ddp))):
        train(copied, torch.optim.SGD(copied.parameters(), lr=0.1), rank, range(2))
        found.append(weights(copied.module))
    try:
        copy.deepcopy(hook).state_dict()
        said = "accepted"
    except hipress.InvalidRequest as error:
        said = str(error)
    train(ddp, torch.optim.SGD(ddp.parameters(), lr=0.1), rank, range(2))  # the original goes on
    hook.close()
    plain = wrapped(network())
    train(plain, torch.optim.SGD(plain.parameters(), lr=0.1), rank, range(2))
    return found, weights(plain.module), said


def asked_timeouts(_rank):
    """Returns the timeouts that attach() passes to the engine, without and with a given timeout."""
    asked = []

    def refuse(*_arguments, **options):
        asked.append(options["timeout_s"])
        raise hipress.InvalidRequest("enough")

    with mock.patch.object(_job, "Engine", refuse):
        for options in ({}, {"timeout": 7}):
            try:
                hipress.attach(wrapped(network()), "none", **options)
            except hipress.InvalidRequest:
                pass
    return asked


class Attach(unittest.TestCase):
    def test_no_thread_is_left(self):
        for before, during, after in run(2, count_threads):
            self.assertGreater(during, before)
            self.assertEqual(after, before)

    def test_what_cannot_be_synchronised_is_refused_in_words(self):
        for said in run(2, refusals):
            for name, words in (("no ddp", "got Sequential: wrap the model first"),
                                ("no module", "got dict, which is no torch.nn.Module"),
                                ("DataParallel", "start a process for each device"),
                                ("double", "float64"), ("sparse", "sparse=False"),
                                ("other plans", "rank 1 calls hipress.attach with plan='onebit', rank 0 with 'none'"),
                                ("no plan", "nothing-of-this-name"), ("verify", "call hipress.attach(model) first"),
                                ("twice", "a model takes one hook"),
                                ("broadcast", "'chain' does a broadcast, and an engine averages: take one of"),
                                ("another hook", "has the communication hook allreduce_hook, and DDP takes one")):
                self.assertIn(words, said[name], name)
            self.assertEqual(said["threads"], 0)

    def test_a_copy_is_part_of_no_job(self):
        for found, plain, said in run(2, copies):
            for ours in found:
                self.assertEqual({name: ours[name].tolist() for name in ours}, {name: plain[name].tolist() for name in plain})
            self.assertIn("this hook is a copy", said)

    def test_a_job_waits_as_long_as_its_process_group(self):
        for asked in run(2, asked_timeouts):
            self.assertEqual(asked, [ranks.DEADLINE_S, 7])

    def test_the_interface_of_gloo_is_read_as_gloo_reads_it(self):
        with mock.patch.object(_job.socket, "if_nameindex", return_value=[(1, "lo"), (2, "eth0"), (3, "eth1")]):
            for value, interface in (("", ""), ("eth1", "eth1"), ("lo,eth0", "lo"), (" eth0 , eth1", "eth0"), ("^lo,docker0", ""),
                                     (",", "")):
                with self.subTest(value), mock.patch.dict(os.environ, GLOO_SOCKET_IFNAME=value):
                    self.assertEqual(_job.gloo_interface(), interface)
            with mock.patch.dict(os.environ, GLOO_SOCKET_IFNAME="eth9,lo"):
                with self.assertRaisesRegex(hipress.InvalidRequest, "GLOO_SOCKET_IFNAME begins with the interface 'eth9'"):
                    _job.gloo_interface()

    def test_a_plan_file_of_a_captured_model(self):
        with tempfile.TemporaryDirectory() as path:
            # Bulk groups hold gradients that are ready within 4 ms. Means have DDP's bits.
            names = [name for name, _ in reversed(list(network().named_parameters()))]
            sizes = dict(network().named_parameters())
            with open(f"{path}/model.yaml", "w") as file:
                file.write("name: small\ngradients:\n" + "".join(
                    f"- {{name: {name}, elements: {sizes[name].numel()}, ready: {3 * i}ms}}\n" for i, name in enumerate(names)))
            with open(f"{path}/plan.yaml", "w") as file:
                file.write("schema: hipress.plan/1\nmodel: small\ntopology: ps\nnodes: 2\nbulk: {threshold: 64KiB, wait: 4ms}\n"
                           "gradients:\n" + "".join(
                               f"  - {{name: {name}, elements: {sizes[name].numel()}, algorithm: none, K: 2}}\n" for name in names))
            plain = run(2, trained, None)[0]
            for mine in run(2, trained, f"{path}/plan.yaml", None, {"model": f"{path}/model.yaml"}):
                for name in mine:
                    self.assertTrue(torch.equal(mine[name], plain[name]), name)


def large_network():
    """Makes a network with 278021 elements, more than DDP's first bucket of 1 MiB holds."""
    torch.manual_seed(0)
    return torch.nn.Sequential(torch.nn.Linear(24, 512), torch.nn.ReLU(), torch.nn.Linear(512, 512), torch.nn.ReLU(),
                               torch.nn.Linear(512, 5))


def composed(rank, plan):
    """Trains with a hook that counts buckets and calls hipress's. Returns the weights, the number of buckets, the error of a second
    hook, and true if all ranks have the same bits."""
    ddp = wrapped(network())
    counted = []

    def hook(state, bucket):
        counted.append(bucket.index())
        return hipress.synchronise(state, bucket)

    state = hipress.Hook(ddp, plan)
    ddp.register_comm_hook(state, hook)
    train(ddp, torch.optim.SGD(ddp.parameters(), lr=0.1, momentum=0.9), rank, range(STEPS))
    try:
        hipress.Hook(ddp)
        said = "accepted"
    except hipress.InvalidRequest as error:
        said = str(error)
    agreed = hipress.verify(ddp).agreed
    state.close()
    return weights(ddp.module), len(counted), said, agreed


def without_registration(_rank):
    """Makes a hook without registering it, closes it, and attaches another. Returns true if that works."""
    ddp = wrapped(network())
    first = hipress.Hook(ddp)
    first.close()
    second = hipress.attach(ddp, "none")
    second.close()
    return isinstance(second, hipress.Hook)


def refused_wrappers(_rank):
    """Returns the messages about PyTorch 2's ways to train in parallel."""
    from torch.distributed._composable.replicate import replicate
    from torch.distributed.fsdp import FullyShardedDataParallel, fully_shard

    def sharded(module):
        """Stand-in for FullyShardedDataParallel(torch.compile(module)), which needs a GPU."""
        wrapper = torch.nn.Module.__new__(FullyShardedDataParallel)
        torch.nn.Module.__init__(wrapper)
        wrapper._fsdp_wrapped_module = torch.compile(module, backend="eager")
        return wrapper

    said = []
    for wrap in (sharded, fully_shard, replicate):
        for call in (hipress.attach, hipress.verify, hipress.Hook):
            try:
                call(wrap(network()))
                said.append("accepted")
            except hipress.InvalidRequest as error:
                said.append(str(error))
    return said


def compiled(rank, plan):
    """Trains a DistributedDataParallel that torch.compile wraps. Returns the weights, and true if all ranks have the same bits."""
    ddp = torch.compile(wrapped(network()), backend="eager")
    hook = hipress.attach(ddp, plan)
    train(ddp, torch.optim.SGD(ddp.parameters(), lr=0.1, momentum=0.9), rank, range(STEPS))
    agreed = hipress.verify(ddp).agreed
    hook.close()
    return weights(ddp._orig_mod.module), agreed


def train_from_shared_checkpoint(rank, path, resume):
    """Trains in two parts with one checkpoint that all ranks write, each under a key of its own. Returns the weights."""
    import torch.distributed.checkpoint as shared

    ddp = wrapped(network())
    hook = hipress.attach(ddp, "onebit")
    optimizer = torch.optim.SGD(ddp.parameters(), lr=0.1)
    key = f"hipress.{rank}"
    if resume:
        state = {"model": ddp.module.state_dict(), key: hook.state_dict()}
        shared.load(state, checkpoint_id=path)
        hook.load_state_dict(state[key])
    else:
        train(ddp, optimizer, rank, range(3))
        shared.save({"model": ddp.module.state_dict(), key: hook.state_dict()}, checkpoint_id=path)
    train(ddp, optimizer, rank, range(3, 6))
    return weights(ddp.module)


@unittest.skipIf(ranks.MISSING is not None or not hasattr(torch, "compile"), "needs PyTorch 2")
class PyTorch2(unittest.TestCase):
    def test_a_distributed_checkpoint_has_a_key_for_each_rank(self):
        with tempfile.TemporaryDirectory() as path:
            whole = run(2, train_from_shared_checkpoint, path, False)
            for mine, theirs in zip(run(2, train_from_shared_checkpoint, path, True), whole):
                for name in mine:
                    self.assertTrue(torch.equal(mine[name], theirs[name]), name)

    def test_other_wrappers_are_refused_in_words(self):
        for said in run(2, refused_wrappers):
            for text, name in zip(said, ("takes no hook", *("FSDP leaves each rank",) * 2, "accepted",
                                         *("fully_shard() leaves each rank",) * 2,
                                         *("replicate() has no DistributedDataParallel",) * 3)):
                self.assertIn(name, text)

    def test_a_compiled_model_is_looked_through(self):
        for plan in ("none", "onebit"):
            for (mine, agreed), theirs in zip(run(2, compiled, plan), run(2, trained, plan)):
                self.assertTrue(agreed)
                for name in mine:
                    self.assertTrue(torch.equal(mine[name], theirs[name]), name)


class Composition(unittest.TestCase):
    def test_a_hook_that_calls_hipress_has_its_bits(self):
        for plan in ("none", "onebit"):
            alone = run(2, trained, plan)
            for (mine, buckets, said, agreed), theirs in zip(run(2, composed, plan), alone):
                self.assertEqual(buckets, STEPS)  # one bucket per step
                self.assertIn("a model takes one hook", said)
                self.assertTrue(agreed)
                for name in mine:
                    self.assertTrue(torch.equal(mine[name], theirs[name]), name)

    def test_a_state_that_was_never_registered(self):
        self.assertEqual(run(2, without_registration), [True, True])


def profiled(rank, plan):
    """Returns the names of a step's ranges in a profile, and true if hooks also make ranges without a profiler."""
    ddp = wrapped(large_network(), bucket_cap_mb=0.01)
    hipress.attach(ddp, plan)
    optimizer = torch.optim.SGD(ddp.parameters(), lr=0.1)
    train(ddp, optimizer, rank, range(3))
    with torch.profiler.profile(activities=[torch.profiler.ProfilerActivity.CPU]) as profile:
        train(ddp, optimizer, rank, range(3, 4))
    with mock.patch.object(_ddp, "record_function") as range_outside:
        train(ddp, optimizer, rank, range(4, 5))
    return [event.name for event in profile.events() if event.name.startswith("hipress::")], range_outside.called


class Ranges(unittest.TestCase):
    def test_a_profiler_sees_every_bucket_and_the_wait(self):
        for names, outside in run(2, profiled, "onebit"):
            submits = [name for name in names if name.startswith("hipress::submit(")]
            self.assertGreater(len(submits), 1)
            for index, name in enumerate(submits):
                self.assertRegex(name, rf"^hipress::submit\(bucket={index}, bytes=\d+, dtype=float32, ranks=2\)$")
            self.assertEqual(sum(int(name.split("bytes=")[1].split(",")[0]) for name in submits), 4 * 278021)
            self.assertEqual([name.split("(")[0] for name in names if name not in submits], ["hipress::wait"])
            self.assertFalse(outside)


def verified(rank, plan, with_step):
    ddp = wrapped(network())
    hipress.attach(ddp, plan)
    optimizer = torch.optim.SGD(ddp.parameters(), lr=0.1)
    train(ddp, optimizer, rank, range(2))

    def step():
        values, classes = data(rank, 7)
        torch.nn.functional.cross_entropy(ddp(values), classes).backward()

    found = hipress.verify(ddp, step if with_step else None)
    train(ddp, optimizer, rank, range(2, 4))
    return found, str(found), weights(ddp.module)


def trained_plainly(rank, plan):
    """Trains like verified(), without verify(). Returns the weights."""
    ddp = wrapped(network())
    hipress.attach(ddp, plan)
    train(ddp, torch.optim.SGD(ddp.parameters(), lr=0.1), rank, range(4))
    return weights(ddp.module)


class Drawing(torch.nn.Module if ranks.MISSING is None else object):
    """A network with batch statistics, and random draws by torch, Python and numpy."""

    def __init__(self):
        super().__init__()
        self.network = torch.nn.Sequential(torch.nn.Linear(24, 32), torch.nn.BatchNorm1d(32), torch.nn.Dropout(0.5),
                                           torch.nn.Linear(32, 5))

    def forward(self, values):
        return self.network(values) * (1 + random.random()) * (1 + float(numpy.random.rand()))


def undisturbed(rank, verify):
    """Trains with or without verify() between the steps. Returns the model's state, and the next random draws."""
    torch.manual_seed(rank)
    random.seed(rank)
    numpy.random.seed(rank)
    ddp = wrapped(Drawing())
    hipress.attach(ddp, "onebit")
    optimizer = torch.optim.SGD(ddp.parameters(), lr=0.1)

    def step():
        values, classes = data(rank, 7)
        torch.nn.functional.cross_entropy(ddp(values), classes).backward()

    for number in range(4):
        train(ddp, optimizer, rank, range(number, number + 1))
        if verify:
            hipress.verify(ddp, step)
            hipress.verify(ddp)
    state = {name: value.tolist() for name, value in ddp.module.state_dict().items()}
    return state, torch.rand(2).tolist(), random.random(), float(numpy.random.rand())


class Verify(unittest.TestCase):
    def test_buffers_and_random_generators_are_as_before(self):
        for mine, theirs in zip(run(2, undisturbed, True), run(2, undisturbed, False)):
            self.assertEqual(mine, theirs)

    def test_uncompressed_has_the_bits_of_ddp(self):
        for with_step in (False, True):
            for found, table, _ in run(2, verified, "none", with_step):
                self.assertTrue(found.equal and found.agreed, table)
                self.assertEqual(table.count("\n"), 6)

    def test_compressed_differs_on_all_ranks_alike_and_leaves_no_trace(self):
        expected = run(2, trained_plainly, "onebit")
        for (found, table, after), undisturbed in zip(run(2, verified, "onebit", True), expected):
            self.assertTrue(found.agreed, table)
            self.assertFalse(found.equal)
            for name in after:
                self.assertTrue(torch.equal(after[name], undisturbed[name]), name)


class Machines(unittest.TestCase):
    def test_processes_of_two_networks_are_on_two_machines(self):
        def machine(*before) -> str:
            code = "from hipress import _job; print(_job.machine())"
            done = subprocess.run([*before, sys.executable, "-B", "-W", "ignore", "-c", code], capture_output=True, text=True,
                                  check=False)
            if before and done.returncode != 0:
                self.skipTest(f"no network namespace here: {done.stderr.strip()}")
            return done.stdout

        self.assertEqual(machine(), machine())
        self.assertNotEqual(machine("unshare", "--net"), machine())


if __name__ == "__main__":
    unittest.main()
