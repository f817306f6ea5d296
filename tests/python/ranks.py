"""Runs a function as every rank of a PyTorch job over gloo on loopback."""

import multiprocessing
import os
import pathlib
import pickle
import tempfile
import traceback
import typing

#: Longest that a job may take before it is ended and fails.
LIMIT_S = 120


def _run(function: typing.Callable, rank: int, ranks: int, folder: str, arguments: tuple) -> None:
    import torch
    import torch.distributed as dist
    torch.set_num_threads(1)
    torch.manual_seed(7)
    dist.init_process_group("gloo", init_method=f"file://{folder}/rendezvous", rank=rank, world_size=ranks)
    try:
        outcome = (True, function(rank, ranks, *arguments))
    except BaseException as error:  # shown by the test
        outcome = (False, "".join(traceback.format_exception(type(error), error, error.__traceback__)))
    path = pathlib.Path(folder) / f"outcome{rank}"
    path.with_suffix(".part").write_bytes(pickle.dumps(outcome))
    os.replace(path.with_suffix(".part"), path)
    os._exit(0 if outcome[0] else 1)  # gloo's threads would wait for ranks that are gone


def run(function: typing.Callable, ranks: int, *arguments: object, survivors: typing.Optional[typing.Sequence[int]] = None) -> list:
    """What the function returned on every rank, or on the survivors alone; AssertionError with the traceback of one that failed."""
    context = multiprocessing.get_context("spawn")
    with tempfile.TemporaryDirectory() as folder:
        processes = [context.Process(target=_run, args=(function, rank, ranks, folder, arguments)) for rank in range(ranks)]
        for process in processes:
            process.start()
        for process in processes:
            process.join(LIMIT_S)
            if process.is_alive():
                process.kill()
        outcomes = []
        for rank in (range(ranks) if survivors is None else survivors):
            path = pathlib.Path(folder) / f"outcome{rank}"
            assert path.exists(), f"rank {rank} ended with {processes[rank].exitcode} and without an outcome"
            good, value = pickle.loads(path.read_bytes())
            assert good, f"rank {rank}:\n{value}"
            outcomes.append(value)
        return outcomes
