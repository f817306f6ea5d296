"""Makes the simulator jobs of a system on a cluster. Every number that is not from a row is a constant here, with its reason."""

import dataclasses
import re

from . import setups
from .setups import Gradient, Model
from .simulator import LATENCY_S, OVERHEAD_S, Codec, Cost, Job

#: Size of Horovod's fusion buffers, its default. BytePS cuts gradients instead, to the same effect.
RAW_BUFFER_BYTES = 64 << 20
#: Size of buckets for smaller gradients: HiPress's --comp-threshold, in bytes (bulk communication).
BULK_BYTES = 4 * 262144
#: Size of the pieces into which BytePS cuts gradients, its default.
BYTEPS_PARTITION_BYTES = 4096000
#: Share of the memory bandwidth that generic GPU code reaches: the 5 GB/s of generic CPU code over the 18 GB/s of memcpy.
GENERIC_EFFICIENCY = 5 / 18
#: Least memory traffic of DGC, bytes per element: encode with momentum and residual; decode; decode and add at 1 %.
DGC_TRAFFIC = (20.1, 4.7, 0.7)


@dataclasses.dataclass(frozen=True)
class Calibration:
    """Parameters of one baseline system on one cluster, from its uncompressed rows."""

    slowdown: float  #: relative slow-down of a GPU in a node against one alone; 0.03 is 3 %
    local_s_per_byte: float  #: seconds per byte to sum a gradient over a node's GPUs
    bandwidth: float  #: effective bandwidth of a node's link, bytes per second
    local_from: str = "default"
    bandwidth_from: str = "default"


@dataclasses.dataclass(frozen=True)
class Setup:
    """One model on one cluster."""

    cluster: setups.Cluster
    model: Model
    compute_s: float  #: compute time of one GPU, seconds

    def stretched(self, slowdown: float) -> Model:
        """Model with the cluster's times: forward and all ready times are scaled by one factor."""
        factor = self.compute_s * (1 + slowdown) / self.model.compute_s
        return Model(self.model.forward_s * factor, tuple(
            dataclasses.replace(g, ready_s=g.ready_s * factor) for g in self.model.gradients))


def collect(gradients: tuple[Gradient, ...], size_bytes: int) -> tuple[Gradient, ...]:
    """Collects consecutive gradients, in the order of ready times, into groups of at least that many bytes; a gradient of
    that size is a group of its own. A group is ready with its last gradient."""
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
    """Delays every gradient by its sum over the node's GPUs. Sums run one after the other, during backward."""
    free_s, delayed = 0.0, []
    for gradient in sorted(gradients, key=lambda g: g.ready_s):
        free_s = max(free_s, gradient.ready_s) + gradient.size_bytes * s_per_byte
        delayed.append(dataclasses.replace(gradient, ready_s=free_s))
    return tuple(delayed)


def read_codec(profile: str, algorithm: str, cluster: setups.Cluster) -> tuple[Codec, Cost]:
    """Costs of an algorithm's kernels and of a merge, from a shipped profile of the V100. Times per element are scaled to the
    memory bandwidth of the cluster's GPU."""
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
    """Job of a raw system's communication alone: all gradients are ready at once, and nothing is computed."""
    gradients = at_once(collect(setup.model.gradients, RAW_BUFFER_BYTES))
    return Job(topology, nodes, 0.0, gradients, bandwidth)


def iteration_job(setup: Setup, system: setups.System, nodes: int, calibration: Calibration) -> Job:
    """Job of one iteration of any system. On one node, where nothing crosses a network, every system is its uncompressed
    baseline."""
    kind = system.kind if nodes > 1 else setups.RAW
    builder = {setups.RAW: raw_job, setups.CASYNC: casync_job, setups.CPU_ONEBIT: cpu_codec_job,
               setups.SPARSE_RING: sparse_ring_job}[kind]
    return builder(setup, system, nodes, calibration)


