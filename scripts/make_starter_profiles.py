#!/usr/bin/python3
"""Writes the starter profiles profiler/profiles/GPU-RATEg.yaml: estimated costs of GPUs and networks nobody measured here.

    scripts/make_starter_profiles.py [--output FOLDER]

Kernels follow from the GPU's memory bandwidth and its launches, links from published nccl-tests figures. Each file's
`source` and `notes` say so and name the sources. Running it again gives the same files. To add a GPU or a rate, add a
row to GPUS or RATES. Kernels that memory limits follow from the algorithm's row in kernels/registry/registry.cpp when a profile
is read; to add an algorithm whose messages are factors, add a row to STAGED. Needs nothing but Python 3.
"""

import argparse
import decimal
import pathlib
import textwrap
from typing import NamedTuple

ROOT = pathlib.Path(__file__).resolve().parent.parent

SHARE_OF_MEMORY = decimal.Decimal("0.8")  # of the memory bandwidth that kernels reach
SHARE_OF_FLOPS = decimal.Decimal("0.25")  # of fp32 without tensor cores, that products with a thin factor reach
FIRST_LAUNCH_US, NEXT_LAUNCH_US = 5, 2  # of a kernel, and of one that follows it at once


class Gpu(NamedTuple):
    name: str
    hardware: str
    memory_gb_s: int  # as published by its vendor, in 10^9 bytes per second
    tflops: str  # of fp32 without tensor cores, as published by its vendor


class Rate(NamedTuple):
    gbit_s: int
    share: str  # of the line rate that messages reach
    evidence: str  # where the share comes from: a sentence
    protocol: str  # a key of PROTOCOLS


class Protocol(NamedTuple):
    overhead_us: int  # of a message, on both ports
    latency_us: int
    spread: str  # of links, the standard deviation of a factor's logarithm
    evidence: str  # where overhead and latency come from: sentences


class Work(NamedTuple):
    bytes_per_element: str  # least memory traffic of fp32 values, as costs/traffic.cpp has it
    launches: int  # kernels, one after the other


class Kernels(NamedTuple):
    encode: Work
    decode: Work
    decode_add: Work


class Stage(NamedTuple):
    bytes_per_element: str  # what is read and written of gradient and residual, fp32
    flops_per_element_rank: int  # of a product with a factor
    bytes_per_value: str  # what is read and written of factors
    flops_per_value_rank: int  # of making a factor's columns orthogonal
    launches: int


class Staged(NamedTuple):
    encodes: list[Stage]
    decode: Stage


GPUS = [
    Gpu("a100", "A100 SXM, 80 GB", 2039, "19.5"),
    Gpu("h100", "H100 SXM, 80 GB", 3350, "67"),
    Gpu("h200", "H200 SXM, 141 GB", 4800, "67"),
    Gpu("b200", "B200, 180 GB", 8000, "75"),
]

TCP_SHARE = (
    "TCP over Ethernet with frames of 1500 bytes: 1448 of every 1538 bytes on the wire are payload, which is 94 %. "
    "That NCCL reaches them over TCP at this rate is an assumption; at 32 Gbit/s and more, about 60 % of the rate were "
    "published (github.com/NVIDIA/nccl, issue 209).")
RDMA_SHARE = (
    "InfiniBand or RoCE with GPUDirect: nccl-tests reach 12 GB/s of bus bandwidth per network card of 100 Gbit/s and 24 "
    "GB/s per card of 200 Gbit/s (github.com/NVIDIA/nccl-tests, issues 29, 119 and 252), which is 96 %.")
NDR_SHARE = (
    "InfiniBand or RoCE with GPUDirect: nccl-tests reach 46 to 48 GB/s of bus bandwidth per network card of 400 Gbit/s "
    "(github.com/NVIDIA/nccl-tests, issue 290); 47 GB/s is 94 %.")

RATES = [
    Rate(10, "0.94", TCP_SHARE, "tcp"),
    Rate(25, "0.94", TCP_SHARE, "tcp"),
    Rate(100, "0.96", RDMA_SHARE, "rdma"),
    Rate(200, "0.96", RDMA_SHARE, "rdma"),
    Rate(400, "0.94", NDR_SHARE, "rdma"),
]

PROTOCOLS = {
    "tcp": Protocol(
        20, 20, "0.2",
        "A small message takes 40 us over TCP in published nccl-tests (8 bytes to one other node: 38 to 46 us, "
        "github.com/NVIDIA/nccl-tests, issue 82); half of it is taken as overhead, half as latency."),
    "rdma": Protocol(
        5, 5, "0.15",
        "NCCL's own model counts 2.7 to 14 us for a step of a ring between nodes, by protocol (src/graph/tuning.cc, "
        "hwLat); 10 us are taken, half as overhead, half as latency."),
}

