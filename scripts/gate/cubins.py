"""Reads the compiled kernels of a build. Kernels for generations that the build lacks are compiled from its PTX."""

import dataclasses
import hashlib
import json
import os
import pathlib
import re
import shutil
import subprocess
import sys
import sysconfig

from gate import rows, sass

#: Generations: name, shared memory of a multiprocessor in KiB. All have 2048 threads and 65536 registers.
GENERATIONS = {80: 164, 90: 228, 100: 228}
#: Shared memory that the system itself takes, which cuobjdump includes from generation 90 on.
SYSTEM_BYTES = 1024
PACKAGES = "nvidia-cuda-cuobjdump==13.5.37 nvidia-cuda-nvdisasm==13.5.37"

OCCUPANCY = r"""
#include <cuda_occupancy.h>
#include <cstdio>
int main() {
  int generation, shared_kib, threads, registers;
  unsigned long shared;
  while (std::scanf("%d %d %d %d %lu", &generation, &shared_kib, &threads, &registers, &shared) == 5) {
    cudaOccDeviceProp device;
    device.computeMajor = generation / 10;
    device.computeMinor = generation % 10;
    device.maxThreadsPerBlock = 1024;
    device.maxThreadsPerMultiprocessor = 2048;
    device.regsPerBlock = device.regsPerMultiprocessor = 65536;
    device.warpSize = 32;
    device.sharedMemPerBlock = 48 << 10;
    device.sharedMemPerMultiprocessor = shared_kib << 10;
    device.sharedMemPerBlockOptin = (shared_kib - 1) << 10;
    device.reservedSharedMemPerBlock = 1 << 10;
    device.numSms = 1;
    cudaOccFuncAttributes kernel;
    kernel.maxThreadsPerBlock = 1024;
    kernel.numRegs = registers;
    kernel.sharedSizeBytes = shared;
    kernel.shmemLimitConfig = FUNC_SHMEM_LIMIT_DEFAULT;
    kernel.partitionedGCConfig = PARTITIONED_GC_OFF;
    kernel.maxDynamicSharedSizeBytes = 0;
    kernel.numBlockBarriers = 1;
    cudaOccDeviceState state;
    cudaOccResult result;
    if (cudaOccMaxActiveBlocksPerMultiprocessor(&result, &device, &kernel, &state, threads, 0) != 0) return 1;
    std::printf("%d\n", result.activeBlocksPerMultiprocessor * threads * 100 / 2048);
  }
}
"""


class Skipped(Exception):
    """Error: a tool or a build is missing."""


class Failed(Exception):
    """Error: a tool failed."""


@dataclasses.dataclass(frozen=True)
class Measured:
    """One compiled kernel."""
    kernel: str  # name with template arguments
    generation: int
    registers: int
    local: int  # bytes of local memory per thread
    spilled: int  # bytes, from ptxas; 0 for kernels that the build compiled, whose `local` includes them
    accesses: int  # to local memory
    shared: int
    barriers: int
    load: int
    store: int
    moved: dict[str, float]  # bytes per element, by rows.Traffic's algorithm and direction

    @property
    def name(self) -> str:
        return self.kernel.partition("<")[0]


def tool(name: str) -> str:
    """Path of a tool: on the PATH, in the toolkit, or in a package of this Python's environment."""
    places = [os.environ.get("PATH", ""), "/usr/local/cuda/bin",
              *map(str, pathlib.Path(sysconfig.get_path("purelib")).glob("nvidia/cu*/bin"))]
    if not (path := shutil.which(name, path=os.pathsep.join(places))):
        raise Skipped(f"there is no {name}; install a CUDA toolkit of 12.4 or later"
                      + (f", or pip install {PACKAGES}" if name in PACKAGES.replace("nvidia-cuda-", "") else ""))
    return path


def run(*words: str | pathlib.Path, text: str | None = None, cwd: pathlib.Path | None = None) -> str:
    """Output of a program on stdout and stderr. Raises Failed, with that output, if the program fails."""
    done = subprocess.run(list(map(str, words)), input=text, cwd=cwd, capture_output=True, text=True, check=False)
    if done.returncode != 0:
        raise Failed(f"{pathlib.Path(words[0]).name}: {(done.stderr or done.stdout).strip()}")
    return done.stdout + done.stderr


def nvcc_version() -> str:
    """Release of the toolkit, such as 13.0."""
    return re.search(r"release ([\d.]+)", run(tool("ptxas"), "--version"))[1]


def of_content(*parts: bytes) -> str:
    return hashlib.sha256(b"\0".join(parts)).hexdigest()[:20]


