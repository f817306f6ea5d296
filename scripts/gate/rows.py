"""Requirements on the compiled code of CUDA kernels, one row per kernel. A row that allows low occupancy or local memory says why.
TRAFFIC has the bytes per element that an encode or decode moves."""

import dataclasses


@dataclasses.dataclass(frozen=True)
class Row:
    """Requirements on a kernel, for all types and algorithms for which it is compiled."""
    name: str
    file: str
    #: Least width in bits of its widest load and of its widest store.
    load: int = 32
    store: int = 32
    threads: int = 256  # per thread block
    #: Least occupancy in per cent. If it is below 50, `why` has the reason.
    occupancy: int = 50
    #: Largest number of bytes of local memory per thread. If it is above 0, `why` has the reason.
    local: int = 0
    why: str = ""


@dataclasses.dataclass(frozen=True)
class Pass:
    """A kernel that processes each element once. `rounds`, `avoided` and `prepares` are arguments of sass.Kernel.moved()."""
    kernel: str  # name with template arguments: feedback (0 none, 1 at once, 2 deferred), type (0 fp32)
    elements: int  # per thread
    rounds: int = 1
    avoided: tuple[str, ...] = ()
    prepares: bool = False
    #: Bytes that only one thread of a warp or thread block moves, on the path that moves most. They are not counted.
    single: int = 0


@dataclasses.dataclass(frozen=True)
class Traffic:
    """An encode or decode-and-add of fp32 values, whose bytes per element are counted in the code and compared with the
    estimate."""
    algorithm: str
    direction: str  # member of kernels::Traffic: encode, decode_add
    passes: tuple[Pass, ...]
    #: Bytes per element beyond the estimate on the path that moves most, and the reason.
    beyond: float = 0
    why: str = ""


_REGISTERS = "a thread keeps 64 values in registers; its loads in flight hide the memory's latency, so few warps suffice"
_TILE = "a thread keeps 32 values in registers; its loads in flight hide the memory's latency, so few warps suffice"
_PARTIAL = "a thread keeps partial results of a tile in registers, not in local memory"
_ONE_BLOCK = "one thread block works on a slice, and a launch has too few slices to fill a GPU"
_CODE = "one thread builds a chunk's Huffman code, with an array by code length whose index depends on data"

_STANDS_FOR = "synthetic computation, which arithmetic should limit: a tile of the result stays in registers"

ROWS = (
    Row("encode_blocks", "kernels/cuda/block_quantizer.cuh", store=8, occupancy=12, why=_REGISTERS),
    Row("conclude_blocks", "kernels/cuda/block_quantizer.cuh"),
    Row("decode_blocks", "kernels/cuda/block_quantizer.cuh", occupancy=12, why=_REGISTERS),
    Row("encode_elements", "kernels/cuda/cast.cu", store=16),
    Row("decode_elements", "kernels/cuda/cast.cu"),
    Row("measure_chunks", "kernels/cuda/lossless.cuh", local=16, why="a loop tries the three forms of a chunk in an array"),
    Row("place_chunks", "kernels/cuda/lossless.cuh"),
    Row("write_chunks", "kernels/cuda/lossless.cuh", local=56, why=_CODE),
    Row("find_chunks", "kernels/cuda/lossless.cuh"),
    Row("decode_chunks", "kernels/cuda/lossless.cuh", store=8, local=56, why=_CODE),
    Row("put_values", "kernels/cuda/lossless.cuh"),
    Row("merge_values", "kernels/cuda/merge.cu"),
    Row("clear_messages", "kernels/cuda/packed.cu", load=0),
    Row("pack_entries", "kernels/cuda/packed.cu"),
    Row("count_entries", "kernels/cuda/packed.cu"),
    Row("place_entries", "kernels/cuda/packed.cu"),
    Row("unpack_entries", "kernels/cuda/packed.cu"),
    Row("measure_tiles", "kernels/cuda/quantizer.cuh", load=16, occupancy=25, why=_PARTIAL),
    Row("conclude_slices", "kernels/cuda/quantizer.cuh", occupancy=25, why=_ONE_BLOCK),
    Row("encode_tiles", "kernels/cuda/quantizer.cuh"),
    Row("put_back", "kernels/cuda/quantizer.cuh"),
    Row("settle_tiles", "kernels/cuda/quantizer.cuh"),
    Row("decode_tiles", "kernels/cuda/quantizer.cuh", occupancy=25, why=_TILE),
    Row("look_for_non_finite", "kernels/cuda/sparsifier_encode.cuh", store=0),
    Row("sample_entries", "kernels/cuda/sparsifier_encode.cuh", occupancy=37, why=_ONE_BLOCK),
    Row("collect_entries", "kernels/cuda/sparsifier_encode.cuh", occupancy=37, why=_TILE),
    Row("count_digits", "kernels/cuda/sparsifier_encode.cuh", store=0),
    Row("conclude_digit", "kernels/cuda/sparsifier_encode.cuh"),
    Row("tally_tiles", "kernels/cuda/sparsifier_encode.cuh"),
    Row("place_blocks", "kernels/cuda/sparsifier_encode.cuh", occupancy=37, why=_ONE_BLOCK),
    Row("write_entries", "kernels/cuda/sparsifier_encode.cuh"),
    Row("check_messages", "kernels/cuda/sparsifier_decode.cuh", store=0),
    Row("decode_entries", "kernels/cuda/sparsifier_decode.cuh"),
    Row("multiply_tiles", "kernels/lowrank/cuda_operators.cu", occupancy=37,
        why="a thread keeps the sums of several columns in registers, so an element is read once for all of them"),
    Row("multiply_transposed_tiles", "kernels/lowrank/cuda_operators.cu"),
    Row("add_tiles", "kernels/lowrank/cuda_operators.cu"),
    Row("spread_nan", "kernels/lowrank/cuda_operators.cu"),
    Row("multiply_by_own", "kernels/lowrank/cuda_operators.cu"),
    Row("factorise_gram", "kernels/lowrank/cuda_operators.cu"),
    Row("multiply_by_inverse", "kernels/lowrank/cuda_operators.cu"),
    Row("draw_missing", "kernels/lowrank/cuda_operators.cu"),
    Row("spread_nan_of_basis", "kernels/lowrank/cuda_operators.cu"),
    Row("look_at_mean", "kernels/lowrank/cuda_operators.cu", store=0),
    Row("reconstruct_entries", "kernels/lowrank/cuda_operators.cu"),
    Row("keep_mean", "kernels/lowrank/cuda_operators.cu"),
    Row("activate", "runtime/cuda_computation.cu", load=128, store=128),
    Row("sum_rows", "runtime/cuda_computation.cu", load=128),
    Row("normalise", "runtime/cuda_computation.cu", load=128, store=128),
    Row("attend", "runtime/cuda_computation.cu", occupancy=37, why=_STANDS_FOR),
    Row("multiply", "runtime/cuda_product.cu", occupancy=37, why=_STANDS_FOR),
)


