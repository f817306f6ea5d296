#!/usr/bin/env python3
"""Predicts the published throughputs of ZeRO++ and the gain of FSDP's backward prefetch, with hipress-sim.

    scripts/reproduce_sharded.py [--json FILE] [--tools FOLDER]

The published figures are the labels of the bars in figures 6 to 8 of DeepSpeed's blog (blogs/zeropp/assets/images/eval*.png of
its repository): Tflop/s per GPU, whole numbers, of ZeRO-3 and ZeRO++ on 24 DGX-2 of 16 V100. One row, ZeRO-3 of 138 billion
parameters at 800 Gbit/s, calibrates the speed of a GPU; the rest is predicted. Prints the Markdown tables of
docs/sharded-training.md. Exit status 1 if the tool fails, 2 if the request is wrong.
"""

import argparse
import json
import pathlib
import subprocess
import sys
import tempfile
from typing import NamedTuple

from transformer_models import elements_of, model_yaml
from whole_file import Unwritable, require_writable, write_json

ROOT = pathlib.Path(__file__).resolve().parent.parent

#: Operations per parameter and token, as Megatron-DeepSpeed counts them: 2 for forward, 4 for backward, 2 for the recomputed
#: forward.
OPERATIONS = 8

#: Share of the line rate that an all-gather of 4 MB or more reaches (figures published with nccl-tests).
SHARE_OF_LINE = 0.8

#: NVLink bandwidth of a GPU of a DGX-2, each way: six links of 25 GB/s (NVIDIA, "NVSwitch Accelerates NVIDIA DGX-2").
NVLINK_V100_GB_PER_S = 6 * 25

#: Overhead and latency of a message, each half of the time of a ring's step between nodes in NCCL's own model
#: (src/graph/tuning.cc), as in the starter profiles (costs/starter_profile.cpp).
STEP_US = 5


class Row(NamedTuple):
    model: str
    gbit_per_s: int  # per host
    tokens: int      # per GPU and step
    zero3: float     # Tflop/s per GPU
    zeropp: float


PUBLISHED = (
    Row("gpt_18b", 100, 1024, 14, 31), Row("gpt_138b", 100, 1024, 11, 22),
    Row("gpt_18b", 100, 2048, 26, 46), Row("gpt_138b", 100, 2048, 20, 38),
    Row("gpt_18b", 200, 2048, 37, 50), Row("gpt_138b", 200, 2048, 32, 48),
    Row("gpt_18b", 400, 1024, 25, 35), Row("gpt_138b", 400, 1024, 23, 36),
    Row("gpt_18b", 400, 2048, 40, 53), Row("gpt_138b", 400, 2048, 36, 50),
    Row("gpt_18b", 800, 2048, 47, 54), Row("gpt_138b", 800, 2048, 48, 55),
)
CALIBRATED = PUBLISHED[-1]

#: Least and largest speed-up in the blog's text at 400 Gbit/s, by tokens. Its figure shows more (DeepSpeed's issue 6781).
TEXT = {1024: (1.28, 1.36), 2048: (1.24, 1.29)}

#: Options of the schedule. IN_TURN: gathers and reductions take turns with computation, as in the published jobs. AHEAD: the order
#: of FSDP2.
IN_TURN, AHEAD = "in_flight=1, prefetch=none", ""

#: Case of FSDP's paper (PVLDB 16, 2023) in which backward prefetch gains about 18 %: GPT-175B on A100. Hosts have 8 GPUs and
#: 2 Tbit/s, a GPU computes at half of its 312 Tflop/s, and sequences have 2048 tokens.
PREFETCH_HOSTS, PREFETCH_GBIT_PER_S, PREFETCH_TFLOPS = 16, 2000, 156
NVLINK_A100_GB_PER_S = 12 * 25


class SimulationError(Exception):
    """Error: the tool failed. `status` is the exit status."""

    def __init__(self, message: str, status: int):
        super().__init__(message)
        self.status = status


def cluster_yaml(hosts: int, gpus: int, gbit_per_s: float, nvlink_gb_per_s: float) -> str:
    link = SHARE_OF_LINE * gbit_per_s / 8
    return (f"nodes: {hosts}\ngpus_per_node: {gpus}\n"
            f"gpu_link: {{bandwidth: {SHARE_OF_LINE * nvlink_gb_per_s}GB/s, overhead: {STEP_US}us}}\n"
            f"link: {{bandwidth: {link}GB/s, bandwidth_both_ways: {link}GB/s, overhead: {STEP_US}us, latency: {STEP_US}us}}\n")


