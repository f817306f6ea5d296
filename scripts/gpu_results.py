#!/usr/bin/env python3
"""Prints the measurements of scripts/gpu_check.sh as a page of Markdown, with the targets that were missed.

usage: gpu_results.py gpu_check.json [--output bench/results]

With --output it also writes the page to FOLDER/gpu_NAME.md, NAME being the GPU's, and a copy of the JSON beside it. It does not
write a dry run, whose figures mean nothing. Exit status 0 if every target was reached, 1 if a step failed, 2 if the file is not a
report.
"""

import argparse
import json
import pathlib
import re
import sys

from whole_file import replacing, write_json

#: Step whose figures are tabulated by case and size.
CODECS = "codecs"


def read(path: pathlib.Path) -> dict:
    try:
        report = json.loads(path.read_text(encoding="utf-8"))
        if not isinstance(report["steps"], list) or not isinstance(report["machine"]["gpu"], str):
            raise KeyError("steps")
        for step in report["steps"]:
            _ = step["name"], step["result"], step["detail"], step["seconds"], step["metrics"].items()
    except (OSError, RecursionError, ValueError, KeyError, TypeError, AttributeError) as error:
        print(f"gpu_results: {path}: not a report of gpu_check.sh ({error}); give its gpu_check.json", file=sys.stderr)
        raise SystemExit(2) from None
    return report


def codec_table(metrics: dict) -> list:
    """Table by case and size: GB/s of gradients, and the share of the bound that memory bandwidth sets."""
    cases, sizes = {}, []
    for name, value in metrics.items():
        case, size, what = name.rsplit(".", 2)
        if value is None:
            continue
        cases.setdefault(case, {}).setdefault(size, {})[what] = value
        if size not in sizes:
            sizes.append(size)
    sizes.sort(key=lambda size: float(size.removeprefix("2^")))
    lines = ["| case | " + " | ".join(f"{size}: GB/s | of the floor" for size in sizes) + " |", "|---" * (1 + 2 * len(sizes)) + "|"]
    for case, by_size in cases.items():
        cells = []
        for size in sizes:
            found = by_size.get(size, {})
            cells += [f"{found['GBps']:.1f}" if "GBps" in found else "", f"{found['of_floor']:.2f}" if "of_floor" in found else ""]
        lines.append(f"| {case} | " + " | ".join(cells) + " |")
    return lines


def page(report: dict) -> str:
    machine = report["machine"]
    name = machine["gpu"] or "no GPU"
    lines = [f"# {name.split(',')[0]}", "",
             f"{name}; {machine['cores']} cores, {machine['host']}; {machine['tools']}; {report['date']}. Measured by "
             "`scripts/gpu_check.sh`.", ""]
    if report.get("dry_run"):
        lines += ["**A dry run: these figures are not a GPU's.**", ""]
    lines += ["| step | result | seconds | outcome |", "|---|---|---|---|"]
    for step in report["steps"]:
        lines.append(f"| {step['name']} | {step['result']} | {step['seconds']} | {step['detail'].replace('|', ' ')} |")
    for step in report["steps"]:
        if not step["metrics"]:
            continue
        lines += ["", f"## {step['name']}: {step.get('what', '')}".rstrip(": "), ""]
        if step["name"] == CODECS:
            lines += codec_table(step["metrics"])
        else:
            lines += ["| figure | value |", "|---|---|"]
            lines += [f"| {figure} | {'not known' if value is None else format(value, '.6g')} |" for figure, value in
                      step["metrics"].items()]
    lines += ["", "## What missed its target", ""]
    missed = [step for step in report["steps"] if step["result"] == "failed"]
    lines += [f"- **{step['name']}**: {step['detail']}" for step in missed] or ["Nothing."]
    skipped = [step for step in report["steps"] if step["result"] == "skipped"]
    if skipped:
        lines += ["", "Not run: " + "; ".join(f"{step['name']} ({step['detail']})" for step in skipped) + "."]
    return "\n".join(lines) + "\n"


def file_name(gpu: str) -> str:
    """File name of a GPU: gpu_nvidia_h100_80gb_hbm3 for 'NVIDIA H100 80GB HBM3, 580.1'."""
    return "gpu_" + re.sub(r"[^a-z0-9]+", "_", gpu.split(",")[0].lower()).strip("_")


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("report", type=pathlib.Path, help="gpu_check.json")
    parser.add_argument("--output", type=pathlib.Path, metavar="FOLDER", help="also write the page and the JSON there")
    options = parser.parse_args()
    report = read(options.report)
    text = page(report)
    print(text, end="")
    if options.output is not None:
        if report.get("dry_run") or not report["machine"]["gpu"]:
            print("gpu_results: a run without a GPU is not kept: leave out --output", file=sys.stderr)
            return 2
        if not options.output.is_dir():
            print(f"gpu_results: --output: {options.output} is no folder", file=sys.stderr)
            return 2
        stem = options.output / file_name(report["machine"]["gpu"])
        with replacing(f"{stem}.md") as temporary:
            temporary.write_text(text, encoding="utf-8")
        write_json(f"{stem}.json", report)
    return 1 if any(step["result"] == "failed" for step in report["steps"]) else 0


if __name__ == "__main__":
    sys.exit(main())
