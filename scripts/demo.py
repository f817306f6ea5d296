#!/usr/bin/env python3
"""Profiles this machine, then predicts and really runs the synchronisation of one model under several plans.

Prints a table of predictions beside measurements and writes into the output folder: profile.yaml, the secopa
plans, results.json, timeline.json (open it at https://ui.perfetto.dev) and timeline.png. Exit status 1 if a
tool fails or any synchronised gradient does not verify, 2 if the request is wrong.
"""

import argparse
import dataclasses
import json
import os
import pathlib
import statistics
import subprocess
import sys

from options import at_least
from picture import Refused, start_where_matplotlib_is
from plot_timeline import plot, read
from whole_file import Unwritable, make_folder, write_json

ROOT = pathlib.Path(__file__).resolve().parent.parent
TOPOLOGIES = ("ps", "ring")
PLANS = ("none", "fp16", "all", "secopa")
ALGORITHM = "onebit"
#: The case whose timeline is kept.
TRACED = ("ring", "secopa")


class DemoError(Exception):
    """A tool failed; the message says which and what it said. `status` is the demo's exit status for that: 2 where the
    tool says that the request is wrong, or there is no such tool."""

    def __init__(self, message: str, status: int):
        super().__init__(message)
        self.status = status


@dataclasses.dataclass(frozen=True)
class Case:
    """One plan on one topology, predicted and measured, as hipress-exec reports it. Times are in seconds;
    errors are (predicted - measured) / measured, None where nothing was measured to be wrong about."""

    topology: str
    plan: str
    predicted_s: float
    measured_s: float
    error: float
    predicted_exposed_s: float
    measured_exposed_s: float
    exposed_error: float | None
    verified: bool

    @staticmethod
    def from_report(topology: str, plan: str, report: dict) -> "Case":
        return Case(topology, plan, report["predicted_iteration_s"], report["measured_iteration_s"]["median"],
                    report["relative_error"], report["predicted_exposed_communication_s"],
                    report["measured_exposed_communication_s"], report["exposed_communication_relative_error"],
                    report["verified"])


class Tools:
    """Runs the command-line tools of one build."""

    def __init__(self, folder: pathlib.Path):
        self.folder = folder

    def run(self, tool: str, *arguments: object) -> str:
        """Returns the tool's standard output; what it says on standard error is shown only if it fails."""
        command = [str(self.folder / tool), *map(str, arguments)]
        try:
            done = subprocess.run(command, capture_output=True, text=True, check=False, env=self.environment())
        except OSError as reason:
            raise DemoError(f"{command[0]}: {reason.strerror}; build it with scripts/build.sh demo, or name the folder "
                            "of the tools with --tools", 2) from None
        if done.returncode != 0:
            raise DemoError(f"{' '.join(command)}: exit status {done.returncode}\n{done.stderr.strip()}",
                            2 if done.returncode == 2 else 1)
        return done.stdout

    @staticmethod
    def environment() -> dict[str, str]:
        """Gradients of GiBs in huge pages: otherwise the first iteration goes into page faults. Measuring the
        profile and replaying must agree in this, since it changes what codecs cost."""
        return {"GLIBC_TUNABLES": "glibc.malloc.hugetlb=1", **os.environ}

    def run_json(self, tool: str, *arguments: object) -> dict:
        return json.loads(self.run(tool, *arguments, "--json"))


@dataclasses.dataclass(frozen=True)
class Job:
    """What the demo runs, and where its files go."""

    tools: Tools
    output: pathlib.Path
    model: str
    nnodes: int
    iterations: int

    @property
    def profile(self) -> pathlib.Path:
        return self.output / "profile.yaml"

    @property
    def trace(self) -> pathlib.Path:
        return self.output / "timeline.json"

    def require_model(self) -> None:
        """DemoError for a model that the tools do not take, before the machine is profiled for it."""
        self.tools.run("hipress-sim", "--input", self.model, "--plan", "none", "--nnodes", self.nnodes)

    def measure_machine(self) -> None:
        self.tools.run("hipress-profile", "--quick", "--nnodes", self.nnodes,
                       "--algorithm", f"{ALGORITHM},fp16", "--output", self.profile)

    def plan_argument(self, topology: str, plan: str) -> str:
        """What --plan takes: the plan's name, or the file of the plan that is searched for here."""
        if plan != "secopa":
            return plan
        path = self.output / f"secopa_{topology}.txt"
        self.tools.run("hipress-plan", "--input", self.model, "--topology", topology, "--nnodes", self.nnodes,
                       "--algorithm", ALGORITHM, "--output", path)  # by the costs published with SeCoPa
        return str(path)

    def run_case(self, topology: str, plan: str) -> Case:
        trace = ["--trace", self.trace] if (topology, plan) == TRACED else []
        report = self.tools.run_json("hipress-exec", "--input", self.model,
                                     "--plan", self.plan_argument(topology, plan), "--topology", topology,
                                     "--nnodes", self.nnodes, "--algorithm", ALGORITHM,
                                     "--profile", self.profile, "--iterations", self.iterations, *trace)
        return Case.from_report(topology, plan, report)


