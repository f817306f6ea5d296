"""Evaluates predictions: against published rows, against trivial predictors, and on rows held out of the calibration."""

import dataclasses
import statistics

from . import setups, systems
from .calibration import Lab, calibrate
from .rows import Row

GROUPS = ("uncompressed", "OSS", "HiPress")


@dataclasses.dataclass(frozen=True)
class Case:
    row: Row
    predicted: float
    linear: float  #: throughput under perfect scaling

    @property
    def error(self) -> float | None:
        """Relative error, (predicted - published) / published; None for a row that was not published."""
        return None if self.row.throughput is None else self.predicted / self.row.throughput - 1

    @property
    def group(self) -> str:
        if self.row.algorithm == "none":
            return "uncompressed"
        return "HiPress" if self.row.system.startswith("HiPress") else "OSS"

    def report(self) -> dict:
        return {**dataclasses.asdict(self.row), "predicted": self.predicted, "error": self.error}


def predict(lab: Lab, calibrations, rows: list[Row]) -> list[Case]:
    linear_s = [lab.setup_of(row).compute_s for row in rows]
    jobs = {row: job(lab, calibrations, row) for row in rows if not row.is_linear and row.gpus > 1}
    times = dict(zip(jobs, lab.simulator.predict(list(jobs.values()))))
    return [Case(row, row.throughput_of(times.get(row, compute_s)), row.throughput_of(compute_s))
            for row, compute_s in zip(rows, linear_s)]


def job(lab, calibrations, row):
    system = setups.parse_system(row.system, row.algorithm)
    return systems.iteration_job(lab.setup_of(row), system, row.nodes, calibrations[row.cluster, system.baseline])


def measured(cases: list[Case]) -> list[Case]:
    """Cases that have an error: published ones, except `linear` rows, which are the compute time itself."""
    return [case for case in cases if case.error is not None and not case.row.is_linear]


def mean_abs_error(cases: list[Case]) -> float | None:
    cases = measured(cases)
    return statistics.mean(abs(case.error) for case in cases) if cases else None


def linear_error(cases: list[Case]) -> float:
    return scaled_error(cases, 1.0)


def scaled_error(cases, factor):
    return statistics.mean(abs(factor * case.linear / case.row.throughput - 1) for case in cases)


def constant_error(cases: list[Case]) -> float:
    """Mean absolute error of the multiple of linear scaling that fits these rows best. Tries every corner of this error as a
    function of the multiple, because its minimum is at a corner."""
    return min(scaled_error(cases, case.row.throughput / case.linear) for case in cases)


def larger(rows: list[Row]) -> list[Row]:
    """Rows to predict for every system: the numbers of GPUs of its linear rows that exceed the largest published number."""
    most = {}
    for row in rows:
        if not row.is_linear:
            key = dataclasses.replace(row, gpus=0, throughput=None)
            most[key] = max(most.get(key, 0), row.gpus)
    linear = sorted({(row.cluster, row.framework, row.model, row.gpus) for row in rows if row.is_linear},
                    key=lambda item: item[-1])
    return [dataclasses.replace(key, gpus=gpus) for key, published in most.items() for *setting, gpus in linear
            if setting == [key.cluster, key.framework, key.model] and gpus > published]


def held_out(lab: Lab, rows: list[Row]) -> dict[str, list[Case]]:
    """Predicts uncompressed rows by calibrations without them: each model from the other models, and the largest number of nodes of
    a cluster from smaller numbers."""
    raw = [row for row in rows if row.algorithm == "none" and not row.is_linear and row.throughput]
    by_model = []
    for model in sorted({row.model for row in raw}):
        calibrations = calibrate(lab, [row for row in raw if row.model != model])
        by_model += predict(lab, calibrations, [row for row in raw if row.model == model])
    largest = {cluster: max(row.nodes for row in raw if row.cluster == cluster)
               for cluster in {row.cluster for row in raw}}
    calibrations = calibrate(lab, [row for row in raw if row.nodes < largest[row.cluster]])
    larger = predict(lab, calibrations, [row for row in raw if row.nodes == largest[row.cluster]])
    return {"uncompressed, other models": by_model, "uncompressed, largest cluster": larger}


#: Published synchronisation times of VGG19 on 16 nodes of `local`, in ms, with features added one by one.
ABLATION = (("BytePS", 590), ("compression on CPU", 774), ("compression on GPU", 346),
            *zip((name for _, name in systems.FEATURES), (319, 236, 189)))
ABLATION_NODES = 16


def ablation(lab: Lab, calibrations, topology: str) -> list[float]:
    """Predicted synchronisation times in ms, from the start of backward to the end of the iteration, for the rows of
    ABLATION."""
    setup = lab.setup("local", "vgg19")
    byteps, ring = calibrations["local", "BytePS"], calibrations["local", "Ring"]
    casync = setups.System(setups.CASYNC, topology, "onebit")
    switches = tuple(switch for switch, _ in systems.FEATURES)
    jobs = [systems.raw_job(setup, setups.System(setups.RAW, "PS", "none"), ABLATION_NODES, byteps),
            systems.cpu_codec_job(setup, setups.System(setups.CPU_ONEBIT, "PS", "onebit"), ABLATION_NODES, byteps,
                                  pipelining=False)]
    jobs += [systems.switched_casync_job(setup, casync, ABLATION_NODES, ring, switches[given:])
             for given in range(len(switches) + 1)]
    forward_s = setup.stretched(ring.slowdown).forward_s
    return [(time - forward_s) * 1e3 for time in lab.simulator.predict(jobs)]
