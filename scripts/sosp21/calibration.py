"""Calibrates clusters by uncompressed rows alone."""

import math
import statistics

from . import setups, systems
from .rows import Row
from .simulator import Simulator
from .systems import Calibration, Setup

BASELINES = {"Ring": "RING", "BytePS": "PS"}
#: Prior of the slow-down when several GPUs of a node compute instead of one, and its uncertainty.
DEFAULT_SLOWDOWN = 0.05
SLOWDOWN_UNCERTAINTY = 0.03
#: Uncertainty of the two-parameter line for a row on one node, as a share of the compute time.
ROW_UNCERTAINTY = 0.03
#: Prior of the bandwidth, as a share of the line rate. A PS of processes on the workers' machines copies every byte
#: through host memory once more.
DEFAULT_RATE = {"Ring": 0.75, "BytePS": 0.375}
#: Uncertainties of the bandwidth's prior, and of the model for a row on several nodes; both are logarithms of factors.
RATE_UNCERTAINTY = 0.5
NETWORK_ROW_UNCERTAINTY = 0.1
#: Candidate bandwidths, as shares of the line rate.
RATES = [0.02 * 50 ** (step / 400) for step in range(401)]
#: Simulated bandwidths, as shares of the line rate; between them the time is linear in 1/bandwidth.
SIMULATED_RATES = (0.02, 0.05, 0.2, 1.0)


class Lab:
    """Data that all predictions share: the simulator, models and compute times.

    A compute time comes from `linear` rows of either file, else from calibrating uncompressed rows on one node, else from
    the time on a V100, scaled by the median factor of the cluster's other models."""

    def __init__(self, simulator: Simulator, given: list[Row], wanted: list[Row] = ()):
        self.simulator = simulator
        self.compute_s = medians((row.cluster, row.model, row.iteration_s)
                                 for row in [*given, *wanted] if row.is_linear and row.throughput)
        alone = medians((row.cluster, row.model, without_node(row))
                        for row in given if row.algorithm == "none" and not row.is_linear and row.nodes == 1)
        self.compute_s = {**alone, **self.compute_s}

    def setup(self, cluster: str, model: str) -> Setup:
        shipped = setups.load_model(model, cluster)
        known = self.compute_s.get((cluster, model))
        if known:
            return Setup(setups.CLUSTERS[cluster], shipped, known)
        factors = [time / setups.load_model(other, where).compute_s
                   for (where, other), time in self.compute_s.items() if where == cluster]
        factor = statistics.median(factors) if factors else 1 / setups.CLUSTERS[cluster].compute_speed
        return Setup(setups.CLUSTERS[cluster], shipped, shipped.compute_s * factor)

    def setup_of(self, row: Row) -> Setup:
        return self.setup(row.cluster, row.model)


def medians(times):
    """Medians of times by cluster and model, {(cluster, model): time}, of triples (cluster, model, time)."""
    lists = {}
    for cluster, model, time in times:
        lists.setdefault((cluster, model), []).append(time)
    return {key: statistics.median(values) for key, values in lists.items()}


def without_node(row: Row) -> float:
    """Compute time in seconds of one GPU, from a row on one node: its time without the priors of slow-down and summing."""
    size_bytes = setups.load_model(row.model, row.cluster).size_bytes
    slow = row.iteration_s if row.gpus > 1 else row.iteration_s * (1 + DEFAULT_SLOWDOWN)
    summing_s = size_bytes / setups.CLUSTERS[row.cluster].local_bandwidth if row.gpus > 1 else 0.0
    return max(slow - summing_s, slow / 2) / (1 + DEFAULT_SLOWDOWN)


def calibrate(lab: Lab, rows: list[Row]) -> dict[tuple[str, str], Calibration]:
    """Calibrations by cluster and baseline system, from the rows whose algorithm is `none` alone."""
    rows = [row for row in rows if row.algorithm == "none" and not row.is_linear and row.gpus > 1]
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
    """Fills in bandwidths without rows: from a different system on the cluster, else from a different cluster, else from the
    defaults."""
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
    """Fits slow-down a and time per byte b inside a node, from exposed = a·compute + b·bytes of the rows on one node.

    Least squares of exposed / compute. The priors of a and b count as two more observations, which keeps fits of few rows
    plausible."""
    expected = 1 / setups.CLUSTERS[cluster].local_bandwidth
    own = [row for row in rows if row.system == system]
    for candidates, source in ((own, f"{system} rows"), (rows, "all rows")):
        if candidates:
            xs, ys = zip(*(relative(lab, row) for row in candidates))
            return *line(xs, ys, expected), source
    return DEFAULT_SLOWDOWN, expected, "default"


def relative(lab, row):
    setup = lab.setup_of(row)
    return setup.model.size_bytes / setup.compute_s, row.iteration_s / setup.compute_s - 1


def line(xs, ys, expected_b):
    """Fits y = a + b·x with a, b >= 0: least squares, each observation in units of its uncertainty."""
    weight = 1 / ROW_UNCERTAINTY**2
    weight_a, weight_b = 1 / SLOWDOWN_UNCERTAINTY**2, 1 / expected_b**2
    aa = weight * len(xs) + weight_a
    ab = weight * sum(xs)
    bb = weight * sum(x * x for x in xs) + weight_b
    ya = weight * sum(ys) + weight_a * DEFAULT_SLOWDOWN
    yb = weight * sum(x * y for x, y in zip(xs, ys)) + weight_b * expected_b
    a = (ya * bb - yb * ab) / (aa * bb - ab * ab)
    b = (yb * aa - ya * ab) / (aa * bb - ab * ab)
    if b < 0:
        return max(0.0, ya / aa), 0.0
    if a < 0:
        return 0.0, yb / bb
    return a, b


def fit_bandwidth(lab, cluster, partial, system, rows):
    """Finds the bandwidth with the least sum of squared relative errors over the system's rows on several nodes. The prior counts
    as one more row. Returns None if there are no rows."""
    rows = [row for row in rows if row.system == system]
    if not rows:
        return None
    line_rate = setups.CLUSTERS[cluster].line_rate
    of_rows = [lab.setup_of(row) for row in rows]
    jobs = [systems.exposed_job(setup, BASELINES[system], row.nodes, rate * line_rate)
            for setup, row in zip(of_rows, rows) for rate in SIMULATED_RATES]
    times = iter(lab.simulator.predict(jobs))
    curves = [[next(times) for _ in SIMULATED_RATES] for _ in rows]

    def cost(rate):
        errors = (math.log((systems.after_backward_s(setup, partial) + between(curve, rate)) / row.iteration_s)
                  for setup, row, curve in zip(of_rows, rows, curves))
        return (sum(error * error for error in errors) / NETWORK_ROW_UNCERTAINTY**2
                + (math.log(rate / DEFAULT_RATE[system]) / RATE_UNCERTAINTY) ** 2)

    return min(RATES, key=cost) * line_rate


def between(curve, rate):
    """Interpolates the simulated times at a rate, linearly in 1/rate."""
    points = list(zip(SIMULATED_RATES, curve))
    for (low, slow), (high, fast) in zip(points, points[1:]):
        if rate <= high or high == SIMULATED_RATES[-1]:
            share = (1 / rate - 1 / high) / (1 / low - 1 / high)
            return fast + share * (slow - fast)
    raise AssertionError("unreachable")