# An entropy coder is not limited by memory: DietGPU's takes 3.3 to 8 ps a number on an A100 (250 to 600 GB/s of bf16,
# github.com/facebookresearch/dietgpu, README), in which this memory moves 5.4 to 13 bytes. Numbers of fp32 are 2 bytes longer,
# read, and written again.
LOSSLESS = Kernels(Work("17", 3), Work("13", 1), Work("17", 1))
LOSSLESS_SHARE = "0.84"  # of the longest message: fp32 values come to 1/1.2 of their bits
MERGE = Work("12", 1)

# A product reads gradient and residual and multiplies and adds once per column. The factor that it needs is read twice
# and written once to make its columns orthogonal, by 4 operations for each pair of columns, and what it makes is written.
PRODUCT = Stage("8", 2, "16", 4, 5)
# The decode multiplies the factors, reads and writes gradient and residual, and keeps a mean for the next step.
RECONSTRUCTION = Stage("16", 2, "8", 0, 2)
STAGED = {
    "powersgd": Staged([PRODUCT, PRODUCT], RECONSTRUCTION),
    "acpsgd": Staged([PRODUCT], RECONSTRUCTION),
    "rsketch": Staged([PRODUCT._replace(launches=6)], RECONSTRUCTION),  # it draws the factor first
}

# Standard deviations of factors' logarithms: nobody measured these machines, so intervals are wide.
SPREAD = {"host": "0.25", "links": None, "compute": "0.05", "model": "0.05", "iterations": "0.05"}  # links: Protocol's


def kernel_notes(gpu: Gpu) -> list[str]:
    return [
        "An estimate to start with. hipress-profile measures the machines that you have; its profile replaces this one.",
        f"Every kernel is its least memory traffic per element divided by 80 % of the {gpu.memory_gb_s} GB/s that the "
        "vendor publishes, plus its launches. The 80 % are an assumption about kernels written with care; plain copies "
        f"reach about 90 %. Traffic and launches are those that the algorithm's row in the table of algorithms states; "
        f"merge moves {MERGE.bytes_per_element} bytes an element.",
        f"A launch costs {FIRST_LAUNCH_US} us, and {NEXT_LAUNCH_US} us for each kernel that follows on the same stream, "
        "which is the class that is published (a kernel that runs 2.9 us takes 9.6 us if each is waited for, 3.8 us back to "
        "back: NVIDIA's technical blog, 'Getting Started with CUDA Graphs').",
        f"Stages of {', '.join(STAGED)} have an estimate of their own kind: each encode reads gradient and residual once, "
        f"{PRODUCT.bytes_per_element} bytes an element, and the decode reads and writes both, "
        f"{RECONSTRUCTION.bytes_per_element} bytes, at the same bandwidth; factors are "
        f"{PRODUCT.bytes_per_value} bytes a value of an encode and {RECONSTRUCTION.bytes_per_value} of the decode. "
        f"Each product is 2 operations per element and column, and making columns orthogonal "
        f"{PRODUCT.flops_per_value_rank} per value and column, at {percent(str(SHARE_OF_FLOPS))} % of the {gpu.tflops} "
        f"Tflop/s of fp32 that the vendor publishes, which is an assumption. Kernels of an encode: {PRODUCT.launches}, "
        f"of rsketch's {STAGED['rsketch'].encodes[0].launches}; of the decode {RECONSTRUCTION.launches}.",
        "lossless is not limited by memory. DietGPU's entropy coder takes 3.3 to 8 ps a number on an A100 (250 to 600 GB/s of "
        "bf16, github.com/facebookresearch/dietgpu, README), in which that memory moves 5.4 to 13 bytes; 13 and 4 for the rest of "
        f"an fp32 number are taken for an encode, which has {LOSSLESS.encode.launches} kernels, and for a decode-and-add, 13 for "
        f"a decode. Messages are taken to be {percent(LOSSLESS_SHARE)} % as long as they can be, as fp32 values that are normally "
        "distributed come to; --sample of hipress-profile measures yours.",
    ]


def link_notes(rate: Rate) -> list[str]:
    protocol = PROTOCOLS[rate.protocol]
    return [
        f"The bandwidth is {percent(rate.share)} % of {rate.gbit_s} Gbit/s. {rate.evidence} Both directions at once are "
        "assumed to be as fast as one.",
        protocol.evidence,
        "The library's all-reduce is that of an ideal ring on this link, which has the published bus bandwidth for large "
        "gradients.",
        "A node is one network card and its GPU. Give --gpus-per-node or a cluster where GPUs share a card.",
    ]


