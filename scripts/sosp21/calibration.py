"""Learns a cluster from uncompressed rows alone."""

import math
import statistics

from . import setups, systems
from .rows import Row
from .simulator import Simulator
from .systems import Calibration, Setup

BASELINES = {"Ring": "RING", "BytePS": "PS"}
#: Where no row on one node tells how much slower several GPUs compute than one.
DEFAULT_SLOWDOWN = 0.05
#: Part of the line rate, where no cluster has rows of that system. A PS of processes on the workers' machines takes
#: every byte through host memory once more.
DEFAULT_RATE = {"Ring": 0.75, "BytePS": 0.375}
#: Bandwidths that are tried, as parts of the line rate.
RATES = [0.02 * 50 ** (step / 400) for step in range(401)]
#: Bandwidths that are simulated; between them the time is a straight line in 1/bandwidth.
SIMULATED_RATES = (0.02, 0.05, 0.2, 1.0)


class Lab:
    """All that predictions share: the simulator, models, and compute times from `linear` rows."""

    def __init__(self, simulator: Simulator, rows: list[Row]):
        self.simulator = simulator
        self.compute_s: dict[tuple[str, str], list[float]] = {}
        for row in rows:
            if row.is_linear and row.throughput:
                self.compute_s.setdefault((row.cluster, row.model), []).append(row.iteration_s)

    def setup(self, cluster: str, model: str) -> Setup:
        """Without a linear row: the time on a V100, times what the cluster's other models say."""
        shipped = setups.load_model(model, cluster)
        times = self.compute_s.get((cluster, model))
        if times:
            return Setup(setups.CLUSTERS[cluster], shipped, statistics.median(times))
        factors = [statistics.median(times) / setups.load_model(other, where).compute_s
                   for (where, other), times in self.compute_s.items() if where == cluster]
        factor = statistics.median(factors) if factors else 1 / setups.CLUSTERS[cluster].compute_speed
        return Setup(setups.CLUSTERS[cluster], shipped, shipped.compute_s * factor)

    def setup_of(self, row: Row) -> Setup:
        return self.setup(row.cluster, row.model)


def calibrate(lab: Lab, rows: list[Row]) -> dict[tuple[str, str], Calibration]:
    """By cluster and baseline system. Uses rows whose algorithm is none, and no others."""
    rows = [row for row in rows if row.algorithm == "none" and not row.is_linear]
    fitted = {}
    for cluster in setups.CLUSTERS:
        here = [row for row in rows if row.cluster == cluster]
        for system in BASELINES:
            slowdown, local, local_from = fit_node(lab, cluster, system, [r for r in here if r.nodes == 1])
            partial = Calibration(slowdown, local, setups.CLUSTERS[cluster].line_rate, local_from)
            bandwidth = fit_bandwidth(lab, cluster, partial, system, [r for r in here if r.nodes > 1])
            fitted[cluster, system] = partial, bandwidth
    return fill(fitted)


def fill(fitted):
    """Bandwidths without rows: as another system, else as another cluster, else as the defaults have it."""
    rates = {(cluster, system): bandwidth / setups.CLUSTERS[cluster].line_rate
             for (cluster, system), (_, bandwidth) in fitted.items() if bandwidth}
    result = {}
    for (cluster, system), (partial, bandwidth) in fitted.items():
        source = f"{system} rows"
        if not bandwidth:
            rate, source = borrowed(rates, cluster, system)
            bandwidth = rate * partial.bandwidth
        result[cluster, system] = Calibration(partial.slowdown, partial.local_s_per_byte, bandwidth,
                                              partial.local_from, source)
    return result


def borrowed(rates, cluster, system):
    for (where, other), rate in rates.items():
        if where == cluster:
            return min(1.0, rate * DEFAULT_RATE[system] / DEFAULT_RATE[other]), f"{other} rows, default ratio"
    for (where, other), rate in rates.items():
        if other == system:
            return rate, f"{system} rows of {where}"
    return DEFAULT_RATE[system], "default"


def fit_node(lab, cluster, system, rows):
    """Slow-down and time per byte inside a node: a straight line through (bytes / compute time, exposed / compute
    time) of the rows on one node."""
    own = [row for row in rows if row.system == system]
    for candidates, source in ((own, f"{system} rows"), (rows, "all rows")):
        if len({row.model for row in candidates}) >= 3:
            return *line(*zip(*(relative(lab, row) for row in candidates))), source
    local = 1 / setups.CLUSTERS[cluster].local_bandwidth
    rest = [y - local * x for x, y in (relative(lab, row) for row in rows)]
    return (max(0.0, statistics.mean(rest)), local, "few rows") if rest else (DEFAULT_SLOWDOWN, local, "default")


def relative(lab, row):
    setup = lab.setup_of(row)
    return setup.model.size_bytes / setup.compute_s, row.iteration_s / setup.compute_s - 1


def line(xs, ys):
    """Least squares y = a + b·x with a, b >= 0."""
    mean_x, mean_y = statistics.mean(xs), statistics.mean(ys)
    spread = sum((x - mean_x) ** 2 for x in xs)
    b = sum((x - mean_x) * (y - mean_y) for x, y in zip(xs, ys)) / spread if spread else 0.0
    a = mean_y - b * mean_x
    if b < 0:
        return max(0.0, mean_y), 0.0
    if a < 0:
        return 0.0, max(0.0, sum(x * y for x, y in zip(xs, ys)) / sum(x * x for x in xs))
    return a, b


def fit_bandwidth(lab, cluster, partial, system, rows):
    """The bandwidth with the least sum of squared relative errors over the system's rows on several nodes; None
    without rows."""
    rows = [row for row in rows if row.system == system]
    if not rows:
        return None
    line_rate = setups.CLUSTERS[cluster].line_rate
    jobs = [systems.exposed_job(lab.setup_of(row), BASELINES[system], row.nodes, rate * line_rate)
            for row in rows for rate in SIMULATED_RATES]
    times = iter(lab.simulator.predict(jobs))
    curves = [[next(times) for _ in SIMULATED_RATES] for _ in rows]

    def cost(rate):
        return sum(math.log((systems.after_backward_s(lab.setup_of(row), partial) + between(curve, rate))
                            / row.iteration_s) ** 2 for row, curve in zip(rows, curves))

    return min(RATES, key=cost) * line_rate


def between(curve, rate):
    """The simulated times at any rate: straight lines in 1/rate."""
    points = list(zip(SIMULATED_RATES, curve))
    for (low, slow), (high, fast) in zip(points, points[1:]):
        if rate <= high or high == SIMULATED_RATES[-1]:
            share = (1 / rate - 1 / high) / (1 / low - 1 / high)
            return fast + share * (slow - fast)
    raise AssertionError("unreachable")