def cubins(objects: list[pathlib.Path], cache: pathlib.Path) -> list[tuple[str, int, pathlib.Path, str]]:
    """Cubins of the objects for every generation, as (algorithm, generation, file, output of ptxas). If the build has no code for a
    generation, it is compiled from the PTX, as a driver would do, and kept in the cache under a hash of the object."""
    found = []
    for path in objects:
        folder = cache / of_content(path.read_bytes())
        if not (folder / "extracted").exists():
            folder.mkdir(parents=True, exist_ok=True)
            run(tool("cuobjdump"), "-xelf", "all", path.resolve(), cwd=folder)
            (folder / "extracted").write_text(run(tool("cuobjdump"), "-xptx", "all", path.resolve(), cwd=folder))
        options = dict(re.findall(r"([^/\s]+\.ptx) -arch=\S+ *(.*)", (folder / "extracted").read_text()))
        algorithm = path.name.partition("_cuda.cu.o")[0].lower() if path.name.endswith("_cuda.cu.o") else ""
        for generation in GENERATIONS:
            built = list(folder.glob(f"*.sm_{generation}.cubin"))
            made, log = folder / f"made.{generation}.cubin", folder / f"made.{generation}.log"
            sources = {int(re.search(r"\.sm_(\d+)\.ptx$", each.name)[1]): each for each in folder.glob("*.ptx")}
            usable = [source for source in sources if source <= generation]
            if not built and not usable:
                raise Failed(f"{path} has neither code nor PTX for sm_{generation}; add {min(GENERATIONS)} to "
                             "CMAKE_CUDA_ARCHITECTURES")
            if not built and not made.exists():
                source = sources[max(usable)]
                print(f"gate: compiling {path.name} for sm_{generation}", file=sys.stderr, flush=True)
                said = run(tool("ptxas"), f"-arch=sm_{generation}", *options.get(source.name, "").split(), "-v", source, "-o",
                           made.with_suffix(".part"))
                log.write_text(said)
                made.with_suffix(".part").rename(made)
            found.append((algorithm, generation, built[0] if built else made, "" if built else log.read_text()))
    return found


def plain(demangled: str, algorithm: str) -> str:
    """A kernel's name and arguments: encode_tiles<tbq, 0>."""
    name = re.sub(r"^void ", "", demangled)
    name = re.sub(r"\([\w:]+\)(?=\d)", "", name).replace("(anonymous namespace)::", "")
    name = re.sub(r"(?:\w+::)*Program_\w+", algorithm, name)
    name, arguments = re.match(r"((?:\w+::)*\w+)(<[^()]*>)?", name).groups()
    return name.rpartition("::")[2] + re.sub(r"(?:\w+::)+", "", arguments or "")


def measured(cubin: tuple[str, int, pathlib.Path, str], traffic: tuple[rows.Traffic, ...]) -> list[Measured]:
    """Kernels of a cubin."""
    algorithm, generation, path, said = cubin
    usage = {name: dict(re.findall(r"([A-Z]+):(\d+)", numbers)) for name, numbers in
             re.findall(r"Function (\S+):\s*\n\s*(REG:.*)", run(tool("cuobjdump"), "-res-usage", path))}
    spilled = {name: int(stores) + int(loads) for name, stores, loads in
               re.findall(r"properties for (\S+)\n.*?(\d+) bytes spill stores, (\d+) bytes spill loads", said)}
    found = sass.kernels(run(tool("nvdisasm"), "-c", path))
    names = run("c++filt", text="\n".join(kernel.name for kernel in found)).splitlines()
    made = []
    for kernel, demangled in zip(found, names):
        numbers, name = usage[kernel.name], plain(demangled, algorithm)
        moved = {}
        for row in traffic:
            for each in row.passes:
                if each.kernel == name:
                    bytes_of = kernel.moved(each.avoided, each.rounds, each.prepares and kernel.barriers > 0)
                    moved[f"{row.algorithm} {row.direction}"] = (bytes_of.all - each.single) / each.elements
        made.append(Measured(
            name, generation, int(numbers["REG"]), int(numbers["STACK"]) + int(numbers["LOCAL"]), spilled.get(kernel.name, 0),
            kernel.count("LDL", "STL"), max(0, int(numbers["SHARED"]) - (SYSTEM_BYTES if generation >= 90 else 0)),
            kernel.barriers, kernel.widest(sass.LOADS), kernel.widest(sass.STORES), moved))
    return made


def all_measured(objects: list[pathlib.Path], cache: pathlib.Path,
                 traffic: tuple[rows.Traffic, ...] = rows.TRAFFIC) -> list[Measured]:
    """All kernels of some objects. Results are cached by a hash of the cubin, the rows and this code."""
    sources = [(pathlib.Path(__file__).parent / name).read_bytes() for name in ("cubins.py", "sass.py")]
    found = []
    for cubin in cubins(objects, cache):
        kept = cache / (of_content(cubin[2].read_bytes(), *sources, repr(traffic).encode()) + ".json")
        if not kept.exists():
            kept.write_text(json.dumps([dataclasses.asdict(each) for each in measured(cubin, traffic)]))
        found += [Measured(**each) for each in json.loads(kept.read_text())]
    return found


def occupancies(kernels: list[tuple[Measured, int]], cache: pathlib.Path) -> list[int]:
    """Occupancy in per cent of kernels, each with its threads per block, by the toolkit's cuda_occupancy.h."""
    header = pathlib.Path(tool("ptxas")).resolve().parents[1] / "include"
    program = cache / f"occupancy-{of_content(OCCUPANCY.encode(), str(header).encode())}"
    if not program.exists():
        if not (header / "cuda_occupancy.h").exists():
            raise Skipped(f"there is no {header}/cuda_occupancy.h; install the headers of the CUDA toolkit")
        run(os.environ.get("CXX", "c++"), "-x", "c++", "-", "-O1", f"-I{header}", "-o", program.with_suffix(".part"),
            text=OCCUPANCY)
        program.with_suffix(".part").rename(program)
    lines = [f"{kernel.generation} {GENERATIONS[kernel.generation]} {threads} {kernel.registers} {kernel.shared}"
             for kernel, threads in kernels]
    return [int(line) for line in run(program, text="\n".join(lines)).splitlines()]
