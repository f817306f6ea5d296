"""Runs the project's tools: one job is one hipress-sim run on generated files. Results are cached."""

import concurrent.futures
import dataclasses
import json
import os
import pathlib
import subprocess
import tempfile

from .setups import ROOT, Gradient

#: Overhead of a message at both ports, published with SeCoPa (profiler/profiles/sosp21.yaml).
OVERHEAD_S = 97.66e-6
#: Latency of a message on the wire, published with SeCoPa.
LATENCY_S = 105.71e-6
#: Wait of a kernel for others in its batch: about the time of a few launches and messages. Without a bound, the first
#: gradient of backward would wait for the last.
BATCH_WAIT = "1ms"


class ToolError(Exception):
    """Error: a tool failed or is missing."""


@dataclasses.dataclass(frozen=True)
class Cost:
    """Cost of a kernel for x elements in seconds: a_s + s_per_element·x, at least floor_s."""

    a_s: float
    s_per_element: float
    floor_s: float = 0.0

    def scaled(self, factor: float) -> "Cost":
        return dataclasses.replace(self, s_per_element=self.s_per_element * factor)

    def yaml(self, indent: str) -> str:
        return (f"{indent}floor: {self.floor_s * 1e6:.6g}us\n{indent}pieces:\n"
                f"{indent}  - {{from: 0, a_s: {self.a_s:.6g}, s_per_element: {self.s_per_element:.6g}}}\n")


@dataclasses.dataclass(frozen=True)
class Codec:
    encode: Cost
    decode: Cost
    decode_add: Cost


@dataclasses.dataclass(frozen=True)
class Job:
    """Iteration to predict. `plan` is "none", "secopa", or a K for every gradient, with all compressed.

    Gradients smaller than bulk_bytes share a bucket of at most that size. Kernels on slices smaller than bulk_bytes, of gradients
    that are ready within BATCH_WAIT, share a launch. The switches are options of hipress-sim that disable features of the plan."""

    topology: str
    nodes: int
    forward_s: float
    gradients: tuple[Gradient, ...]
    bandwidth: float
    plan: str | int = "none"
    algorithm: str = "onebit"
    codec: Codec | None = None
    merge: Cost = Cost(0, 12 / 900e9)
    memory_bandwidth: float = 900e9
    overhead_s: float = OVERHEAD_S
    latency_s: float = LATENCY_S
    bulk_bytes: int = 0
    switches: tuple[str, ...] = ()

    def model_yaml(self) -> str:
        lines = [f"- {{name: {g.name}, elements: {g.elements}, ready: {g.ready_s * 1e6:.3f}us"
                 f"{', shape: ' + g.shape if g.shape else ''}}}" for g in self.gradients]
        return f"name: generated\nforward: {self.forward_s * 1e3:.6f}ms\ngradients:\n" + "\n".join(lines) + "\n"

    def profile_yaml(self) -> str:
        zero = Cost(0, 0)
        codec = self.codec or Codec(zero, zero, zero)
        operations = "".join(f"      {name}:\n{getattr(codec, name).yaml(' ' * 8)}"
                             for name in ("encode", "decode", "decode_add"))
        return (f"schema: hipress.profile/1\nname: generated\nsource: scripts/sosp21\nhardware:\n  name: generated\n"
                f"  device: cuda\n  memory_bandwidth: {self.memory_bandwidth / 1e9:.6g}GB/s\n"
                f"kernels:\n  merge:\n{self.merge.yaml('    ')}  codecs:\n    {self.algorithm}:\n{operations}"
                f"links:\n  overhead: {self.overhead_s * 1e6:.6g}us\n  latency: {self.latency_s * 1e6:.6g}us\n"
                f"  bandwidth: {self.bandwidth / 1e9:.9g}GB/s\n...\n")

    def gradients_text(self) -> str:
        return "".join(f"{g.name},{g.elements}\n" for g in self.gradients)

    def plan_yaml(self, rows: str) -> str:
        """Plan YAML of `rows`, lines of "name,elements,y,K", with buckets and kernel fusion."""
        def item(name, elements, compressed, partitions):
            algorithm = self.algorithm if compressed == "y" else "none"
            return f"- {{name: {name}, elements: {elements}, algorithm: {algorithm}, K: {partitions}}}\n"

        return (f"schema: hipress.plan/1\ntopology: {self.topology.lower()}\nnodes: {self.nodes}\n"
                f"bulk: {{threshold: {self.bulk_bytes}B, limit: {self.bulk_bytes}B}}\n"
                f"batch: {{threshold: {self.bulk_bytes}B, wait: {BATCH_WAIT}}}\ngradients:\n"
                + "".join(item(*row.split(",")) for row in rows.splitlines()))


class Simulator:
    """Runs jobs in parallel processes and caches their results."""

    def __init__(self, tools: pathlib.Path | None = None):
        self.tools = (tools or ROOT / "build/release/bin").resolve()
        self.iteration_s: dict[Job, float] = {}
        self.plans: dict[tuple[str, int, str], str] = {}

    def predict(self, jobs: list[Job]) -> list[float]:
        """Iteration times in seconds, in the order of the jobs."""
        new = [job for job in dict.fromkeys(jobs) if job not in self.iteration_s]
        with concurrent.futures.ThreadPoolExecutor(os.cpu_count()) as pool:
            self.iteration_s.update(zip(new, pool.map(self.run, new)))
        return [self.iteration_s[job] for job in jobs]

    def run(self, job: Job) -> float:
        with tempfile.TemporaryDirectory(prefix="sosp21_") as name:
            folder = pathlib.Path(name)
            (folder / "model.yaml").write_text(job.model_yaml())
            (folder / "profile.yaml").write_text(job.profile_yaml())
            report = self.tool(folder, "hipress-sim", "--input", "model.yaml", "--plan", self.plan(folder, job),
                               "--topology", job.topology, "--nnodes", job.nodes, "--algorithm", job.algorithm,
                               "--profile", "profile.yaml", *job.switches, "--json")
        return json.loads(report)["iteration_s"]

    def plan(self, folder: pathlib.Path, job: Job) -> str:
        """Writes the job's plan, if it needs a file, and returns the argument of --plan."""
        if job.plan == "none":
            return "none"
        rows = self.secopa(folder, job) if job.plan == "secopa" else "".join(
            f"{g.name},{g.elements},y,{job.plan}\n" for g in job.gradients)
        name, text = ("plan.yaml", job.plan_yaml(rows)) if job.bulk_bytes else ("plan.txt", rows)
        (folder / name).write_text(text)
        return name

    def secopa(self, folder: pathlib.Path, job: Job) -> str:
        """Plan under SeCoPa's published constants, which the evaluation's HiPress ran."""
        key = (job.topology, job.nodes, job.gradients_text())
        if key not in self.plans:
            (folder / "input.txt").write_text(job.gradients_text())
            self.tool(folder, "hipress-plan", "--input", "input.txt", "--topology", job.topology, "--nnodes",
                      job.nodes, "--output", "secopa.txt")
            self.plans[key] = (folder / "secopa.txt").read_text()
        return self.plans[key]

    def tool(self, folder: pathlib.Path, name: str, *arguments: object) -> str:
        command = [str(self.tools / name), *map(str, arguments)]
        try:
            done = subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False)
        except OSError as reason:
            raise ToolError(f"{command[0]}: {reason.strerror}; build it with scripts/build.sh demo") from None
        if done.returncode != 0:
            raise ToolError(f"{' '.join(command)}: exit status {done.returncode}\n{done.stderr.strip()}")
        return done.stdout
