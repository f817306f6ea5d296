"""Defines the cases of the experiment networks, and scales models so that a case takes seconds."""

import dataclasses
import itertools
import math
import pathlib
import re

MODELS = ("resnet50", "vgg16", "lstm", "gpt2")
TOPOLOGIES = ("ps", "ring")
ALGORITHMS = ("none", "fp16", "onebit", "terngrad", "dgc")
NODES = (2, 3, 4)
RATES = (200, 500, 1000)  #: Mbit/s in each direction
LOOPBACK = "loopback"  #: rate of a case without a network: only the cores limit it

#: Size of a scaled model's gradients at 200 Mbit/s, in bytes; in proportion at other rates.
SCALED_BYTES = 48e6
#: Rate in Mbit/s. Computation is scaled so that its ratio to communication is that of the unscaled model on links of this rate. It
#: is low, because a case only tests the prediction if computation does not hide all communication.
EMULATED_RATE = 100
LOOPBACK_BYTES = 100e6
#: Approximate rate of loopback, in Mbit/s. Computation is scaled as for links of that rate; otherwise it would hide all
#: communication.
LOOPBACK_RATE = 10000


@dataclasses.dataclass(frozen=True)
class Case:
    model: str
    topology: str
    algorithm: str
    nnodes: int
    rate: int | str

    @property
    def name(self) -> str:
        rate = self.rate if self.rate == LOOPBACK else f"{self.rate} Mbit/s"
        return f"{self.model}, {self.topology}, {self.algorithm}, {self.nnodes} nodes, {rate}"

    @property
    def group(self) -> tuple:
        """Key of the job. Cases with the same key are different plans for one job."""
        return self.rate, self.nnodes, self.model


def matrix(rates=RATES) -> list[Case]:
    """All cases, ordered by group."""
    return [Case(model, topology, algorithm, nnodes, rate)
            for rate, nnodes, model, topology, algorithm in itertools.product(rates, NODES, MODELS, TOPOLOGIES,
                                                                              ALGORITHMS)]


def quick() -> list[Case]:
    """Twelve cases: four jobs, and three plans for each."""
    jobs = (("resnet50", 4, 200), ("vgg16", 3, 500), ("lstm", 4, 1000), ("gpt2", 2, 500))
    plans = (("ring", "none"), ("ps", "fp16"), ("ring", "onebit"))
    return [Case(model, topology, algorithm, nnodes, rate)
            for (model, nnodes, rate), (topology, algorithm) in itertools.product(jobs, plans)]


class ConditionError(Exception):
    """Error: a condition of --only is wrong."""


def only(cases: list[Case], conditions: str) -> list[Case]:
    """Selects the cases that meet all conditions, such as "model=lstm,rate=200|500"."""
    fields = [field.name for field in dataclasses.fields(Case)]
    for condition in filter(None, conditions.split(",")):
        field, _, values = condition.partition("=")
        if field not in fields:
            raise ConditionError(f"--only {condition}: give {', '.join(fields)}, as in model=lstm,rate=200|500")
        wanted = values.split("|")
        known = {str(getattr(case, field)) for case in cases}
        for value in wanted:
            if value not in known:
                raise ConditionError(f"--only {condition}: no case has {field} '{value}'; there are "
                                     f"{', '.join(sorted(known))}")
        cases = [case for case in cases if str(getattr(case, field)) in wanted]
    return cases


@dataclasses.dataclass(frozen=True)
class Scale:
    """Factors by which a model is scaled: `size` for its gradients, `time` for its times."""

    size: float
    time: float


GRADIENT = re.compile(r"- \{name: (?P<name>.*), elements: (?P<elements>\d+), ready: (?P<ready>[\d.]+)us"
                      r"(?:, shape: \[(?P<shape>[\d, ]+)\])?(?:, core_time: [\d.]+us)?(?:, bucket: \d+)?\}")


def scale_of(text: str, rate: int | str) -> Scale:
    size_bytes = 4 * sum(int(match["elements"]) for match in GRADIENT.finditer(text))
    if rate == LOOPBACK:
        size = min(1.0, LOOPBACK_BYTES / size_bytes)
        return Scale(size, size * EMULATED_RATE / LOOPBACK_RATE)
    size = min(1.0, SCALED_BYTES * rate / RATES[0] / size_bytes)
    return Scale(size, size * EMULATED_RATE / rate)


def gradients_of(text: str) -> dict:
    """Content of a model file, scaled or not: {"forward_s", "gradients": [{"elements", "shape", "ready_s"}]}, in the order of
    backward."""
    forward = re.search(r"^forward: ([0-9.]+)ms$", text, re.MULTILINE)
    return {"forward_s": float(forward[1]) / 1e3,
            "gradients": [{"elements": int(match["elements"]), "ready_s": float(match["ready"]) / 1e6,
                           "shape": [int(size) for size in (match["shape"] or match["elements"]).split(",")]}
                          for match in GRADIENT.finditer(text)]}


def scaled_gradient(gradient: re.Match, scale: Scale) -> str:
    """Scales the elements of a gradient. If it has a shape, its first dimension is scaled, and the elements are the shape's
    product."""
    outermost, *inner = map(int, (gradient["shape"] or gradient["elements"]).split(","))
    shape = [max(1, round(outermost * scale.size)), *inner]
    ending = f", shape: {shape}" if gradient["shape"] else ""
    return (f"- {{name: {gradient['name']}, elements: {math.prod(shape)}, "
            f"ready: {float(gradient['ready']) * scale.time:.3f}us{ending}}}")


def scaled_model(text: str, scale: Scale) -> str:
    """YAML of a shipped model with scaled sizes and times. Every gradient keeps at least one element."""
    lines = []
    for line in text.splitlines():
        gradient = GRADIENT.fullmatch(line)
        if gradient:
            lines.append(scaled_gradient(gradient, scale))
        elif line.startswith("forward:"):
            lines.append(f"forward: {float(re.search(r'[0-9.]+', line)[0]) * scale.time:.6f}ms")
        elif line.startswith(("name:", "gradients:")):
            lines.append(line)
    return "\n".join(lines) + "\n"


def write_model(models: pathlib.Path, model: str, rate: int | str, folder: pathlib.Path) -> tuple[pathlib.Path, Scale]:
    text = (models / f"{model}.yaml").read_text()
    scale = scale_of(text, rate)
    path = folder / f"{model}_{rate}.yaml"
    path.write_text(scaled_model(text, scale))
    return path, scale
