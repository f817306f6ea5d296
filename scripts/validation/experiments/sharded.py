"""Compares FSDP2 with a plan and FSDP2 alone, over gloo on networks of known speed.

Each cell is a number of ranks and a rate. Paced ranks sleep instead of computing, for the time that the layers took in a capture of
the text model of examples/train.py. A step of paced ranks is compared with two predictions. One is that of hipress-sim, with a
profile that hipress-profile measured over gloo on that network. The other is the sum of computation, codecs and PyTorch's own
collectives as they were timed there. On CPUs, FSDP2 waits for every collective, so hipress-sim simulates fsdp(in_flight=1,
prefetch=none). Real ranks (--compute real) train the model. With --losses 300, two ranks train 300 steps on an unlimited network,
and the means of the last 20 losses are compared. The plans are gather (int8block gathers) and both (int4block reductions, too).
Needs a python3 with PyTorch 2 (--python).
"""

import argparse
import dataclasses
import json
import pathlib
import re
import statistics
import sys

import whole_file
from options import at_least, some_of

from .. import ROOT
from ..command import Experiment
from ..conditions import taken_between
from ..network import Network
from ..ranks import ToolError
from ..torch_bench import GlooBench, python_with, run_python, use_package

NODES = (2, 4)
RATES = (200, 500, 1000)
COMPUTE = ("paced", "real")
#: Algorithms of reductions and of gathers, by plan; None: FSDP2 alone.
PLANS = {"fsdp": None, "gather": ("none", "int8block"), "both": ("int4block", "int8block")}
CODECS = "int8block,int4block"
#: Sizes at which collectives are timed, in bytes of all shards together.
SIZES = (64 << 10, 1 << 20, 4 << 20, 8 << 20)
CAPTURED_STEPS = 12
#: Schedule that predictions assume: on the host, which has no streams, FSDP2 waits for each collective.
WAITING = "fsdp(in_flight=1, prefetch=none)"
HEADER = (f"{'N':>2} {'rate':>5} {'compute':7} {'plan':7} {'measured':>10} {'speed-up':>8} {'simulated':>10} {'ratio':>6} {'summed':>10} "
          f"{'ratio':>6}")


def python_with_fsdp(named: pathlib.Path | None) -> pathlib.Path:
    """Path of a python3 with FSDP2. Raises Unavailable if there is none."""
    made = ROOT / "build/release/tests/python/pytorch2/bin/python3"
    return python_with("from torch.distributed.fsdp import FSDPModule as f; assert hasattr(f, 'set_custom_all_gather')",
                       "no python3 has PyTorch 2 with FSDPModule.set_custom_all_gather: name one with --python",
                       (named,) if named else (made, sys.executable, "/usr/bin/python3"))


@dataclasses.dataclass(frozen=True)
class Layer:
    """Elements and computation times of a parameter group, for which fully_shard() is called."""

    name: str
    elements: int
    forward_s: float
    backward_s: float


def group_of(parameter: str) -> str:
    """Name of the parameter group of a text model's parameter."""
    block = re.match(r"blocks\.(\d+)\.", parameter)
    if block:
        return f"block{block[1]}"
    return "embeddings" if parameter.startswith(("characters", "places")) else "head"


def layers_of(captured: str) -> list[Layer]:
    """Layers of a captured text model, in the order of forward. The time of forward and optimizer is divided in
    proportion to that of backward."""
    found = re.findall(r"^- \{name: (\S+), elements: (\d+), ready: ([\d.]+)us", captured, re.MULTILINE)
    forward_s = sum(float(us) for us in re.findall(r"^(?:forward|optimizer): ([\d.]+)us", captured, re.MULTILINE)) / 1e6
    elements, backward, reached = {}, {}, 0.0
    for name, count, ready in found:
        group = group_of(name)
        elements[group] = elements.get(group, 0) + int(count)
        backward[group] = backward.get(group, 0.0) + max(0.0, float(ready) / 1e6 - reached)
        reached = max(reached, float(ready) / 1e6)
    return [Layer(name, elements[name], forward_s * backward[name] / reached, backward[name]) for name in reversed(backward)]


