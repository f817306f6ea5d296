"""Compares training with a plan and with PyTorch's DistributedDataParallel, alone and with its fp16 and powerSGD hooks, on networks
of known speed. Also compares predictions from captures with measurements.

The models are those of examples/train.py: a CNN, and a transformer of 10.8 million parameters. A cell is a model, a number of ranks
and a rate. For each cell, hipress-plan plans for the captured model and the profiled network, and the ranks run. Paced ranks draw
random gradients, at the ready times of a capture that had the machine to itself. Real ranks compute (--compute real), and slow each
other, because they share the machine's cores: the capture has their use of cores, and the prediction shares the cores among them.
Real ranks train in all ways in one run, in turns of a block of steps, so that changes of the machine's speed affect all ways alike.
A cell with such a change is marked. The final losses of the ways are compared. Captures are made without the network. Needs a
python3 with torch.
"""

import argparse
import dataclasses
import itertools
import json
import pathlib
import re
import shlex
import statistics
import typing

import whole_file
from options import at_least, some_of

from ..cases import Case, gradients_of
from ..command import Experiment
from ..conditions import taken_between
from ..evaluation import quantile
from ..network import INTERFACE, Network
from ..torch_bench import TorchBench, use_package

MODELS = ("digits", "text")
NODES = (2, 4)
RATES = (200, 1000)
COMPUTE = ("paced", "real")


class Hook(typing.NamedTuple):
    """Way in which DDP averages: options of the paced rank and of the real rank, and the pilot's algorithm with the same
    arithmetic."""

    paced: list
    real: list
    algorithm: str | None


DDP = {"ddp": Hook([], ["--average", "ddp"], None), "ddp+fp16": Hook(["--fp16"], ["--average", "fp16"], "fp16"),
       **{f"ddp+powersgd {rank}": Hook(["--powersgd", str(rank)], ["--average", "powersgd", "--rank", str(rank)], f"powersgd(rank={rank})")
          for rank in (1, 2, 4)}}
#: Bucket size of DDP for jobs with a plan, in MiB: gradients are sent soon after they are ready, not only when 25 MiB are ready.
SMALL_BUCKETS = ["--bucket-mb", "1"]
#: Options of the planner: the plan must also be good on links that are slower or faster by this share.
UNCERTAINTY = ["--robust", "--bandwidth-uncertainty", "0.1"]
#: Algorithms that plans may use: those of DDP's hooks, so that losses can be compared.
ALGORITHMS = "fp16,powersgd(rank=1),powersgd(rank=2),powersgd(rank=4)"
#: Largest share by which a plan may be slower than the best and still count as the best.
TIE = 0.03
CAPTURED_STEPS = 12
#: Captured steps of models that real ranks train, which take a few seconds.
CAPTURED_REAL = {"digits": 200, "text": 14}
#: Steps of real ranks, by model: enough for the CNN to learn, and for the transformer to learn a part.
STEPS = {"digits": 300, "text": 24}
#: Steps of a way of training in its turn, by model. The first step of each turn is not counted.
BLOCK = {"digits": 30, "text": 8}
#: Time after which ranks of a real run count as hanging, in seconds.
REAL_TIMEOUT_S = 900
#: Factor between the times of blocks of one way. A larger factor means that the machine's speed changed.
SAME_SPEED = 1.15

HEADER = f"{'model':7} {'N':>2} {'rate':>5} {'compute':7} {'predicted':>10} {'ours':>9} {'error':>7} {'bytes':>7} {'best of DDP':>22} {'DDP/ours':>8}"


def paced_names(text: str) -> str:
    """Renames the gradients of a captured model to `weights.N`, as a paced rank names them. N is the place in forward."""
    count = len(re.findall(r"^- \{name: ", text, re.MULTILINE))
    numbers = iter(range(count - 1, -1, -1))
    return re.sub(r"^- \{name: .*?, elements:", lambda _: f"- {{name: weights.{next(numbers)}, elements:", text, flags=re.MULTILINE)