def percent(share: str) -> str:
    return f"{decimal.Decimal(share) * 100:f}".rstrip("0").rstrip(".")


def curve(gpu: Gpu, work: Work) -> str:
    launches_us = FIRST_LAUNCH_US + NEXT_LAUNCH_US * (work.launches - 1)
    slope = decimal.Decimal(work.bytes_per_element) / (gpu.memory_gb_s * SHARE_OF_MEMORY * 10**9)
    return f"{{pieces: [{{from: 0, a_s: {launches_us}e-6, s_per_element: {slope:.4e}}}]}}"


def stage(gpu: Gpu, work: Stage) -> str:
    launches_us = FIRST_LAUNCH_US + NEXT_LAUNCH_US * (work.launches - 1)
    bytes_per_s = gpu.memory_gb_s * SHARE_OF_MEMORY * 10**9
    flops = decimal.Decimal(gpu.tflops) * SHARE_OF_FLOPS * 10**12
    terms = {
        "s_per_element": decimal.Decimal(work.bytes_per_element) / bytes_per_s,
        "s_per_element_rank": work.flops_per_element_rank / flops,
        "s_per_value": decimal.Decimal(work.bytes_per_value) / bytes_per_s,
        "s_per_value_rank": work.flops_per_value_rank / flops,
    }
    texts = [f"a_s: {launches_us}e-6", *(f"{key}: {value:.4e}" for key, value in terms.items() if value > 0)]
    return f"{{{', '.join(texts)}}}"


def note(text: str) -> str:
    return "  - >-\n" + textwrap.fill(text, width=116, initial_indent="    ", subsequent_indent="    ")


def profile(gpu: Gpu, rate: Rate) -> str:
    protocol = PROTOCOLS[rate.protocol]
    bandwidth = f"{decimal.Decimal(rate.share) * rate.gbit_s:f}".rstrip("0").rstrip(".") + "Gbps"
    lines = [
        "# Written by scripts/make_starter_profiles.py.",
        "schema: hipress.profile/1",
        f"name: {gpu.name}-{rate.gbit_s}g",
        "source: estimated, not measured; kernels from memory traffic and launches, links from published nccl-tests "
        "figures",
        "notes:",
        *(note(text) for text in kernel_notes(gpu) + link_notes(rate)),
        "hardware:",
        f"  name: {gpu.hardware}, {rate.gbit_s} Gbit/s",
        "  device: cuda",
        f"  memory_bandwidth: {gpu.memory_gb_s}GB/s",
        "kernels:",
        f"  measured_at: {gpu.memory_gb_s}GB/s",
        f"  estimate: {{share_of_memory: {SHARE_OF_MEMORY}, first_launch: {FIRST_LAUNCH_US}us, next_launch: {NEXT_LAUNCH_US}us}}",
        f"  merge: {curve(gpu, MERGE)}",
        "  codecs:",
    ]
    lines.append("    lossless:")
    lines += [f"      {field}: {curve(gpu, work)}" for field, work in zip(LOSSLESS._fields, LOSSLESS)]
    lines.append(f"      message_share: {LOSSLESS_SHARE}")
    for name, staged in STAGED.items():
        lines += [f"    {name}:", "      stages:", *(f"        - {stage(gpu, work)}" for work in staged.encodes)]
        lines.append(f"      decode: {stage(gpu, staged.decode)}")
    lines += [
        "links:",
        f"  overhead: {protocol.overhead_us}us",
        f"  rate: {rate.gbit_s}Gbps",
        f"  bandwidth: {bandwidth}",
        f"  latency: {protocol.latency_us}us",
        "spread:",
        *(f"  {key}: {value or protocol.spread}" for key, value in SPREAD.items()),
        "...",
    ]
    return "\n".join(lines) + "\n"


def profiles() -> dict[str, str]:
    """The text of every starter profile, by the name of its file."""
    return {f"{gpu.name}-{rate.gbit_s}g.yaml": profile(gpu, rate) for gpu in GPUS for rate in RATES}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--output", type=pathlib.Path, default=ROOT / "profiler/profiles", metavar="FOLDER",
                        help="where to write (default: profiler/profiles)")
    folder = parser.parse_args().output
    for name, text in profiles().items():
        (folder / name).write_text(text)


if __name__ == "__main__":
    main()
