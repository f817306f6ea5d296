"""Runs ranks as processes of this machine, which are forked after this process's imports."""

import datetime
import multiprocessing
import os
import pickle
import signal
import tempfile
import time
import traceback
import unittest

try:
    import torch
    import torch.distributed as dist
    from torch.nn.parallel import DistributedDataParallel
    MISSING = None if dist.is_available() and dist.is_gloo_available() else "this torch has no gloo"
except ImportError as error:
    MISSING = f"no torch for this python3 ({error}); Debian package python3-torch"

#: Deadline in seconds, longer than any test takes on a busy machine.
DEADLINE_S = 90


def require_torch() -> None:
    if MISSING:
        raise unittest.SkipTest(MISSING)


def _rank(function, rank, ranks, folder, arguments, pipe) -> None:
    torch.set_num_threads(1)
    try:
        dist.init_process_group("gloo", init_method=f"file://{folder}/group", rank=rank, world_size=ranks,
                                timeout=datetime.timedelta(seconds=DEADLINE_S))
        # Pickles the result itself: torch would send tensors in shared memory, which ends with this process.
        pipe.send_bytes(pickle.dumps((True, function(rank, *arguments))))
    except BaseException:  # any exception is the result of the rank
        pipe.send_bytes(pickle.dumps((False, traceback.format_exc())))
    finally:
        pipe.close()


class Job:
    """Runs `function(rank, *arguments)` on every rank."""

    def __init__(self, ranks: int, function, *arguments):
        self.folder = tempfile.TemporaryDirectory(prefix="hipress-test-")
        context = multiprocessing.get_context("fork")
        self.pipes, self.processes = [], []
        for rank in range(ranks):
            receive, send = context.Pipe(duplex=False)
            process = context.Process(target=_rank, args=(function, rank, ranks, self.folder.name, arguments, send), daemon=True)
            process.start()
            send.close()
            self.pipes.append(receive)
            self.processes.append(process)

    def signal(self, rank: int, number: signal.Signals) -> None:
        os.kill(self.processes[rank].pid, number)

    def outcomes(self) -> list:
        """Returns the outcomes by rank: (True, result) or (False, traceback); (False, None) for a killed rank."""
        found, end = [], time.monotonic() + DEADLINE_S
        try:
            for pipe in self.pipes:
                if not pipe.poll(max(0.0, end - time.monotonic())):
                    raise TimeoutError(f"a rank has not ended in {DEADLINE_S} s")
                try:
                    found.append(pickle.loads(pipe.recv_bytes()))
                except EOFError:
                    found.append((False, None))
            for process in self.processes:
                process.join(max(0.0, end - time.monotonic()))
                if process.is_alive():
                    raise TimeoutError("a rank's process does not end")
        finally:
            for process in self.processes:
                if process.is_alive():
                    process.kill()
                process.join()
            self.folder.cleanup()
        return found


def run(ranks: int, function, *arguments) -> list:
    """Runs a function on all ranks, which must all succeed. Returns the results."""
    outcomes = Job(ranks, function, *arguments).outcomes()
    for rank, (succeeded, result) in enumerate(outcomes):
        if not succeeded:
            raise AssertionError(f"rank {rank}: {result or 'was killed'}")
    return [result for _, result in outcomes]


def network(seed: int = 0):
    """Makes a small classifier of 26 kB, with matrices that low-rank codecs compress, and vectors."""
    torch.manual_seed(seed)
    return torch.nn.Sequential(torch.nn.Linear(24, 64), torch.nn.ReLU(), torch.nn.Linear(64, 64), torch.nn.Tanh(),
                               torch.nn.Linear(64, 5))


def data(rank: int, step: int):
    """Makes a batch of a learnable problem, different on every rank and in every step."""
    generator = torch.Generator().manual_seed(1000 * step + rank)
    values = torch.randn(16, 24, generator=generator)
    return values, values[:, :5].argmax(dim=1)


def train(ddp, optimizer, rank: int, steps, accumulate: bool = False) -> float:
    """Trains for these steps, and returns the last loss."""
    loss = None
    for step in steps:
        optimizer.zero_grad()
        if accumulate:
            with ddp.no_sync():
                values, classes = data(rank, step + 500)
                torch.nn.functional.cross_entropy(ddp(values), classes).backward()
        values, classes = data(rank, step)
        loss = torch.nn.functional.cross_entropy(ddp(values), classes)
        loss.backward()
        optimizer.step()
    return float(loss)


def weights(module) -> dict:
    return {name: value.detach().clone() for name, value in module.named_parameters()}


def wrapped(module, **options):
    return DistributedDataParallel(module, **options)
