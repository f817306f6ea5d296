#!/usr/bin/env python3
"""Lists how far from the lower bound hipress-plan's plans of the shipped models are.

    scripts/gaps.py [--json FILE] [--models vgg19,lstm] [-- OPTIONS OF hipress-plan]

Plans every model for 16 nodes, both topologies, profile v100-100g as it is and with links of 25 and 10 Gbit/s,
with the tool's own options but for those given. Needs the tools built (scripts/build.sh demo). Each run has a
folder of its own: OPTIONS name files by their whole paths. Exit status 1 if the tool fails, 2 if the request is
wrong.
"""

import argparse
import json
import math
import pathlib
import statistics
import subprocess
import sys
import tempfile

from whole_file import Unwritable, require_writable, write_json

ROOT = pathlib.Path(__file__).resolve().parent.parent
TOPOLOGIES = ("ps", "ring")
PROFILE = "v100-100g"
NODES = 16
#: The link's bandwidth; None: the profile's.
BANDWIDTHS = (None, "25Gbps", "10Gbps")


class GapError(Exception):
    """The tool failed, or says no gap; the message says for what, and why. `status` is the exit status for that: 2 where
    the request is wrong."""

    def __init__(self, message: str, status: int):
        super().__init__(message)
        self.status = status


def as_seen_from_here(model: str) -> str:
    """What the tool, which runs elsewhere, takes for a model: the whole path of a file, else the name of a shipped one."""
    path = pathlib.Path(model)
    return str(path.resolve()) if path.is_file() else model


def plan(tool: pathlib.Path, model: str, topology: str, bandwidth: str | None, options: list[str]) -> dict:
    """What the tool says of one case, as a row of the table."""
    with tempfile.TemporaryDirectory() as folder:
        command = [str(tool), "--input", as_seen_from_here(model), "--topology", topology, "--nnodes", str(NODES),
                   "--profile", PROFILE, "--json", *options]
        if bandwidth:
            cluster = pathlib.Path(folder) / "cluster.yaml"
            cluster.write_text(f"link: {{bandwidth: {bandwidth}, bandwidth_both_ways: {bandwidth}}}\n")
            command += ["--cluster", str(cluster)]
        done = subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False)
    if done.returncode != 0:
        raise GapError(f"{' '.join(command)}: {done.stderr.strip()}", 2 if done.returncode == 2 else 1)
    said = json.loads(done.stdout)
    if said["gap"] is None:
        raise GapError(f"{' '.join(command)}: says no lower bound; let it search by simulating, as --search timeline", 2)
    return {"model": model, "topology": topology, "bandwidth": bandwidth or "profile",
            **{key: said[key] for key in ("predicted_iteration_s", "lower_bound_s", "gap", "search_s", "evaluations")}}


def percentile(values: list[float], percent: int) -> float:
    """The smallest of `values` that so many percent of them do not exceed."""
    return sorted(values)[math.ceil(percent / 100 * len(values)) - 1]


def summarise(cases: list[dict]) -> dict:
    gaps = [case["gap"] for case in cases]
    return {"cases": len(gaps), "median": statistics.median(gaps), "p90": percentile(gaps, 90), "max": max(gaps)}


def shown(case: dict) -> str:
    return (f"{case['model']:<14} {case['topology']:<5} {case['bandwidth']:>8} "
            f"{1e3 * case['predicted_iteration_s']:>10.3f} ms  bound {1e3 * case['lower_bound_s']:>10.3f} ms "
            f"{100 * case['gap']:>7.2f} %")


def parse(arguments: list[str]) -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    models = sorted(path.stem for path in (ROOT / "models").glob("*.yaml"))
    parser.add_argument("--models", default=",".join(models), help="with commas (default: all shipped)")
    parser.add_argument("--json", type=pathlib.Path, help="also write the table to this file")
    parser.add_argument("--tool", type=pathlib.Path, default=ROOT / "build/release/bin/hipress-plan")
    parser.add_argument("options", nargs="*", help="of hipress-plan, behind --")
    return parser.parse_args(arguments)


def main(arguments: list[str]) -> int:
    options = parse(arguments)
    cases = []
    try:
        if options.json:
            require_writable(options.json)
        for model in options.models.split(","):
            for topology in TOPOLOGIES:
                for bandwidth in BANDWIDTHS:
                    cases.append(plan(options.tool.resolve(), model, topology, bandwidth, options.options))
                    print(shown(cases[-1]), flush=True)
    except GapError as error:
        print(f"gaps.py: {error}", file=sys.stderr)
        return error.status
    except Unwritable as error:
        print(f"gaps.py: {error}", file=sys.stderr)
        return 2
    except OSError as error:
        print(f"gaps.py: {error}; build the tool with scripts/build.sh demo, or name it with --tool", file=sys.stderr)
        return 1
    summary = summarise(cases)
    print(f"{summary['cases']} cases: median {100 * summary['median']:.2f} %, p90 {100 * summary['p90']:.2f} %, "
          f"at most {100 * summary['max']:.2f} %")
    if options.json:
        table = {"options": options.options, "nodes": NODES, "profile": PROFILE, **summary, "rows": cases}
        write_json(options.json, table)
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