def model_of(layers: list[Layer]) -> str:
    """Model YAML of these layers."""
    reached, lines = 0.0, []
    for layer in reversed(layers):
        reached += layer.backward_s
        lines.append(f"- {{name: {layer.name}.weight, elements: {layer.elements}, ready: {reached * 1e6:.1f}us, layer: {layer.name}}}")
    forward_us = sum(layer.forward_s for layer in layers) * 1e6
    return "\n".join(["name: text", f"forward: {forward_us:.1f}us", "gradients:", *lines, ""])


def plan_of(nnodes: int, parameters: list[tuple[str, int]], decided: tuple[str, str], schedule: str = "fsdp") -> str:
    """Plan YAML that makes the same decision for all parameters."""
    algorithm, gather = decided
    lines = [f"- {{name: {name}, elements: {elements}, algorithm: {algorithm}, K: 1, gather: {gather}}}" for name, elements in parameters]
    return "\n".join(["schema: hipress.plan/1", "model: text", "topology: allreduce", f"nodes: {nnodes}", f"schedule: {schedule}",
                      "search: given", "network: fair", "profile: none", "tool: validate.py", "gradients:", *lines, ""])


def between(points: list[list[float]], size: float) -> float:
    """Seconds of a collective of `size` bytes, interpolated between the measured sizes."""
    for (low, low_s), (high, high_s) in zip(points, points[1:]):
        if size <= high or high == points[-1][0]:
            return max(0.0, low_s + (high_s - low_s) * (size - low) / (high - low))
    raise ToolError("collectives were timed at one size alone")


@dataclasses.dataclass(frozen=True)
class Cell:
    """Results of a plan on a number of ranks at a link rate: seconds of each step, and predictions for paced ranks."""

    nnodes: int
    rate: int
    compute: str
    plan: str
    steps_s: list
    fsdp_s: float
    simulated_s: float | None
    summed_s: float | None
    disturbed: bool

    @property
    def measured_s(self) -> float:
        return statistics.median(self.steps_s)

    def to_json(self) -> dict:
        return {**dataclasses.asdict(self), "measured_s": self.measured_s, "speed_up": self.fsdp_s / self.measured_s}


def format_row(cell: Cell) -> str:
    def predicted(seconds: float | None) -> str:
        return f"{'':10} {'':6}" if seconds is None else f"{seconds * 1e3:7.1f} ms {seconds / cell.measured_s:6.2f}"

    return (f"{cell.nnodes:2} {cell.rate:5} {cell.compute:7} {cell.plan:7} {cell.measured_s * 1e3:7.1f} ms {cell.fsdp_s / cell.measured_s:8.2f} "
            f"{predicted(cell.simulated_s)} {predicted(cell.summed_s)}{' disturbed' if cell.disturbed else ''}")