def after_backward_s(setup: Setup, calibration: Calibration) -> float:
    """Time at which backward is over and the node's GPUs have summed their gradients, without overlap, in seconds."""
    return (setup.compute_s * (1 + calibration.slowdown)
            + setup.model.size_bytes * calibration.local_s_per_byte)


def raw_job(setup, system, nodes, calibration):
    """Job with computation, sum over the node's GPUs and communication one after the other."""
    gradients = at_once(collect(setup.model.gradients, RAW_BUFFER_BYTES))
    return Job(system.topology, nodes, after_backward_s(setup, calibration), gradients, calibration.bandwidth)


def casync_job(setup, system, nodes, calibration):
    """Job of CaSync with bulk synchronisation. A kernel costs its memory traffic and a launch in a busy stream. The overhead
    of a message delays it but does not occupy ports."""
    codec, merge = read_codec("v100-100g", system.algorithm, setup.cluster)
    model = setup.stretched(calibration.slowdown)
    gradients = collect(summed_locally(model.gradients, calibration.local_s_per_byte), BULK_BYTES)
    return Job(system.topology, nodes, model.forward_s, gradients, calibration.bandwidth, "secopa", system.algorithm,
               codec, merge, setup.cluster.gpu_memory_bandwidth, 0.0, OVERHEAD_S + LATENCY_S)


#: Options of hipress-sim that disable CaSync's features, in the order in which these are added, with the published names.
FEATURES = (("--no-pipelining", "+ pipelining"), ("--no-bulk", "+ bulk synchronisation"), ("--no-selection", "+ SeCoPa"))


def switched_casync_job(setup, system, nodes, calibration, switches):
    """Job of CaSync by hipress-sim's own features: the model's gradients under SeCoPa's plan with buckets and kernel fusion,
    and SeCoPa's published cost for each kernel and message. Jobs differ in the switches alone."""
    codec, merge = read_codec("sosp21", system.algorithm, setup.cluster)
    model = setup.stretched(calibration.slowdown)
    gradients = summed_locally(model.gradients, calibration.local_s_per_byte)
    return Job(system.topology, nodes, model.forward_s, gradients, calibration.bandwidth, "secopa", system.algorithm,
               codec, merge, setup.cluster.gpu_memory_bandwidth, bulk_bytes=BULK_BYTES, switches=switches)


def cpu_codec_job(setup, system, nodes, calibration, pipelining=True):
    """Job of BytePS with its own compression. The node's GPUs sum the gradients; then the CPU codes them in pieces, one after
    the other. With pipelining, codec and network run beside backward."""
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
    """Job of DGC in a framework, which sums gradients inside a node as always. After backward every GPU, a process of its
    own, encodes, and all P GPUs gather each other's (index, value) pairs: (N-1)·α + (P-1)·8ρn/B, one encode and P scatters.

    The ring with K = N has 2(N-1) steps of 1/N of the bytes, encodes every element once and decodes (2N-1)/N times. Half
    the time per message, 2(N-1)/(P-1)/N of the bandwidth and P·N/(2N-1) of the scatter time convert it to that cost.
    """
    gpus = nodes * setup.cluster.gpus_per_node
    per_byte_s = 1 / (setup.cluster.gpu_memory_bandwidth * GENERIC_EFFICIENCY)
    encode, _, scatter = (Cost(0, traffic * per_byte_s) for traffic in DGC_TRAFFIC)
    scatter = scatter.scaled(gpus * nodes / (2 * nodes - 1))
    gradients = at_once(collect(setup.model.gradients, RAW_BUFFER_BYTES))
    return Job("RING", nodes, after_backward_s(setup, calibration), gradients,
               calibration.bandwidth * 2 * (nodes - 1) / (gpus - 1) / nodes, nodes, system.algorithm,
               Codec(encode, scatter, scatter), overhead_s=OVERHEAD_S / 2, latency_s=LATENCY_S / 2)
