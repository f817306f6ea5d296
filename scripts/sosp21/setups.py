"""Defines the setups of the published evaluation, independent of its results: clusters, models, systems."""

import dataclasses
import pathlib
import re

ROOT = pathlib.Path(__file__).resolve().parents[2]


#: Rate of onebit in generic CPU code, in gradient bytes per second: the middle of measured 3 to 7 GB/s.
CPU_CODEC_RATE = 5e9


@dataclasses.dataclass(frozen=True)
class Cluster:
    gpus_per_node: int
    line_rate: float  #: line rate of a node's network interface, bytes per second
    gpu_memory_bandwidth: float  #: bytes per second
    local_bandwidth: float  #: prior of the rate at which a node's GPUs sum gradients, bytes per second
    compute_speed: float  #: default speed of a GPU, V100 = 1, for models without linear rows
    cpu_codec_rate: float  #: rate of BytePS's own compression on the CPU, gradient bytes per second


CLUSTERS = {
    # GTX 1080 Ti on PCIe 3: two GPUs exchange a gradient at some 10 GB/s. VGG19: 273 ms an iteration, 155 ms on a V100.
    "local": Cluster(2, 56e9 / 8, 484e9, 10e9, 155 / 273, CPU_CODEC_RATE),
    # V100 with NVLink: all-reduce of eight GPUs at some 130 GB/s of bus bandwidth, so 2·7/8 of the bytes at that rate.
    # Its hosts' memory (twelve channels of DDR4-2666) is about twice as fast as that of `local` (eight of DDR4-2133).
    "aws": Cluster(8, 100e9 / 8, 900e9, 75e9, 1.0, 2 * CPU_CODEC_RATE),
}

#: Units per GPU and iteration.
UNITS_PER_GPU = {"vgg19": 32, "resnet50": 32, "lstm": 80, "ugatit": 2, "bert": 4096, "transformer": 2048}

#: Shipped model for a name on a cluster; default: the model of that name.
SHIPPED_MODEL = {("bert", "local"): "bert_base", ("bert", "aws"): "bert_large", ("ugatit", "local"): "ugatit_light"}

ALGORITHMS = ("onebit", "tbq", "terngrad", "dgc", "graddrop", "fp16", "bf16")

#: Kinds of systems.
RAW, CASYNC, CPU_ONEBIT, SPARSE_RING = "raw", "casync", "cpu codec", "sparse all-gather"


@dataclasses.dataclass(frozen=True)
class System:
    kind: str
    topology: str  #: PS or RING
    algorithm: str

    @property
    def baseline(self) -> str:
        """Uncompressed system whose calibration holds for this one."""
        if self.kind == CASYNC:  # uses NCCL inside a node, and its own transfers between nodes
            return "Ring"
        return "BytePS" if self.topology == "PS" else "Ring"


def parse_system(name: str, algorithm: str) -> System:
    """Parses a system's name. Raises ValueError if the name, or the algorithm with it, is unknown."""
    if name in ("BytePS", "Ring"):
        if algorithm != "none":
            raise ValueError(f"system {name!r} is uncompressed, its algorithm must be none, got {algorithm!r}")
        return System(RAW, "PS" if name == "BytePS" else "RING", algorithm)
    kinds = ((r"HiPress.*-PS\b.*", CASYNC, "PS"), (r"HiPress.*-Ring\b.*", CASYNC, "RING"),
             (r"BytePS\(OSS-.+\)", CPU_ONEBIT, "PS"), (r"Ring\(OSS-.+\)", SPARSE_RING, "RING"))
    for pattern, kind, topology in kinds:
        if re.fullmatch(pattern, name):
            if algorithm not in ALGORITHMS:
                raise ValueError(f"unknown algorithm {algorithm!r} of system {name!r}; known are "
                                 f"{', '.join(ALGORITHMS)}")
            return System(kind, topology, algorithm)
    raise ValueError(f"unknown system {name!r}; known are linear, BytePS, Ring, BytePS(OSS-...), Ring(OSS-...), "
                     "HiPress-CaSync-PS, HiPress-CaSync-Ring")


@dataclasses.dataclass(frozen=True)
class Gradient:
    name: str
    elements: int
    ready_s: float
    shape: str = ""  # such as "[512, 2048]", as in the model's file; empty for cut or collected gradients

    @property
    def size_bytes(self) -> int:
        return 4 * self.elements


@dataclasses.dataclass(frozen=True)
class Model:
    """Shipped model, with times measured on, or derived for, one V100."""

    forward_s: float
    gradients: tuple[Gradient, ...]

    @property
    def size_bytes(self) -> int:
        return sum(gradient.size_bytes for gradient in self.gradients)

    @property
    def compute_s(self) -> float:
        return self.forward_s + max(gradient.ready_s for gradient in self.gradients)


def load_model(name: str, cluster: str) -> Model:
    text = (ROOT / "models" / f"{SHIPPED_MODEL.get((name, cluster), name)}.yaml").read_text()
    gradients = re.findall(r"^- \{name: (\S+), elements: (\d+), ready: (\d+)us(?:, shape: (\[.*\]))?\}$", text,
                           re.MULTILINE)
    forward_ms = re.search(r"^forward: ([\d.]+)ms$", text, re.MULTILINE)
    return Model(float(forward_ms[1]) / 1e3,
                 tuple(Gradient(name, int(elements), int(ready) / 1e6, shape)
                       for name, elements, ready, shape in gradients))
