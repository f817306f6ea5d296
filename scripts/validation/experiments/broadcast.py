"""Compares broadcasts that hipress-plan plans with gloo's own (torch.distributed.broadcast), in the same run and on the same
networks of known speed. Also compares predictions with measurements.

One fp32 tensor goes from node 0 to all others: by gloo, and as a chain, raw and with each of --codecs. With --lossless CODEC, a
tensor of bf16 numbers with the same size in bytes is broadcast, too, raw and with that codec. These numbers are drawn like weights,
from a normal distribution with a standard deviation of 0.02, and rounded to bf16; a sample of them predicts the length of messages.
hipress-plan makes the plans from a profile of this network. Needs a python3 with torch.
"""

import argparse
import dataclasses
import pathlib
import subprocess

import whole_file
from options import at_least

from .. import ROOT
from ..cases import Case
from ..command import Experiment
from ..measurement import ONCE, links_of
from ..network import Network, Unavailable
from ..replayed import COLUMNS, Replayed, describe_errors
from ..torch_bench import TorchBench

WEIGHTS = ROOT / "scripts/validation/weights.py"
GLOO, RAW = "gloo", "none"
#: Standard deviation of the weights. Its absolute size does not matter: a lossless codec depends on the distribution of exponents.
DEVIATION = 0.02
#: Warm-up iterations of hipress-exec; gloo's broadcast has the same number.
WARMUPS = 1

HEADER = f"{'N':>2} {'topology':10} {'codec':18} {'dtype':9} {'chunks':>6} {COLUMNS} {'below gloo':>10}"


@dataclasses.dataclass(frozen=True)
class Way:
    """Way to broadcast a tensor."""

    topology: str  #: GLOO, or a topology of this project
    codec: str = RAW
    dtype: str = "float32"

    @property
    def name(self) -> str:
        return f"{self.topology}_{self.codec}_{self.dtype}".replace("(", "_").replace(")", "").replace(",", "_")


@dataclasses.dataclass
class Result(Replayed):
    """Results of a way to broadcast among a number of nodes."""

    way: Way
    nnodes: int
    chunks: int = 0

    def to_json(self, gloo_s: float) -> dict:
        return {"topology": self.way.topology, "codec": self.way.codec, "dtype": self.way.dtype, "nnodes": self.nnodes,
                "chunks": self.chunks, "below_gloo": 1 - self.measured_s / gloo_s, **self.times()}


def format_row(result: Result, gloo_s: float) -> str:
    return (f"{result.nnodes:2} {result.way.topology:10} {result.way.codec:18} {result.way.dtype:9} {result.chunks or '–':>6} "
            f"{result.columns()} {100 * (1 - result.measured_s / gloo_s):8.1f} %{result.notes()}")


@dataclasses.dataclass
class BroadcastBench(TorchBench):
    """Bench whose links are profiled over the tools' default transport, which this project's broadcasts use."""

    size: int = 64_000_000

    def profile(self, case: Case, codecs: list[str], weights: pathlib.Path | None) -> pathlib.Path:
        """Profiles the links of this network and the kernels, and the length of lossless messages of the weights."""
        path = self.profile_path(f"{links_of(case)}_now")
        self.profile_kernels(case, ",".join(codecs), path, *(("--sample", weights / "rank0/0.f32") if weights else ()))
        return path

    def plan_way(self, case: Case, way: Way, profile: pathlib.Path) -> tuple[pathlib.Path, dict]:
        path = self.output / f"plan_{case.nnodes}_{way.name}.yaml"
        made = self.ordinary.run_json(case.nnodes, "hipress-plan", "--job", "broadcast", "--bytes", f"{self.size}B", "--dtype",
                                      way.dtype, "--topology", way.topology, "--algorithm", way.codec, "--profile", profile,
                                      "--output", path)
        return path, made

    def write_weights(self, nnodes: int) -> pathlib.Path:
        """Writes a folder for hipress-exec --gradients, with weights on node 0 and zeros elsewhere. Returns its path."""
        folder = self.output / f"weights_{nnodes}"
        elements = self.size // 2
        for rank in range(nnodes):
            path = folder / f"rank{rank}/0.f32"
            path.parent.mkdir(parents=True, exist_ok=True)
            with path.open("wb") as zeros:
                zeros.truncate(4 * elements)
        command = [self.python, "-B", WEIGHTS, str(elements), str(DEVIATION), folder / "rank0/0.f32"]
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        if done.returncode != 0:
            raise Unavailable(f"no weights were made (Debian package python3-numpy): {done.stderr.strip()}")
        return folder

    def run_gloo(self, result: Result) -> None:
        report = self.run_rank(result.nnodes, "broadcast_rank.py", "--bytes", self.size, "--warmups", WARMUPS, "--iterations",
                               self.plan.iterations)
        result.seconds += report["iterations_s"]
        result.verified &= report["verified"]

    def run_ours(self, result: Result, case: Case, profile: pathlib.Path, weights: pathlib.Path | None) -> None:
        path, made = self.plan_way(case, result.way, profile)
        if made["algorithm"] != result.way.codec:
            self.say(f"N = {result.nnodes}: {result.way.topology} with {result.way.codec} is predicted to take longer than raw, "
                     "which is what is measured")
        result.chunks = made["chunks"]
        given = ("--gradients", weights) if result.way.dtype != "float32" else ()
        report = self.launcher.run_json(result.nnodes, "hipress-exec", "--plan", path, "--profile", profile, *ONCE, "--warmup",
                                        WARMUPS, "--iterations", self.plan.iterations, *given)
        result.add(report)

    def run_nodes(self, case: Case, ways: list[Way], codecs: list[str], weights: pathlib.Path | None) -> list[Result]:
        """Runs all ways round by round. Every second round has the reverse order, so that no way is always the last after the
        profile."""
        results = [Result(way, case.nnodes) for way in ways]
        for number in range(self.plan.rounds):
            profile = self.profile(case, codecs, weights)
            for result in results if number % 2 == 0 else reversed(results):
                def measure(result: Result = result, profile: pathlib.Path = profile) -> None:
                    if result.way.topology == GLOO:
                        self.run_gloo(result)
                    else:
                        self.run_ours(result, case, profile, weights)

                result.once(self, measure)
        return results


