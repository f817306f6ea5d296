"""Trains a model by plain DDP, by fixed plans, and by attach() without a plan, while the bandwidth changes at given steps. Prints
median step times between changes, and the report of attach().

    scripts/validate.py auto --model digits --nnodes 2 --rates 1000 100 1000 --steps 300 --profile profile.yaml

Needs a python3 with torch.
"""

import argparse
import concurrent.futures
import os
import pathlib
import statistics
import tempfile
import time

import whole_file
from options import at_least

from ..command import Experiment
from ..network import Network
from ..torch_bench import TorchBench, python_with, use_package

WAYS = ("ddp", "fp16", "int8block", "auto")
#: Steps after a change within which the job has to be as fast as the best fixed way, and relative excess of its step time that
#: still counts as equal.
SETTLED, CLOSE = 25, 0.05
#: Steps of the windows in which auto is compared with plain DDP.
WINDOW = 50
#: Rate, in Mbit/s, for which buffers are sized if the network has no limit.
_UNLIMITED = 10_000


def limit(network: Network, rate: int) -> None:
    """Limits the network to a rate in Mbit/s; 0: to what this machine's cores can copy."""
    if rate:
        network.shape(rate)
    else:
        network.lift(_UNLIMITED)


def run_way(options: argparse.Namespace, bench: TorchBench, way: str) -> dict:
    """Runs one job; the network changes when rank 0 announces the step. Returns the JSON object that rank 0 prints."""
    network = bench.launcher.network
    limit(network, options.rates[0])
    at = [options.steps * number for number in range(1, len(options.rates))]
    with tempfile.TemporaryDirectory(prefix="hipress-auto-") as folder, concurrent.futures.ThreadPoolExecutor(1) as thread:
        changes = pathlib.Path(folder, "change")
        arguments = ["--model", options.model, "--way", way, "--changes", changes, "--at", *at, "--warmups", 0, "--iterations",
                     options.steps * len(options.rates), *(["--profile", options.profile] if options.profile else []),
                     *(["--sharded"] if options.sharded else [])]
        job = thread.submit(bench.run_rank, options.nnodes, "auto_rank.py", *arguments, timeout_s=options.timeout)
        for number, rate in enumerate(options.rates[1:]):
            announced = changes.with_suffix(f".{number}")
            while not announced.exists() and not job.done():
                time.sleep(0.005)
            if job.done():
                break
            limit(network, rate)
            announced.unlink()
        return job.result()


def rows_of(options: argparse.Namespace, found: dict) -> list:
    """Rows of the intervals between changes: the rate, the median step time of each way once it has settled, and the number of
    steps after which auto stays close to the best way; None if it never does."""
    rows = []
    for number, rate in enumerate(options.rates):
        stretch = {way: one["steps_s"][number * options.steps:(number + 1) * options.steps] for way, one in found.items()}
        settled = {way: statistics.median(seconds[SETTLED:]) for way, seconds in stretch.items()}
        best_s = min(seconds for way, seconds in settled.items() if way != "auto")
        auto, window = stretch.get("auto", []), 5
        close = [statistics.median(auto[first:first + window]) <= (1 + CLOSE) * best_s for first in range(len(auto) - window + 1)]
        after = next((first for first, is_close in enumerate(close) if is_close and statistics.fmean(close[first:]) > 0.8), None)
        total = {way: sum(seconds) for way, seconds in stretch.items()}
        rows.append({"rate": rate, "settled_s": settled, "total_s": total, "close_after": after})
    return rows


def beside_ideals(options: argparse.Namespace, rows: list, found: dict) -> dict:
    """Compares auto with two ideals: its total time over that of a job that has the best fixed way of each interval from its first
    step on, and its slowest window of WINDOW steps over the same steps of plain DDP, with the window's first step."""
    ideal_s = sum(min(seconds for way, seconds in row["total_s"].items() if way != "auto") for row in rows)
    auto, ddp = found["auto"]["steps_s"], found["ddp"]["steps_s"]
    firsts = [first for row in range(len(rows)) for first in range(row * options.steps, (row + 1) * options.steps - WINDOW + 1)]
    slowest, first = max((sum(auto[first:first + WINDOW]) / sum(ddp[first:first + WINDOW]), first) for first in firsts)
    return {"over_ideal": sum(auto) / ideal_s, "over_ddp": sum(auto) / sum(ddp), "slowest_window": slowest, "slowest_from": first}


def add_options(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--model", default="digits", help="of examples/train.py (default: %(default)s)")
    parser.add_argument("--nnodes", type=at_least(2), default=2, help="ranks (default: %(default)s)")
    parser.add_argument("--rates", type=at_least(0), nargs="+", default=[1000, 100, 1000],
                        help="Mbit/s; 0: no limit (default: %(default)s)")
    parser.add_argument("--steps", type=at_least(50), default=300, help="at each rate (default: %(default)s)")
    parser.add_argument("--ways", nargs="+", default=list(WAYS), help="ddp, plans, auto (default: %(default)s)")
    parser.add_argument("--sharded", action="store_true",
                        help="fully_shard() divides the model, and ddp is plain FSDP2; needs PyTorch 2")
    parser.add_argument("--profile", help="of auto: costs of kernels (default: measured once)")
    parser.add_argument("--timeout", type=at_least(1), default=1800, help="seconds of a job (default: %(default)s)")


def print_table(rows: list, found: dict, ideals: dict) -> None:
    print(f"{'Mbit/s':>6} " + " ".join(f"{way:>12}" for way in found) + "  auto close to the best")
    for row in rows:
        close = "never" if row["close_after"] is None else f"after {row['close_after']} steps"
        print(f"{row['rate']:6} " + " ".join(f"{1e3 * row['settled_s'][way]:9.2f} ms" for way in found) + f"  {close}")
    print("total  " + " ".join(f"{sum(row['total_s'][way] for row in rows):10.2f} s" for way in found))
    print("loss   " + " ".join(f"{one['loss']:12.4f}" for one in found.values()))
    if ideals:
        print("auto takes {over_ideal:.3f} times as long as an ideal change of ways, and {over_ddp:.3f} times as long as plain DDP; its "
              "slowest {0} steps, from {slowest_from}, {slowest_window:.3f} times".format(WINDOW, **ideals))
    if "auto" in found:
        print(found["auto"]["report"])


def python_with_fully_shard() -> pathlib.Path:
    return python_with("from torch.distributed.fsdp import FSDPModule; FSDPModule.set_custom_all_gather",
                       "no python3 has a PyTorch 2 whose FSDPModule takes other collectives")


def run(options: argparse.Namespace) -> int:
    bench = TorchBench.of(options, **({"python": python_with_fully_shard()} if options.sharded else {}))
    use_package(options, OMP_NUM_THREADS="1")
    before = os.getloadavg()[0]
    with Network(options.nnodes) as network:
        found = {way: run_way(options, bench.on(network), way) for way in options.ways}
    rows = rows_of(options, found)
    ideals = beside_ideals(options, rows, found) if {"auto", "ddp"} <= found.keys() else {}
    print_table(rows, found, ideals)
    options.say(f"the machine's load was {before:.1f} before, and {os.getloadavg()[0]:.1f} after")
    if options.json:
        whole_file.write_json(options.json, {"rows": rows, "ideals": ideals, "jobs": found})
    return 0


EXPERIMENT = Experiment(run, add_options, again=None, kept=None, folder=False, real_time=lambda _: False)
