"""From a system on a cluster to simulator jobs. Every number that no row gives is a constant here, with its reason."""

import dataclasses
import re

from . import setups
from .setups import Gradient, Model
from .simulator import LATENCY_S, OVERHEAD_S, Codec, Cost, Job

#: Buffers in which Horovod collects gradients (its default). BytePS cuts instead of collecting, to the same effect.
RAW_BUFFER_BYTES = 64 << 20
#: HiPress's --comp-threshold: smaller gradients are collected until they have as many elements (bulk communication).
BULK_BYTES = 4 * 262144
#: Pieces into which BytePS cuts gradients (its default).
BYTEPS_PARTITION_BYTES = 4096000
#: Part of the memory bandwidth that generic GPU code reaches: the same 5 GB/s where memcpy moves 18 GB/s.
GENERIC_EFFICIENCY = 5 / 18
#: Least memory traffic of DGC, bytes per element: encode with momentum and residual; decode; decode and add at 1 %.
DGC_TRAFFIC = (20.1, 4.7, 0.7)


@dataclasses.dataclass(frozen=True)
class Calibration:
    """What the uncompressed rows of one baseline system on one cluster tell."""

    slowdown: float  #: a GPU of a node computes this much longer than alone; 0.03 is 3 %
    local_s_per_byte: float  #: to sum a gradient over a node's GPUs
    bandwidth: float  #: of a node's link, bytes per second, as this system uses it
    local_from: str = "default"
    bandwidth_from: str = "default"


@dataclasses.dataclass(frozen=True)
class Setup:
    """One model on one cluster."""

    cluster: setups.Cluster
    model: Model
    compute_s: float  #: of one GPU

    def stretched(self, slowdown: float) -> Model:
        """The model as the cluster computes it: forward and all ready times longer by one factor."""
        factor = self.compute_s * (1 + slowdown) / self.model.compute_s
        return Model(self.model.forward_s * factor, tuple(
            dataclasses.replace(g, ready_s=g.ready_s * factor) for g in self.model.gradients))


def collect(gradients: tuple[Gradient, ...], size_bytes: int) -> tuple[Gradient, ...]:
    """Consecutive gradients, in the order in which they become ready, as one until they have that many bytes; one that
    alone has as many travels alone. A group is ready with its last."""
    groups, open_group = [], []
    for gradient in sorted(gradients, key=lambda g: g.ready_s):
        if gradient.size_bytes >= size_bytes:
            groups.append([gradient])
            continue
        open_group.append(gradient)
        if sum(g.size_bytes for g in open_group) >= size_bytes:
            groups.append(open_group)
            open_group = []
    if open_group:
        groups.append(open_group)
    return tuple(Gradient(f"group{index}", sum(g.elements for g in group), max(g.ready_s for g in group))
                 for index, group in enumerate(sorted(groups, key=lambda group: group[-1].ready_s)))


def at_once(gradients: tuple[Gradient, ...]) -> tuple[Gradient, ...]:
    return tuple(dataclasses.replace(g, ready_s=0.0) for g in gradients)


def summed_locally(gradients: tuple[Gradient, ...], s_per_byte: float) -> tuple[Gradient, ...]:
    """Every gradient later by its sum over the node's GPUs, one gradient after the other, beside backward."""
    free_s, delayed = 0.0, []
    for gradient in sorted(gradients, key=lambda g: g.ready_s):
        free_s = max(free_s, gradient.ready_s) + gradient.size_bytes * s_per_byte
        delayed.append(dataclasses.replace(gradient, ready_s=free_s))
    return tuple(delayed)


def read_codec(profile: str, algorithm: str, cluster: setups.Cluster) -> tuple[Codec, Cost]:
    """Codec and merge of a shipped profile of the V100; time per element in inverse proportion to the memory bandwidth."""
    text = (setups.ROOT / f"profiler/profiles/{profile}.yaml").read_text()
    factor = 900e9 / cluster.gpu_memory_bandwidth
    block = re.search(rf"^    {algorithm}:\n((?:      .*\n)+)", text, re.MULTILINE)[1]
    cost = (r"{}:\n(?:\s+floor: ([\d.]+)us\n)?\s+pieces:\n\s+- \{{from: 0, a_s: ([\d.e-]+), "
            r"s_per_element: ([\d.e-]+)\}}")

    def read(name, where):
        floor_us, a_s, s_per_element = re.search(cost.format(name), where).groups()
        return Cost(float(a_s), float(s_per_element), float(floor_us or 0) / 1e6).scaled(factor)

    return Codec(*(read(name, block) for name in ("encode", "decode", "decode_add"))), read("merge", text)


def exposed_job(setup: Setup, topology: str, nodes: int, bandwidth: float) -> Job:
    """The communication of a raw system alone: all gradients at once, nothing computed."""
    gradients = at_once(collect(setup.model.gradients, RAW_BUFFER_BYTES))
    return Job(topology, nodes, 0.0, gradients, bandwidth)