_RESIDUAL = "a residual, which is off by default"
_BITS = "codes of 8 bits; by default they have 2"
_HALF = "codes of 8 bits; those of this algorithm have 4"


def _measure(kernel: str, single: int, *, prepares: bool = False) -> Pass:
    """A quantiser's measuring pass: each warp has a tile of 1024 elements, and one lane writes the result. Paths with DADD do not
    count: they sum a tile again that overflowed in fp32."""
    return Pass(kernel, 32, rounds=4, avoided=("DADD",), prepares=prepares, single=single)


def _decode(algorithm: str, beyond: float = 0, why: str = "") -> Traffic:
    return Traffic(algorithm, "decode_add", (Pass(f"decode_tiles<{algorithm}>", 32, prepares=True),), beyond, why)


def _blocks(algorithm: str, beyond: float = 0, why: str = "") -> tuple[Traffic, Traffic]:
    return (Traffic(algorithm, "encode", (Pass(f"encode_blocks<{algorithm}, 0>", 64),), 4 + beyond,
                    ", and ".join(filter(None, (_RESIDUAL, why)))),
            Traffic(algorithm, "decode_add", (Pass(f"decode_blocks<{algorithm}>", 64),), beyond, why))


TRAFFIC = (
    Traffic("merge", "encode", (Pass("merge_values", 4),)),
    Traffic("fp16", "encode", (Pass("encode_elements<Fp16>", 8, single=10),)),
    Traffic("fp16", "decode_add", (Pass("decode_elements<Fp16>", 8),)),
    Traffic("bf16", "encode", (Pass("encode_elements<Bf16>", 8, single=10),)),
    Traffic("bf16", "decode_add", (Pass("decode_elements<Bf16>", 8),)),
    Traffic("onebit", "encode", (_measure("measure_tiles<onebit, 0, 2, 0>", 35, prepares=True),)),
    _decode("onebit"),
    Traffic("tbq", "encode", (_measure("measure_tiles<tbq, 0, 2, 0>", 4, prepares=True),)),
    _decode("tbq"),
    Traffic("terngrad", "encode",
            (_measure("measure_tiles<terngrad, 0, 0, 0>", 27), Pass("encode_tiles<terngrad, 0>", 32, rounds=4)), 4.75,
            f"{_RESIDUAL}, and {_BITS}"),
    _decode("terngrad", 0.75, _BITS),
    *_blocks("int8block"), *_blocks("int4block", 0.5, _HALF), *_blocks("fp8block"), *_blocks("fp4block", 0.5, _HALF),
)

#: Algorithms whose bytes cannot be counted in the code, because loops depend on data or parameters; each with its reason.
UNCOUNTED = {
    "dgc": "how many entries are collected, counted and sent depends on the values",
    "graddrop": "for the same reason as dgc",
    "lossless": "how long the codes are depends on the values",
    "powersgd": "its loops run over the rank and over the rows of a matrix",
    "acpsgd": "for the same reason as powersgd",
    "rsketch": "for the same reason as powersgd",
}