def median_error(cases: list[Case]) -> float:
    return statistics.median(abs(case.error) for case in cases)


def median_exposed_error(cases: list[Case]) -> float | None:
    errors = [abs(case.exposed_error) for case in cases if case.exposed_error is not None]
    return statistics.median(errors) if errors else None


HEADER = (f"{'topology':8} {'plan':8} {'predicted':>10} {'measured':>10} {'error':>8}   "
          f"{'exposed predicted':>17} {'measured':>10} {'error':>8}")


def format_error(error: float | None) -> str:
    return "–" if error is None else f"{error * 100:+.1f} %"


def format_row(case: Case) -> str:
    return (f"{case.topology:8} {case.plan:8} {case.predicted_s:8.3f} s {case.measured_s:8.3f} s "
            f"{format_error(case.error):>8}   {case.predicted_exposed_s:15.3f} s "
            f"{case.measured_exposed_s:8.3f} s {format_error(case.exposed_error):>8}   "
            f"verified: {'yes' if case.verified else 'NO'}")


def format_summary(cases: list[Case]) -> str:
    exposed = median_exposed_error(cases)
    return (f"median relative error: {median_error(cases) * 100:.1f} % of the iteration time, "
            + ("no communication exposed" if exposed is None
               else f"{exposed * 100:.1f} % of the exposed communication"))


def write_results(path: pathlib.Path, job: Job, cases: list[Case]) -> None:
    write_json(path, {
        "model": job.model,
        "nnodes": job.nnodes,
        "algorithm": ALGORITHM,
        "median_abs_error": median_error(cases),
        "median_abs_exposed_communication_error": median_exposed_error(cases),
        "cases": [dataclasses.asdict(case) for case in cases],
    })


def draw(trace: pathlib.Path, picture: pathlib.Path) -> None:
    """Draws the timeline, or says why not: the picture is an extra, and matplotlib may be missing."""
    try:
        plot(*read(trace), picture)
    except ImportError as reason:
        print(f"{picture} not drawn: {reason} (Debian package python3-matplotlib)")
        return
    except (Refused, OSError) as reason:
        print(f"{picture} not drawn: {reason}")
        return
    print(f"timelines: {picture}; the same for https://ui.perfetto.dev: {trace}")


def run(job: Job) -> int:
    """The whole job; returns the exit status."""
    make_folder(job.output)
    job.require_model()
    print(f"profiling this machine -> {job.profile}", flush=True)
    job.measure_machine()
    print(f"{job.model}, {job.nnodes} ranks on this machine, compressed with {ALGORITHM}; "
          f"median of {job.iterations} iterations\n\n{HEADER}", flush=True)
    cases = []
    for topology in TOPOLOGIES:
        for plan in PLANS:
            cases.append(job.run_case(topology, plan))
            print(format_row(cases[-1]), flush=True)
    print(f"\n{format_summary(cases)}")
    write_results(job.output / "results.json", job, cases)
    draw(job.trace, job.output / "timeline.png")
    return 0 if all(case.verified for case in cases) else 1


def of_project(path: str) -> str:
    """A path of the project, as seen from the current folder."""
    return os.path.relpath(ROOT / path)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--tools", type=pathlib.Path, default=ROOT / "build/release/bin", help="folder of the tools")
    parser.add_argument("--output", type=pathlib.Path, default=of_project("build/demo"), help="folder of the results")
    parser.add_argument("--model", default=of_project("models/vgg19.yaml"), help="what is trained")
    parser.add_argument("--nnodes", type=at_least(2), default=4, help="ranks")
    parser.add_argument("--iterations", type=at_least(1), default=3, help="measured iterations of each case")
    options = parser.parse_args()
    start_where_matplotlib_is()
    try:
        return run(Job(Tools(options.tools.resolve()), options.output, options.model, options.nnodes,
                       options.iterations))
    except DemoError as error:
        print(f"demo: {error}", file=sys.stderr)
        return error.status
    except Unwritable as error:
        print(f"demo: --output: {error}", file=sys.stderr)
        return 2
    except OSError as error:
        print(f"demo: {error}", file=sys.stderr)
        return 1


if __name__ == "__main__":
    sys.exit(main())