@dataclasses.dataclass
class ShardedBench(GlooBench):
    """Bench that runs ranks of FSDP2."""

    real_iterations: int = 6
    layers: list = dataclasses.field(default_factory=list)

    @property
    def kernels(self) -> pathlib.Path:
        return self.output / "kernels.yaml"

    def prepare(self) -> None:
        """Captures the model and profiles the codecs, each in one process on this machine, without the emulated network."""
        captured = self.capture(self.output / "captured_text.yaml", ["--model", "text"], CAPTURED_STEPS)
        if not (self.keep_profiles and self.kernels.exists()):
            self.ordinary.run(2, "hipress-profile", "--quick", "--passes", 1, "--algorithm", CODECS, "--output", self.kernels)
        self.layers = layers_of(captured.read_text(encoding="utf-8"))
        (self.output / "layers.json").write_text(json.dumps([dataclasses.asdict(layer) for layer in self.layers]), encoding="utf-8")
        (self.output / "model.yaml").write_text(model_of(self.layers), encoding="utf-8")

    def ranks(self, nnodes: int, *arguments: object) -> dict:
        return self.run_rank(nnodes, "sharded_rank.py", *arguments, timeout_s=1800)

    def profile(self, rate: int, nnodes: int) -> pathlib.Path:
        """Profiles gloo's links and collectives on a network, and adds the profiled kernels. Returns the path."""
        name = f"gloo_{rate}_{nnodes}"
        if not self.has_profile(name):
            self.measure_profile(name, nnodes, "--base", self.kernels)
        return self.profile_path(name)

    def simulated_s(self, nnodes: int, profile: pathlib.Path, plan: pathlib.Path | str) -> float:
        schedule = ("--schedule", WAITING) if plan == "none" else ()
        report = self.ordinary.run_json(nnodes, "hipress-sim", "--input", self.output / "model.yaml", "--profile", profile, "--topology",
                                        "allreduce", "--plan", plan, *schedule)
        return report["iteration_s"]

    def summed_s(self, nnodes: int, times: dict, decided: tuple[str, str] | None, codecs: dict) -> float:
        """Prediction by a sum: computation, collectives as they were measured, and codecs at their profiled speed."""
        total = 0.0
        reduction, gather = decided or ("none", "none")
        for layer in self.layers:
            size = 4 * layer.elements
            total += layer.forward_s + layer.backward_s
            total += 2 * (between(times["all_gather"], size * codecs[gather]["share"]) + codecs[gather]["gather_s"] * layer.elements)
            kind = "reduce_scatter" if reduction == "none" else "all_to_all"
            total += between(times[kind], size * codecs[reduction]["share"]) + codecs[reduction]["reduce_s"] * layer.elements
        return total

    def codecs(self, nnodes: int) -> dict:
        """Message size relative to fp32, and codec seconds per element of a layer for a gather and for a reduction. A gather
        encodes one shard and decodes all; a reduction encodes all shards and decodes one."""
        found = {"none": {"share": 1.0, "gather_s": 0.0, "reduce_s": 0.0}}
        text = self.kernels.read_text(encoding="utf-8")
        for name, share in (("int8block", (1 + 4 / 256) / 4), ("int4block", (0.5 + 4 / 64) / 4)):
            curves = re.search(rf"^    {name}:\n((?:      .*\n)+)", text, re.MULTILINE)[1]
            slopes = {kind: max(map(float, re.findall(r"s_per_element: ([\d.e-]+)", pieces)))
                      for kind, pieces in re.findall(r"^      (\w+):\n((?:        .*\n)+)", curves, re.MULTILINE)}
            found[name] = {"share": share, "gather_s": slopes["encode"] / nnodes + slopes["decode"],
                           "reduce_s": slopes["encode"] + slopes["decode_add"]}
        return found

    def run_cells(self, nnodes: int, rate: int, compute: str, parameters: list[tuple[str, int]]) -> list[Cell]:
        times = self.ranks(nnodes, "--sizes", ",".join(map(str, SIZES)), "--warmups", 0, "--iterations", 0) if compute == "paced" else None
        if times:
            (self.output / f"collectives_{rate}_{nnodes}.json").write_text(json.dumps(times), encoding="utf-8")
            self.say(f"{nnodes} ranks at {rate} Mbit/s: " + "; ".join(
                f"{name} {', '.join(f'{size >> 10} KiB {seconds * 1e3:.1f} ms' for size, seconds in points)}" for name, points in times.items()))
        profile = self.profile(rate, nnodes) if times else None
        cells, fsdp_s = [], 0.0
        for name, decided in PLANS.items():
            arguments, predictions = [], (None, None)
            if compute == "paced":
                arguments = ["--paced", self.output / "layers.json"]
            if decided:
                path = self.output / f"plan_{compute}_{nnodes}_{name}.yaml"
                path.write_text(plan_of(nnodes, parameters, decided), encoding="utf-8")
                arguments += ["--plan", path]
            if times:
                predictions = self.predict(nnodes, profile, name, decided, times, parameters)
            measured = {}

            def measure() -> None:
                measured.update(self.ranks(nnodes, "--warmups", 2, "--iterations", self.plan.iterations if times else self.real_iterations,
                                           *arguments))

            _, disturbed = self.undisturbed(measure, taken_between)
            fsdp_s = fsdp_s or statistics.median(measured["iterations_s"])
            cells.append(Cell(nnodes, rate, compute, name, measured["iterations_s"], fsdp_s, *predictions, disturbed))
            print(format_row(cells[-1]), flush=True)
        return cells

    def predict(self, nnodes: int, profile: pathlib.Path, name: str, decided: tuple[str, str] | None, times: dict,
                parameters: list[tuple[str, int]]) -> tuple[float, float]:
        """Predicted seconds of a step: by hipress-sim, and by the sum of summed_s()."""
        plan: pathlib.Path | str = "none"
        if decided:
            plan = self.output / f"predicted_{nnodes}_{name}.yaml"
            plan.write_text(plan_of(nnodes, parameters, decided, WAITING), encoding="utf-8")
        return self.simulated_s(nnodes, profile, plan), self.summed_s(nnodes, times, decided, self.codecs(nnodes))


