"""Replays schedules of local updates and of sharded training on networks of known speed, and compares the measured time of a period
with the prediction of hipress-exec. There are four ranks at 200 and 50 Mbit/s; the model has twelve layers of 200 000 elements and
steps of 60 ms. Every value is verified. Prints a line for each schedule and the errors of all.
"""

import argparse
import pathlib
import typing

import whole_file

from ..cases import Case
from ..command import Experiment
from ..measurement import ONCE, Bench
from ..network import Network
from ..replayed import Replayed, describe_errors

RANKS = 4
LAYERS, ELEMENTS = 12, 200_000
STEP_US = 60_000


class Row(typing.NamedTuple):
    schedule: str
    algorithm: str
    #: For sharded schedules: algorithm with which parameters are gathered, and value of --shards-by.
    gathered: str = "none"
    shards_by: str = ""


SCHEDULES = (Row("local(steps=10)", "none"), Row("local(steps=12, fragments=4)", "none"),
             Row("local(steps=12, fragments=4, overlap=1)", "none"), Row("local(steps=12, fragments=6, overlap=2)", "int4block"),
             Row("fsdp", "none", shards_by="ring"), Row("fsdp", "none", shards_by="direct"),
             Row("fsdp(reshard=false)", "none", shards_by="ring"), Row("fsdp(prefetch=none)", "none", shards_by="ring"),
             Row("fsdp", "int4block", "int8block", "ring"),
             Row("fsdp(communicators=separate)", "int4block", "int8block", "direct"))


def name_of(place: int) -> str:
    """Name of the gradient that becomes ready at a place in backward, counted from 0."""
    return f"blocks.{LAYERS - 1 - place}.weight"


def write_model(path: pathlib.Path) -> pathlib.Path:
    """Writes a model whose layers are all alike. Gradients of the last layer are ready first, and forward takes a third of the
    step. Returns the path."""
    lines = ["name: layers", f"forward: {STEP_US // 3}us", "gradients:"]
    for place in range(LAYERS):
        ready_us = 2 * STEP_US / 3 * (place + 1) / LAYERS
        lines.append(f"- {{name: {name_of(place)}, elements: {ELEMENTS}, ready: {ready_us:.1f}us}}")
    path.write_text("\n".join(lines) + "\n", encoding="utf-8")
    return path


def plan_of(row: Row, case: Case, folder: pathlib.Path) -> tuple[object, ...]:
    """Options of a row's plan: a named plan, or a plan file if parameters and gradients have different algorithms."""
    shards_by = ("--shards-by", row.shards_by) if row.shards_by else ()
    if row.algorithm == "none":
        return "--plan", "none", *shards_by
    if row.gathered == "none":
        return "--plan", "all", "--algorithm", row.algorithm, *shards_by
    path = folder / f"plan_{row.algorithm}_{row.gathered}.yaml"
    lines = ["schema: hipress.plan/1", "model: layers", f"topology: {case.topology}", f"nodes: {RANKS}",
             f"schedule: {row.schedule}", "gradients:"]
    lines += [f"- {{name: {name_of(place)}, elements: {ELEMENTS}, algorithm: {row.algorithm}, K: 1, gather: {row.gathered}}}"
              for place in range(LAYERS)]
    path.write_text("\n".join(lines) + "\n", encoding="utf-8")
    return "--plan", path, *shards_by


def run_schedule(bench: Bench, case: Case, row: Row, model: pathlib.Path, options: argparse.Namespace) -> Replayed:
    """Replays the rounds of one schedule. Each round is predicted by a profile of the same conditions."""
    replayed = Replayed()
    plan = plan_of(row, case, options.output)
    for _ in range(options.rounds):
        profile = bench.profile_now(case)
        replayed.once(bench, lambda path=profile.path: replayed.add(bench.launcher.run_json(
            RANKS, "hipress-exec", "--input", model, *plan, "--topology", case.topology, "--schedule", row.schedule, "--profile",
            path, "--warmup", 1, "--iterations", options.iterations, *ONCE)))
    return replayed


def describe(rate: int, row: Row, result: Replayed) -> str:
    forms = row.algorithm if row.gathered == "none" else f"{row.gathered}, {row.algorithm}"
    return (f"{rate:5} Mbit/s  {row.schedule:42} {row.shards_by:6} {forms:20} predicted {result.predicted_s() * 1e3:8.1f} ms "
            f"({result.predicted_s('_p10') * 1e3:.1f} to {result.predicted_s('_p90') * 1e3:.1f}), measured "
            f"{result.measured_s * 1e3:8.1f} ms, error {result.error * 100:+5.1f} %, "
            f"{'verified' if result.verified else 'NOT VERIFIED'}")


def add_options(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--rates", default="200,50", help="of the links, in Mbit/s (default: %(default)s)")


def run(options: argparse.Namespace) -> int:
    model = write_model(options.output / "layers.yaml")
    found, rows = [], []
    with Network(RANKS) as network:
        for rate in map(int, options.rates.split(",")):
            bench = Bench.of(options).on(network)
            bench.profile_links(network, Case("layers", "ring", "none", RANKS, rate))
            for row in SCHEDULES:
                kernels = row.algorithm if row.gathered == "none" else f"{row.algorithm},{row.gathered}"
                case = Case("layers", "ring", kernels, RANKS, rate)
                result = run_schedule(bench, case, row, model, options)
                print(describe(rate, row, result), flush=True)
                found.append(result)
                rows.append({"rate": rate, **row._asdict(), **result.times()})
    print(describe_errors(found))
    if options.json:
        whole_file.write_json(options.json, rows)
    return 0 if all(result.verified for result in found) else 1


EXPERIMENT = Experiment(run, add_options, rounds=2, iterations=3)