def ways_of(options: argparse.Namespace) -> list[Way]:
    ways = [Way(GLOO), *(Way("chain", codec) for codec in (RAW, *options.codecs))]
    if options.lossless:
        ways += [Way("chain", codec, "bfloat16") for codec in (RAW, options.lossless)]
    return ways


def measure(bench: BroadcastBench, options: argparse.Namespace) -> list[Result]:
    results = []
    codecs = [*options.codecs, *(["bf16", options.lossless] if options.lossless else [])]
    for nnodes in options.nnodes:
        case = Case("broadcast", "chain", RAW, nnodes, options.rate)
        weights = bench.write_weights(nnodes) if options.lossless else None
        with Network(nnodes) as network:
            on_network = bench.on(network)
            on_network.profile_links(network, case)
            of_nodes = on_network.run_nodes(case, ways_of(options), codecs, weights)
        for result in of_nodes:
            print(format_row(result, of_nodes[0].measured_s), flush=True)
        results += of_nodes
    return results


def find(results: list[Result], nnodes: int, way: Way) -> Result:
    return next(result for result in results if (result.nnodes, result.way) == (nnodes, way))


def compare(options: argparse.Namespace, results: list[Result]) -> list[str]:
    """Sentences that compare the ways with each other."""
    lines = []
    for nnodes in options.nnodes:
        def seconds(way: Way, nnodes: int = nnodes) -> float:
            return find(results, nnodes, way).measured_s

        def below(way: Way, other: Way) -> str:
            return f"{100 * (1 - seconds(way) / seconds(other)):.1f} % below"  # noqa: B023

        lines.append(f"N = {nnodes}: the raw chain is {below(Way('chain'), Way(GLOO))} gloo's broadcast")
        lines += [f"N = {nnodes}: the chain with {codec} is {below(Way('chain', codec), Way(GLOO))} gloo's broadcast"
                  for codec in options.codecs]
        if options.lossless:
            raw, packed = (Way("chain", codec, "bfloat16") for codec in (RAW, options.lossless))
            lines.append(f"N = {nnodes}: the chain with {options.lossless} is {below(packed, raw)} the raw one, of bf16 weights")
    return lines


def finish(options: argparse.Namespace, results: list[Result]) -> int:
    for line in compare(options, results):
        print(line)
    print(describe_errors(results))
    if options.json:
        gloo_s = {nnodes: find(results, nnodes, Way(GLOO)).measured_s for nnodes in options.nnodes}
        whole_file.write_json(options.json, {"rate": options.rate, "bytes": options.bytes, "compared": compare(options, results),
                                             "cases": [result.to_json(gloo_s[result.nnodes]) for result in results]})
    return 0 if all(result.verified for result in results) else 1


def node_counts(text: str) -> list[int]:
    return [at_least(2)(number) for number in text.split(",")]


def algorithms(text: str) -> list[str]:
    """Splits a list at its commas, except those in parentheses."""
    names, depth = [""], 0
    for sign in text:
        depth += (sign == "(") - (sign == ")")
        if sign == "," and depth == 0:
            names.append("")
        else:
            names[-1] += sign
    return [name for name in names if name]


def add_options(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--nnodes", type=node_counts, default=[8, 4], help="comma-separated (default: 8,4)")
    parser.add_argument("--codecs", type=algorithms, default=["int8block"], metavar="A,B", help="lossy ones (default: int8block)")
    parser.add_argument("--lossless", metavar="CODEC", help="also broadcast bf16 weights raw and with this codec")
    parser.add_argument("--bytes", type=at_least(4), default=BroadcastBench.size, help="of the tensor (default: %(default)s)")
    parser.add_argument("--rate", type=at_least(1), default=200, help="Mbit/s each way of every host (default: %(default)s)")


def run(options: argparse.Namespace) -> int:
    options.bytes -= options.bytes % 4
    bench = BroadcastBench.of(options, size=options.bytes)
    print(HEADER, flush=True)
    return finish(options, measure(bench, options))


EXPERIMENT = Experiment(run, add_options, rounds=3, iterations=3)