def as_scripts_read(text: str) -> str:
    """Captured model without comments and without its use of cores, since paced ranks do not keep cores busy. Forward is in ms, and
    includes the optimizer's time before it, as for the tools."""
    text = re.sub(r"  #.*$|^#.*\n", "", text, flags=re.MULTILINE)
    text = re.sub(r"^(?:threads|\w+_core_time|hook|memory_traffic): .*\n|, core_time: [\d.]+us", "", text, flags=re.MULTILINE)
    parts = re.compile(r"^(?:forward|optimizer): ([\d.]+)us\n", re.MULTILINE)
    ms = sum(float(us) for us in parts.findall(text)) / 1e3
    return parts.sub("", text).replace("gradients:", f"forward: {ms:.6f}ms\ngradients:", 1)


def by_bandwidth(model: dict, nnodes: int, rate: int) -> float:
    """Simple prediction of an iteration in seconds: computation, and then all fp32 gradients in a ring at full bandwidth."""
    size_bytes = 4 * sum(gradient["elements"] for gradient in model["gradients"])
    last_s = max(gradient["ready_s"] for gradient in model["gradients"])
    return model["forward_s"] + last_s + 2 * (nnodes - 1) / nnodes * size_bytes / (rate * 1e6 / 8)


@dataclasses.dataclass(frozen=True)
class Cell:
    """Results of one model, number of ranks and link rate: seconds of each step with our plan and with DDP, and the prediction."""

    model: str
    nnodes: int
    rate: int
    compute: str
    predicted_s: float
    bandwidth_s: float
    ours: list  #: seconds of steps with our plan
    ddp: dict  #: {name: seconds of steps} for DDP and its hooks
    losses: dict  #: final loss of real ranks, by name
    disturbed: bool
    changed_speed: bool = False  #: true if the machine's speed changed between blocks of real ranks

    @property
    def ours_s(self) -> float:
        return statistics.median(self.ours)

    @property
    def error(self) -> float:
        return self.predicted_s / self.ours_s - 1

    @property
    def bandwidth_error(self) -> float:
        return self.bandwidth_s / self.ours_s - 1

    @property
    def best(self) -> str:
        return min(self.ddp, key=lambda name: statistics.median(self.ddp[name]))

    @property
    def ratio(self) -> float:
        return statistics.median(self.ddp[self.best]) / self.ours_s

    @property
    def wins(self) -> bool:
        return self.ratio >= 1 - TIE

    def to_json(self) -> dict:
        return {**dataclasses.asdict(self), "ours_s": self.ours_s, "error": self.error, "bandwidth_error": self.bandwidth_error,
                "best": self.best, "ratio": self.ratio, "wins": self.wins}


def format_row(cell: Cell) -> str:
    best_s = statistics.median(cell.ddp[cell.best])
    losses = "".join(f" {name} {loss:.3f}" for name, loss in cell.losses.items())
    return (f"{cell.model:7} {cell.nnodes:2} {cell.rate:5} {cell.compute:7} {cell.predicted_s * 1e3:7.1f} ms {cell.ours_s * 1e3:6.1f} ms "
            f"{cell.error * 100:+6.1f}% {cell.bandwidth_error * 100:+6.0f}% {cell.best:>12} {best_s * 1e3:6.1f} ms {cell.ratio:8.2f}"
            f"{' disturbed' if cell.disturbed else ''}{' changed speed' if cell.changed_speed else ''}{f'; final loss:{losses}' if losses else ''}")


@dataclasses.dataclass
class Measured:
    """Seconds of each step, and final losses of real ranks, by the name of a hook or "ours"."""

    steps: dict = dataclasses.field(default_factory=dict)
    losses: dict = dataclasses.field(default_factory=dict)
    changed_speed: bool = False

    def take(self, other: "Measured") -> None:
        self.steps, self.losses, self.changed_speed = other.steps, other.losses, other.changed_speed