def text_parameters(python: pathlib.Path) -> list[tuple[str, int]]:
    """Names and elements of the text model's parameters."""
    code = ("import argparse, json, tasks; model = tasks.Text(argparse.Namespace(text=None, batch=0, optimizer=None)).make(); "
            "print(json.dumps([(name, value.numel()) for name, value in model.named_parameters()]))")
    return [(name, elements) for name, elements in json.loads(run_python(python, "-c", code))]


def compare_losses(bench: ShardedBench, steps: int, parameters: list[tuple[str, int]]) -> dict:
    """Means of the last 20 losses of two ranks without a limited network, uncompressed and under each plan."""
    found = {}
    with Network(2) as network:
        on_network = bench.on(network)
        for name, decided in PLANS.items():
            arguments = []
            if decided:
                path = bench.output / f"plan_losses_{name}.yaml"
                path.write_text(plan_of(2, parameters, decided), encoding="utf-8")
                arguments = ["--plan", path]
            losses = on_network.ranks(2, "--warmups", 0, "--iterations", steps, *arguments)["losses"]
            found[name] = statistics.fmean(losses[-20:])
            print(f"{steps} steps, {name}: loss {found[name]:.4f}, {(found[name] / found['fsdp'] - 1) * 100:+.2f} %", flush=True)
    return found


def measure(bench: ShardedBench, options: argparse.Namespace, parameters: list[tuple[str, int]]) -> list[Cell]:
    cells = []
    for nnodes in options.nnodes:
        with Network(nnodes) as network:
            for rate in options.rates:
                network.shape(rate)
                for compute in options.compute:
                    paced = [(f"{layer.name}.weight", layer.elements) for layer in bench.layers]
                    cells += bench.on(network).run_cells(nnodes, rate, compute, paced if compute == "paced" else parameters)
    return cells


def add_options(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--nnodes", type=some_of(NODES, int), default=list(NODES), help="comma-separated: 2, 4")
    parser.add_argument("--rates", type=some_of(RATES, int), default=list(RATES), help="comma-separated: 200, 500, 1000 (Mbit/s)")
    parser.add_argument("--compute", type=some_of(COMPUTE, str), default=["paced"], help="comma-separated: paced, real (default: paced)")
    parser.add_argument("--losses", type=at_least(20), metavar="STEPS", help="compare losses after so many steps instead")
    parser.add_argument("--python", type=pathlib.Path, help="with PyTorch 2 (default: that of the long tests, or this one)")


def run(options: argparse.Namespace) -> int:
    bench = ShardedBench.of(options, python=python_with_fsdp(options.python))
    use_package(options)
    parameters = text_parameters(bench.python)
    if options.losses:
        found = {"losses": compare_losses(bench, options.losses, parameters)}
    else:
        if "paced" in options.compute:
            bench.prepare()
        print(HEADER, flush=True)
        found = {"cells": [cell.to_json() for cell in measure(bench, options, parameters)]}
    if options.json:
        whole_file.write_json(options.json, found)
    return 0


EXPERIMENT = Experiment(run, add_options, iterations=8, kept="capture and kernels")
