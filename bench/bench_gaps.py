#!/usr/bin/env python3
"""Lists how far hipress-plan's plans for the shipped models are above the lower bound: on 16 nodes, with topologies ps and ring,
with profile v100-100g as it is and with links of 25 and 10 Gbit/s.

    bench/bench_gaps.py [--json FILE] [--models vgg19,lstm] [--tool FILE]

Exit status 1 if the tool fails.
"""

import argparse
import itertools
import json
import pathlib
import statistics
import subprocess
import sys
import tempfile

ROOT = pathlib.Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT / "scripts"))
from validation.evaluation import quantile  # noqa: E402  (found through the path above)
from whole_file import write_json  # noqa: E402

NODES, PROFILE = 16, "v100-100g"
#: Bandwidths of the links; None: as in the profile.
BANDWIDTHS = (None, "25Gbps", "10Gbps")
KEYS = ("predicted_iteration_s", "lower_bound_s", "gap", "search_s", "evaluations")


def planned(tool: pathlib.Path, model: str, topology: str, bandwidth: str | None) -> dict:
    """Plans one case. Returns it as a row of the table."""
    with tempfile.TemporaryDirectory() as folder:
        command = [tool, "--input", model, "--topology", topology, "--nnodes", str(NODES), "--profile", PROFILE, "--json"]
        if bandwidth:
            cluster = pathlib.Path(folder, "cluster.yaml")
            cluster.write_text(f"link: {{bandwidth: {bandwidth}, bandwidth_both_ways: {bandwidth}}}\n")
            command += ["--cluster", cluster]
        done = subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False)
    if done.returncode != 0:
        sys.exit(f"bench_gaps: {model}: {done.stderr.strip()}")
    said = json.loads(done.stdout)
    return {"model": model, "topology": topology, "bandwidth": bandwidth or "profile", **{key: said[key] for key in KEYS}}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    models = sorted(path.stem for path in (ROOT / "models").glob("*.yaml"))
    parser.add_argument("--models", default=",".join(models), help="with commas (default: all shipped)")
    parser.add_argument("--json", type=pathlib.Path, help="also write the table to this file")
    parser.add_argument("--tool", type=pathlib.Path, default=ROOT / "build/release/bin/hipress-plan")
    options = parser.parse_args()
    rows = []
    for case in itertools.product(options.models.split(","), ("ps", "ring"), BANDWIDTHS):
        rows.append(row := planned(options.tool.resolve(), *case))
        print(f"{row['model']:<14} {row['topology']:<5} {row['bandwidth']:>8} {1e3 * row['predicted_iteration_s']:>10.3f} ms  bound "
              f"{1e3 * row['lower_bound_s']:>10.3f} ms {100 * row['gap']:>7.2f} %", flush=True)
    gaps = [row["gap"] for row in rows]
    summary = {"cases": len(gaps), "median": statistics.median(gaps), "p90": quantile(gaps, 0.9), "max": max(gaps)}
    print(f"{len(gaps)} cases: median {summary['median']:.2%}, p90 {summary['p90']:.2%}, at most {summary['max']:.2%}")
    if options.json:
        write_json(options.json, {"nodes": NODES, "profile": PROFILE, **summary, "rows": rows})


if __name__ == "__main__":
    main()