@dataclasses.dataclass
class TrainingBench(TorchBench):
    """Bench whose links are profiled over the tools' default transport, which jobs with a plan use."""

    algorithms: str = ALGORITHMS  #: algorithms whose kernels are profiled, and which plans may use
    steps: int | None = None  #: steps of real ranks; None: STEPS

    def captured(self, model: str, compute: str) -> pathlib.Path:
        steps = CAPTURED_REAL[model] if compute == "real" else CAPTURED_STEPS
        return self.capture(self.output / f"captured_{model}_{compute}.yaml", ["--model", model], steps, *SMALL_BUCKETS)

    def profile(self, case: Case) -> pathlib.Path:
        """Path of the profile of this network's links and the machine's kernels, which profile_network() makes."""
        return self.profile_path(f"{case.rate}_{case.nnodes}_kernels")

    def profile_network(self, network: Network, case: Case) -> None:
        self.profile_links(network, case)
        if not (self.keep_profiles and self.profile(case).exists()):
            self.profile_kernels(case, self.algorithms, self.profile(case))

    def plan_for(self, case: Case, model: pathlib.Path) -> tuple[pathlib.Path, float]:
        """Path of the plan for a model, and its predicted iteration."""
        plan = self.output / f"plan_{model.stem}_{case.rate}.yaml"
        report = self.ordinary.run_json(case.nnodes, "hipress-plan", "--input", model, "--topology", "ring", "--profile",
                                        self.profile(case), "--algorithm", self.algorithms, "--search", "timeline", *UNCERTAINTY,
                                        "--output", plan)
        return plan, report["predicted_iteration_s"]

    def run_cell(self, case: Case, compute: str, captured: str) -> Cell:
        model = self.output / f"{case.model}_{compute}_{case.nnodes}.yaml"
        model.write_text(as_scripts_read(paced_names(captured)) if compute == "paced" else captured)
        described = gradients_of(as_scripts_read(model.read_text()))
        model.with_suffix(".json").write_text(json.dumps(described))
        plan, predicted_s = self.plan_for(case, model)
        ours = ["--plan", plan, "--timings", model, *SMALL_BUCKETS]
        runs = {"ours": Hook(ours, ["--average", "hipress", *ours], None), **DDP}
        measured = Measured()

        def measure() -> None:
            if compute == "paced":
                steps = {name: self.run_paced(case, model.with_suffix(".json"), hook.paced) for name, hook in runs.items()}
                measured.take(Measured(steps))
            else:
                measured.take(self.run_real(case, {name: hook.real for name, hook in runs.items()}))

        _, disturbed = self.undisturbed(measure, taken_between)
        return Cell(case.model, case.nnodes, case.rate, compute, predicted_s, by_bandwidth(described, case.nnodes, case.rate),
                    measured.steps.pop("ours"), measured.steps, measured.losses, disturbed, measured.changed_speed)

    def run_paced(self, case: Case, model: pathlib.Path, arguments: list) -> list[float]:
        return self.run_rank(case.nnodes, "ddp_rank.py", "--model", model, "--warmups", 4, "--iterations", self.plan.iterations,
                             *arguments)["iterations_s"]

    def run_real(self, case: Case, ways: dict) -> Measured:
        """Trains real ranks in one run, with the hooks of `ways` in turn. Losses are means of the last 20 steps. The losses under
        each hook are also written to a CSV, for plot.py losses."""
        report = self.run_ways(case.nnodes, {name: ["--model", case.model, *arguments] for name, arguments in ways.items()},
                               self.steps or STEPS[case.model], BLOCK[case.model])
        for name, way in report.items():
            self.write_losses(case, name, way)
        counted = {name: [steps[1:] for steps in way["blocks_s"]] for name, way in report.items()}
        rounds = [sum(map(statistics.median, blocks)) for blocks in zip(*counted.values())]
        return Measured({name: [step for steps in blocks for step in steps] for name, blocks in counted.items()},
                        {name: statistics.fmean(way["losses"][-20:]) for name, way in report.items()},
                        max(rounds) > SAME_SPEED * min(rounds))

    def run_ways(self, nnodes: int, ways: dict, steps: int, block: int) -> dict:
        """Trains once for each of `ways` ({name: arguments of train.py}), a block of steps of each in turn. Returns the output of
        training_rank.py by name."""
        asked = [word for name, arguments in ways.items() for word in ("--way", f"{name}={shlex.join(map(str, arguments))}")]
        return self.run_rank(nnodes, "training_rank.py", "--warmups", 4, "--iterations", steps, "--block", block, *asked,
                             timeout_s=REAL_TIMEOUT_S)["ways"]

    def write_losses(self, case: Case, name: str, way: dict) -> None:
        """Writes the losses of one training of run_ways(), over the seconds of its own steps."""
        ends = itertools.accumulate(step for steps in way["blocks_s"] for step in steps)
        log = self.output / f"losses_{case.model}_{case.nnodes}_{case.rate}_{name.replace(' ', '')}.csv"
        with log.open("w", newline="") as file:
            file.write("average,step,seconds,loss\n")
            file.writelines(f'"{name}",{step},{end:.6f},{loss:.6f}\n'
                            for step, (end, loss) in enumerate(zip(ends, way["losses"][-sum(map(len, way["blocks_s"])):])))