def iteration_job(setup: Setup, system: setups.System, nodes: int, calibration: Calibration) -> Job:
    """One iteration of any system. On one node every system is its uncompressed baseline: nothing is compressed where
    nothing crosses a network."""
    kind = system.kind if nodes > 1 else setups.RAW
    builder = {setups.RAW: raw_job, setups.CASYNC: casync_job, setups.CPU_ONEBIT: cpu_codec_job,
               setups.SPARSE_RING: sparse_ring_job}[kind]
    return builder(setup, system, nodes, calibration)


def after_backward_s(setup: Setup, calibration: Calibration) -> float:
    """When backward is done and the node's GPUs have summed their gradients, without overlap."""
    return (setup.compute_s * (1 + calibration.slowdown)
            + setup.model.size_bytes * calibration.local_s_per_byte)


def raw_job(setup, system, nodes, calibration):
    """Computation, sum over the node's GPUs and communication one after the other."""
    gradients = at_once(collect(setup.model.gradients, RAW_BUFFER_BYTES))
    return Job(system.topology, nodes, after_backward_s(setup, calibration), gradients, calibration.bandwidth)


def casync_job(setup, system, nodes, calibration):
    """What waits goes together: a kernel costs its memory traffic and a launch in a busy stream, and the overhead of a
    message delays it but keeps no port busy."""
    codec, merge = read_codec("v100-100g", system.algorithm, setup.cluster)
    model = setup.stretched(calibration.slowdown)
    gradients = collect(summed_locally(model.gradients, calibration.local_s_per_byte), BULK_BYTES)
    return Job(system.topology, nodes, model.forward_s, gradients, calibration.bandwidth, "secopa", system.algorithm,
               codec, merge, setup.cluster.gpu_memory_bandwidth, 0.0, OVERHEAD_S + LATENCY_S)


#: hipress-sim's options that take CaSync's features away, added one after the other, and how they are published.
FEATURES = (("--no-pipelining", "+ pipelining"), ("--no-bulk", "+ bulk synchronisation"), ("--no-selection", "+ SeCoPa"))


def switched_casync_job(setup, system, nodes, calibration, switches):
    """CaSync as hipress-sim has it: the model's own gradients under SeCoPa's plan with its bulk groups and batches, every
    kernel and message at what SeCoPa published of one alone, and nothing but the switches to tell jobs apart."""
    codec, merge = read_codec("sosp21", system.algorithm, setup.cluster)
    model = setup.stretched(calibration.slowdown)
    gradients = summed_locally(model.gradients, calibration.local_s_per_byte)
    return Job(system.topology, nodes, model.forward_s, gradients, calibration.bandwidth, "secopa", system.algorithm,
               codec, merge, setup.cluster.gpu_memory_bandwidth, bulk_bytes=BULK_BYTES, switches=switches)


def cpu_codec_job(setup, system, nodes, calibration, pipelining=True):
    """BytePS with its own compression: gradients summed on the node's GPUs, then coded by the CPU, in pieces, one
    after the other; pieces pass codec and network beside backward."""
    cost = Cost(0, 4 / setup.cluster.cpu_codec_rate)
    model = setup.stretched(calibration.slowdown)
    local_s = setup.model.size_bytes * calibration.local_s_per_byte
    gradients = pieces(model.gradients if pipelining else at_once(model.gradients), BYTEPS_PARTITION_BYTES)
    forward_s = model.forward_s + local_s if pipelining else after_backward_s(setup, calibration)
    return Job(system.topology, nodes, forward_s, gradients, calibration.bandwidth, 1,
               system.algorithm, Codec(cost, cost, cost), cost)


def pieces(gradients: tuple[Gradient, ...], size_bytes: int) -> tuple[Gradient, ...]:
    result = []
    for gradient in gradients:
        count = -(-gradient.size_bytes // size_bytes)
        for index in range(count):
            elements = gradient.elements * (index + 1) // count - gradient.elements * index // count
            result.append(Gradient(f"{gradient.name}/{index}", elements, gradient.ready_s))
    return tuple(result)


def sparse_ring_job(setup, system, nodes, calibration):
    """DGC in a framework, which does with gradients inside a node what it always does. After backward every GPU, a
    process of its own, encodes, and all P GPUs gather each other's (index, value) pairs: (N-1)·α + (P-1)·8ρn/B, one
    encode and P scatters.

    The ring with K = N has 2(N-1) steps of 1/N of the bytes, encodes every element once and decodes (2N-1)/N times.
    Half the time per message, 2(N-1)/(P-1)/N of the bandwidth and P·N/(2N-1) of the time to scatter make it that.
    """
    gpus = nodes * setup.cluster.gpus_per_node
    per_byte_s = 1 / (setup.cluster.gpu_memory_bandwidth * GENERIC_EFFICIENCY)
    encode, _, scatter = (Cost(0, traffic * per_byte_s) for traffic in DGC_TRAFFIC)
    scatter = scatter.scaled(gpus * nodes / (2 * nodes - 1))
    gradients = at_once(collect(setup.model.gradients, RAW_BUFFER_BYTES))
    return Job("RING", nodes, after_backward_s(setup, calibration), gradients,
               calibration.bandwidth * 2 * (nodes - 1) / (gpus - 1) / nodes, nodes, system.algorithm,
               Codec(encode, scatter, scatter), overhead_s=OVERHEAD_S / 2, latency_s=LATENCY_S / 2)