def dgx2(gbit_per_s: float) -> str:
    return cluster_yaml(24, 16, gbit_per_s, NVLINK_V100_GB_PER_S)


class Simulator:
    def __init__(self, folder: pathlib.Path):
        self.tool = folder / "hipress-sim"

    def step_s(self, model: str, cluster: str, options: list[str]) -> float:
        """Time in seconds of a step of a model on a cluster, both given as YAML. Raises SimulationError if the tool fails."""
        with tempfile.TemporaryDirectory() as folder:
            for name, text in (("model.yaml", model), ("cluster.yaml", cluster)):
                (pathlib.Path(folder) / name).write_text(text)
            command = [str(self.tool), "--input", "model.yaml", "--cluster", "cluster.yaml", "--json", *options]
            done = subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False)
        if done.returncode != 0:
            raise SimulationError(f"{' '.join(command)}: {done.stderr.strip()}", 2 if done.returncode == 2 else 1)
        return json.loads(done.stdout)["iteration_s"]


class Predictor:
    """Predictor of throughputs in Tflop/s per GPU. `tflops` is the calibrated rate of computation alone."""

    def __init__(self, simulator: Simulator, order: str):
        self.simulator = simulator
        self.order = order
        self.tflops = self.calibrate()

    def step_s(self, row: Row, plan: str, compute_s: float) -> float:
        reshard = ["reshard=16"] if plan == "zeropp" else []
        arguments = ", ".join(reshard + ([self.order] if self.order else []))
        options = ["--profile", "v100-100g", "--plan", plan, "--schedule", f"fsdp({arguments})" if arguments else "fsdp"]
        return self.simulator.step_s(model_yaml(row.model, compute_s, "float16", checkpointing=True), dgx2(row.gbit_per_s),
                                     options)

    def calibrate(self) -> float:
        """Finds the rate of computation by bisection: the step gets longer as computation gets longer."""
        work = operations(CALIBRATED)
        asked_s = work / CALIBRATED.zero3 / 1e12
        least_s, most_s = 0.0, asked_s
        for _ in range(16):
            middle_s = (least_s + most_s) / 2
            if self.step_s(CALIBRATED, "none", middle_s) > asked_s:
                most_s = middle_s
            else:
                least_s = middle_s
        return work / most_s / 1e12

    def predict(self, row: Row) -> tuple[float, float]:
        """Throughputs of ZeRO-3 and of ZeRO++, in Tflop/s per GPU."""
        work = operations(row)
        compute_s = work / self.tflops / 1e12
        return tuple(work / self.step_s(row, plan, compute_s) / 1e12 for plan in ("none", "zeropp"))


def operations(row: Row) -> float:
    return OPERATIONS * elements_of(row.model) * row.tokens


def miss(predicted: float, published: float) -> float:
    return predicted / published - 1


def miss_of_text(row: Row, speedup: float) -> float | None:
    """Relative error against the nearer end of the text's range; None if the text does not mention the row."""
    if row.gbit_per_s != 400:
        return None
    least, most = TEXT[row.tokens]
    return miss(speedup, min(max(speedup, least), most))


def cases(in_turn: Predictor, ahead: Predictor) -> list[dict]:
    rows = []
    for row in PUBLISHED:
        zero3, zeropp = in_turn.predict(row)
        zero3_ahead, zeropp_ahead = ahead.predict(row)
        speedup = zeropp / zero3
        rows.append({**row._asdict(), "predicted_zero3": zero3, "predicted_zeropp": zeropp,
                     "speedup": row.zeropp / row.zero3, "predicted_speedup": speedup,
                     "miss": miss(speedup, row.zeropp / row.zero3), "miss_of_text": miss_of_text(row, speedup),
                     "ahead_speedup": zeropp_ahead / zero3_ahead})
    return rows


def equal_bandwidths(rows: list[dict]) -> dict[str, float]:
    """Predicted relative gain of ZeRO++ at 200 Gbit/s over ZeRO-3 at 800, by model."""
    found = {(row["model"], row["gbit_per_s"], row["tokens"]): row for row in rows}
    return {model: miss(found[model, 200, 2048]["predicted_zeropp"], found[model, 800, 2048]["predicted_zero3"])
            for model in ("gpt_18b", "gpt_138b")}


