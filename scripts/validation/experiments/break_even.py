"""Replays plans on both sides of predicted break-evens, the bandwidths at which compression ceases to pay according to hipress-plan
--break-even, on a network of known speed. The models are VGG19 and BERT-large on two nodes, scaled so that an iteration takes about
a second. At a quarter and a half of the break-even, and at 1.5 and 2.5 times it, the fastest compressing plan and the fastest
uncompressed plan run in turn. Prints the predicted and the measured saving by compression, and whether both are on the same side of
the tolerance.
"""

import argparse
import dataclasses
import pathlib
import statistics

import whole_file
from options import at_least

from .. import ROOT
from ..cases import Case, Scale, scaled_model
from ..command import Experiment
from ..measurement import Bench
from ..network import Network

MODELS = ("vgg19", "bert_large")
NODES = 2
RATE = 500  #: rate of the profiled network, in Mbit/s
FACTORS = (0.25, 0.5, 1.5, 2.5)  #: measured bandwidths, as multiples of the predicted break-even
BYTES = 24e6  #: size of the scaled gradients
COMPUTE_S = 0.6
TOLERANCE = 0.005  #: Saving that compression must exceed to pay, hipress-plan's default.


@dataclasses.dataclass(frozen=True)
class Side:
    """Results of a model at one bandwidth: seconds of an iteration with the best compressing plan and with the best uncompressed
    one."""

    model: str
    factor: float
    mbits: int
    predicted: tuple[float, float]  #: with compression, and without
    measured: tuple[float, float]

    @staticmethod
    def saving(seconds: tuple[float, float]) -> float:
        return 1 - seconds[0] / seconds[1]

    @property
    def agrees(self) -> bool:
        """True if the measured saving is above the tolerance at a bandwidth below the break-even, or not above it at a higher
        bandwidth."""
        return (self.saving(self.measured) > TOLERANCE) == (self.factor < 1)

    def to_json(self) -> dict:
        return {"model": self.model, "factor": self.factor, "mbits": self.mbits, "predicted_s": self.predicted,
                "measured_s": self.measured, "predicted_saving": self.saving(self.predicted),
                "measured_saving": self.saving(self.measured), "agrees": self.agrees}


def scaled(model: str, folder: pathlib.Path) -> pathlib.Path:
    text = (ROOT / f"models/{model}.yaml").read_text()
    elements = sum(int(line.split("elements: ")[1].split(",")[0]) for line in text.splitlines() if "elements: " in line)
    path = folder / f"{model}.yaml"
    path.write_text(scaled_model(text, Scale(BYTES / (4 * elements), 1)))
    return path


class Validation:
    def __init__(self, bench: Bench, network: Network, options: argparse.Namespace):
        self.bench, self.network, self.options = bench.on(network), network, options

    def plan(self, model: pathlib.Path, output: pathlib.Path, *more: object) -> dict:
        return self.bench.ordinary.run_json(NODES, "hipress-plan", "--input", model, "--profile", self.profile, "--topology", "ring",
                                            "--compute-time", f"{COMPUTE_S}s", "--evaluations", self.options.evaluations, "--output",
                                            output, *more)

    def replay(self, model: pathlib.Path, plan: pathlib.Path) -> list[float]:
        report = self.bench.launcher.run_json(NODES, "hipress-exec", "--input", model, "--plan", plan, "--profile", self.profile,
                                              "--compute-time", f"{COMPUTE_S}s", "--again", 0, "--iterations",
                                              self.options.iterations)
        assert report["verified"]
        return report["each_measured_iteration_s"]

    def measure_profile(self) -> None:
        case = Case("vgg16", "ring", "onebit", NODES, RATE)
        self.bench.profile_links(self.network, case)
        self.profile = self.bench.profile_path("all")
        self.bench.profile_kernels(case, "fp16,onebit", self.profile)

    def side(self, name: str, model: pathlib.Path, factor: float, mbits: int) -> Side:
        self.network.shape(mbits)
        plans = [self.options.output / f"{name}_{mbits}_{kind}.yaml" for kind in ("compressed", "raw")]
        links = ("--bandwidth", f"{mbits}Mbps")
        self.plan(model, plans[0], *links, "--algorithm", "onebit,fp16", "--write", "fastest", "--tolerance", 0)
        raw = self.plan(model, plans[1], *links, "--algorithm", "none")
        compressed = self.bench.ordinary.run_json(NODES, "hipress-sim", "--input", model, "--plan", plans[0], "--profile", self.profile,
                                                  "--compute-time", f"{COMPUTE_S}s", *links)
        measured: list[list[float]] = [[], []]
        for _ in range(self.options.rounds):
            for seconds, plan in zip(measured, plans):
                seconds += self.replay(model, plan)
        return Side(name, factor, mbits, (compressed["iteration_s"], raw["predicted_iteration_s"]),
                    (statistics.median(measured[0]), statistics.median(measured[1])))

    def of_model(self, name: str) -> list[Side]:
        model = scaled(name, self.options.output)
        report = self.plan(model, self.options.output / f"{name}_planned.yaml", "--algorithm", "onebit,fp16", "--break-even", "bandwidth")
        turns = report["break_even"]["turns"]
        print(f"{name}: {'; '.join(report['break_even']['sentences'])}", flush=True)
        if len(turns) != 1:
            self.options.say(f"{name}: {len(turns)} break-evens, one was expected")
            return []
        sides = []
        for factor in FACTORS:
            sides.append(self.side(name, model, factor, max(1, round(factor * turns[0]["value"] * 8 / 1e6))))
            print_side(sides[-1])
        return sides


def print_side(side: Side) -> None:
    print(f"{side.model:10} {side.mbits:6} Mbit/s ({side.factor:4.2f} x): compressing saves {Side.saving(side.predicted) * 100:5.1f} % "
          f"as predicted, {Side.saving(side.measured) * 100:5.1f} % as measured ({side.measured[0] * 1e3:.1f} ms, "
          f"{side.measured[1] * 1e3:.1f} ms): {'agrees' if side.agrees else 'disagrees'}", flush=True)


def add_options(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--models", default=",".join(MODELS), help="comma-separated: shipped models")
    parser.add_argument("--evaluations", type=at_least(1), default=60, help="simulations of each search")


def run(options: argparse.Namespace) -> int:
    with Network(NODES) as network:
        validation = Validation(Bench.of(options), network, options)
        validation.measure_profile()
        sides = [side for name in options.models.split(",") for side in validation.of_model(name)]
    print(f"{sum(side.agrees for side in sides)} of {len(sides)} agree")
    if options.json:
        whole_file.write_json(options.json, [side.to_json() for side in sides])
    return 0


EXPERIMENT = Experiment(run, add_options, rounds=2, iterations=6)