def measure(bench: TrainingBench, options: argparse.Namespace) -> list[Cell]:
    cells = []
    captured = {(model, compute): bench.captured(model, compute).read_text() for compute in options.compute for model in options.models}
    for nnodes in options.nnodes:
        with Network(nnodes) as network:
            for rate in options.rates:
                cases = [Case(model, "ring", "fp16", nnodes, rate) for model in options.models]
                on_network = bench.on(network)
                on_network.profile_network(network, cases[0])
                for case in cases:
                    for compute in options.compute:
                        cells.append(on_network.run_cell(case, compute, captured[case.model, compute]))
                        print(format_row(cells[-1]), flush=True)
    return cells


def summary(cells: list[Cell]) -> str:
    """Summary of the cells with one kind of computation."""
    errors, naive = [abs(cell.error) for cell in cells], [abs(cell.bandwidth_error) for cell in cells]
    return (f"{cells[0].compute}: best, or within {TIE * 100:.0f} % of it, in {sum(cell.wins for cell in cells)} of {len(cells)} cells; "
            f"error of the prediction: median {statistics.median(errors) * 100:.1f} %, p90 {quantile(errors, 0.9) * 100:.1f} %; of bytes "
            f"over bandwidth: median {statistics.median(naive) * 100:.1f} %, p90 {quantile(naive, 0.9) * 100:.1f} %")


def finish(options: argparse.Namespace, cells: list[Cell]) -> int:
    for compute in options.compute:
        print(summary([cell for cell in cells if cell.compute == compute]))
    if options.json:
        whole_file.write_json(options.json, {"cells": [cell.to_json() for cell in cells]})
    return 0


def add_options(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--models", type=some_of(MODELS, str), default=list(MODELS), help=f"comma-separated: {', '.join(MODELS)}")
    parser.add_argument("--nnodes", type=some_of(NODES, int), default=list(NODES), help="comma-separated: 2, 4")
    parser.add_argument("--rates", type=some_of(RATES, int), default=list(RATES), help="comma-separated: 200, 1000 (Mbit/s)")
    parser.add_argument("--compute", type=some_of(COMPUTE, str), default=["paced"], help="comma-separated: paced, real (default: paced)")
    parser.add_argument("--steps", type=at_least(30), help=f"of real ranks (default: {', '.join(f'{model} {steps}' for model, steps in STEPS.items())})")


def run(options: argparse.Namespace) -> int:
    bench = TrainingBench.of(options, steps=options.steps)
    use_package(options, GLOO_SOCKET_IFNAME=INTERFACE)
    print(HEADER, flush=True)
    return finish(options, measure(bench, options))


EXPERIMENT = Experiment(run, add_options, iterations=12, kept="captures and profiles")