def prefetch_gains(simulator: Simulator) -> dict[int, float]:
    """Relative gain of a step by backward prefetch, by sequences per GPU."""
    cluster = cluster_yaml(PREFETCH_HOSTS, 8, PREFETCH_GBIT_PER_S, NVLINK_A100_GB_PER_S)
    gains = {}
    for sequences in (1, 2):
        compute_s = OPERATIONS * elements_of("gpt_175b") * 2048 * sequences / PREFETCH_TFLOPS / 1e12
        model = model_yaml("gpt_175b", compute_s, "bfloat16", checkpointing=True)
        pre_s, none_s = (simulator.step_s(model, cluster, ["--profile", "a100-400g", "--plan", "none", "--schedule",
                                                           f"fsdp(prefetch={prefetch})"]) for prefetch in ("pre", "none"))
        gains[sequences] = none_s / pre_s - 1
    return gains


def percent(value: float | None) -> str:
    return "" if value is None else f"{100 * value:+.0f} %".replace("-", "−")


def table(rows: list[dict]) -> str:
    lines = ["| | Gbit/s | tokens | ZeRO-3 | ZeRO++ | speed-up, figure | text | predicted | error, figure | error, text | ahead |",
             "|---|---|---|---|---|---|---|---|---|---|---|"]
    for row in rows:
        text = "{:.2f}–{:.2f}".format(*TEXT[row["tokens"]]) if row["gbit_per_s"] == 400 else ""
        cells = [row["model"].removeprefix("gpt_").upper(), row["gbit_per_s"], row["tokens"],
                 f"{row['zero3']}, {row['predicted_zero3']:.0f}", f"{row['zeropp']}, {row['predicted_zeropp']:.0f}",
                 f"{row['speedup']:.2f}", text, f"{row['predicted_speedup']:.2f}", percent(row["miss"]),
                 percent(row["miss_of_text"]), f"{row['ahead_speedup']:.2f}"]
        lines.append("| " + " | ".join(map(str, cells)) + " |")
    return "\n".join(lines)


def report(rows: list[dict], beside: dict[str, float], gains: dict[int, float], tflops: float) -> str:
    of_text = [row["miss_of_text"] for row in rows if row["miss_of_text"] is not None]
    near = sum(abs(row["miss"]) <= 0.15 for row in rows)
    lines = [table(rows), "",
             f"A V100 computes at {tflops:.0f} Tflop/s. Within 15 %: {near} of {len(rows)} speed-ups of the figures, "
             f"{sum(abs(value) <= 0.15 for value in of_text)} of {len(of_text)} of the text.",
             "ZeRO++ at 200 Gbit/s beside ZeRO-3 at 800: "
             + ", ".join(f"{model.removeprefix('gpt_').upper()} {percent(value)}" for model, value in beside.items()) + ".",
             "Backward prefetch gains " + ", ".join(f"{percent(gain)} with {count} sequence{'s' * (count > 1)} a GPU"
                                                    for count, gain in gains.items()) + "."]
    return "\n".join(lines)


def run(options) -> None:
    if options.json:
        require_writable(options.json)
    simulator = Simulator(options.tools.resolve())
    in_turn, ahead = Predictor(simulator, IN_TURN), Predictor(simulator, AHEAD)
    rows = cases(in_turn, ahead)
    beside, gains = equal_bandwidths(rows), prefetch_gains(simulator)
    print(report(rows, beside, gains, in_turn.tflops))
    if options.json:
        write_json(options.json, {"tflops": in_turn.tflops, "rows": rows, "zeropp_at_200_over_zero3_at_800": beside,
                                  "prefetch_gains": gains})


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--json", metavar="FILE", help="write rows and misses here")
    parser.add_argument("--tools", type=pathlib.Path, default=ROOT / "build/release/bin", metavar="FOLDER",
                        help="where hipress-sim is (default: build/release/bin)")
    options = parser.parse_args()
    if not (options.tools / "hipress-sim").is_file():
        parser.error(f"no hipress-sim in {options.tools}: scripts/build.sh demo builds it, --tools says where else it is")
    try:
        run(options)
    except (SimulationError, Unwritable) as error:
        print(f"reproduce_sharded.py: {error}", file=sys.stderr)
        return getattr(error, "status", 2)
    return 0


if __name__ == "__main__":
    sys.exit(main())
