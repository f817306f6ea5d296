#!/usr/bin/env python3
"""Checks the compiled code of all CUDA kernels for A100, H100 and B200, without a GPU (docs/gpu.md).

    scripts/kernel_gate.py              fails if a kernel's code differs from its row
    scripts/kernel_gate.py --write      the same, and writes the tables of docs/gpu.md
    scripts/kernel_gate.py --list       one line per kernel, its arguments and its generation

It reads the objects of --build (default build/release). Kernels that the build has not compiled are compiled from its PTX. That
takes minutes the first time; the folder kernel_gate in the build keeps them. Rows are in scripts/gate/rows.py.

Exit status: 0 all kernels agree with their rows; 1 one does not; 2 the request is wrong; 3 skipped, with the reason."""

import argparse
import pathlib
import re
import sys

from gate import cubins, rows

ROOT = pathlib.Path(__file__).resolve().parents[1]
PAGE = ROOT / "docs/gpu.md"
BEGIN, END = "<!-- begin: scripts/kernel_gate.py --write -->\n", "<!-- end -->\n"
TOLERANCE = 0.05


def estimates(root: pathlib.Path = ROOT) -> dict[str, float]:
    """Bytes per element from which profiles are estimated, by algorithm and direction, as in the tables of kernels/registry and
    costs."""
    registry = (root / "kernels/registry/registry.cpp").read_text(encoding="utf-8")
    found = {}
    for name, encode, _, add in re.findall(r"ROW\((\w+), \d+, HIPRESS_TRAFFIC\(([\d.]+), ([\d.]+), ([\d.]+),", registry):
        found |= {f"{name} encode": float(encode), f"{name} decode_add": float(add)}
    cast = re.search(r"kFinest, \{(\d+), \d+, (\d+)\}", registry)
    merge = re.search(r"Work kMerge = \{(\d+),", (root / "costs/starter_profile.cpp").read_text(encoding="utf-8"))
    for name in ("fp16", "bf16"):
        found |= {f"{name} encode": float(cast[1]), f"{name} decode_add": float(cast[2])}
    return found | {"merge encode": float(merge[1])}


def faults_of_kernel(kernel: cubins.Measured, row: rows.Row, occupancy: int) -> list[str]:
    found = []
    if kernel.spilled:
        found.append(f"spills {kernel.spilled} bytes of registers")
    if kernel.local > row.local or kernel.accesses and not row.local:
        found.append(f"has {kernel.local} bytes of local memory per thread, its row allows {row.local}")
    if occupancy < row.occupancy:
        found.append(f"occupancy {occupancy} % with {kernel.registers} registers and {kernel.shared} bytes of shared memory, its "
                     f"row says {row.occupancy} %")
    for what, has, claimed in (("load", kernel.load, row.load), ("store", kernel.store, row.store)):
        if has < claimed:
            found.append(f"the widest {what} has {has} bits, its row claims {claimed}")
    return [f"{kernel.kernel} for sm_{kernel.generation}: {fault}" for fault in found]


def counted(traffic: rows.Traffic, kernels: list[cubins.Measured]) -> dict[int, float]:
    """Bytes per element by generation, summed over all passes. Generations that lack the kernel of a pass are left out."""
    key = f"{traffic.algorithm} {traffic.direction}"
    sums = {}
    for generation in sorted({kernel.generation for kernel in kernels}):
        of_pass = [next((each.moved[key] for each in kernels if each.generation == generation and each.kernel == one.kernel), None)
                   for one in traffic.passes]
        if None not in of_pass:
            sums[generation] = sum(of_pass)
    return sums


def faults(kernels: list[cubins.Measured], occupancies: list[int], table: tuple[rows.Row, ...] = rows.ROWS,
           traffic: tuple[rows.Traffic, ...] = rows.TRAFFIC, estimated: dict[str, float] | None = None) -> list[str]:
    """Sentences about kernels that differ from their rows, and about rows without a kernel."""
    estimated = estimates() if estimated is None else estimated
    by_name = {row.name: row for row in table}
    found = [f"{row.name}: occupancy below 50 % or local memory, but its row has no reason" for row in table
             if (row.occupancy < 50 or row.local) and not row.why]
    found += [f"{name}: no row in scripts/gate/rows.py" for name in sorted({each.name for each in kernels} - by_name.keys())]
    found += [f"{name}: there is a row, but no such kernel" for name in by_name.keys() - {each.name for each in kernels}]
    for kernel, occupancy in zip(kernels, occupancies):
        if kernel.name in by_name:
            found += faults_of_kernel(kernel, by_name[kernel.name], occupancy)
    for row in traffic:
        key = f"{row.algorithm} {row.direction}"
        if key not in estimated:
            found.append(f"{key}: no estimate to compare with")
            continue
        sums, due = counted(row, kernels), estimated[key] + row.beyond
        if not sums:
            found.append(f"{key}: no kernel {', '.join(each.kernel for each in row.passes)}")
        found += [f"{key} for sm_{generation}: {moved:.3f} bytes per element in the code, {due:.3f} in the estimate"
                  + (f" with {row.beyond:g} for {row.why}" if row.beyond else "")
                  for generation, moved in sums.items() if abs(moved - due) > TOLERANCE * due]
    return found


def range_of(values: list[int]) -> str:
    return str(min(values)) if min(values) == max(values) else f"{min(values)}–{max(values)}"


def tables(kernels: list[cubins.Measured], occupancies: list[int]) -> str:
    """The tables of docs/gpu.md. A row has the figures of one kernel, as ranges over its template arguments and the generations, or
    one count of bytes."""
    lines = [f"Compiled by CUDA {cubins.nvcc_version()} for " + ", ".join(f"sm_{each}" for each in cubins.GENERATIONS) + ".", "",
             "| kernel | in | registers | local bytes | shared bytes | barriers | occupancy, % | widest load, store, bits |",
             "|---|---|---|---|---|---|---|---|"]
    for row in rows.ROWS:
        mine = [(kernel, occupancy) for kernel, occupancy in zip(kernels, occupancies) if kernel.name == row.name]
        of = [kernel for kernel, _ in mine]
        lines.append(f"| `{row.name}` | `{row.file}` | {range_of([each.registers for each in of])} "
                     f"| {range_of([each.local for each in of])} | {range_of([each.shared for each in of])} "
                     f"| {range_of([each.barriers for each in of])} | {range_of([occupancy for _, occupancy in mine])} "
                     f"| {range_of([each.load for each in of])}, {range_of([each.store for each in of])} |")
    lines += ["", "Kernels with less than 50 % of the threads, or with local memory:", ""]
    lines += [f"- `{row.name}`: {row.why}." for row in rows.ROWS if row.why]
    estimated = estimates()
    lines += ["", "| fp32 values | kernels | bytes per element in the code | in the estimate | beyond it |",
              "|---|---|---|---|---|"]
    for row in rows.TRAFFIC:
        sums = [f"{each:.3f}" for each in counted(row, kernels).values()]
        direction = row.direction.replace("decode_add", "decode and add")
        what = row.algorithm if row.algorithm == "merge" else f"{row.algorithm}, {direction}"
        estimate = estimated[f"{row.algorithm} {row.direction}"]
        lines.append(f"| {what} | {', '.join(f'`{each.kernel}`' for each in row.passes)} "
                     f"| {sums[0] if len(set(sums)) == 1 else ', '.join(sums)} | {estimate:.7g} "
                     f"| {f'{row.beyond:g}: {row.why}' if row.beyond else ''} |")
    lines += ["", "Not counted:", ""]
    lines += [f"- `{name}`: {why}." for name, why in rows.UNCOUNTED.items()]
    return "\n".join(lines) + "\n\n"


def parts_of(page: str) -> tuple[str, str, str]:
    """Parts of a page: before its tables, the tables, and after them."""
    before, _, rest = page.partition(BEGIN)
    within, _, after = rest.partition(END)
    return before + BEGIN, within, END + after


def gate(arguments: argparse.Namespace) -> int:
    build = arguments.build.resolve()
    objects = sorted(build.glob("*/CMakeFiles/hipress_*.dir/**/*.cu.o"))
    if not objects:
        raise cubins.Skipped(f"{build} has no objects of CUDA sources; build it with a toolkit (cmake/README.md), or give --build")
    cache = build / "kernel_gate"
    cache.mkdir(exist_ok=True)
    kernels = cubins.all_measured(objects, cache)
    by_name = {row.name: row for row in rows.ROWS}
    threads = [by_name[each.name].threads if each.name in by_name else 256 for each in kernels]
    occupancies = cubins.occupancies(list(zip(kernels, threads)), cache)
    if arguments.list:
        for kernel, occupancy in zip(kernels, occupancies):
            print(f"{kernel.kernel} sm_{kernel.generation}: {kernel.registers} registers, {kernel.local} local, "
                  f"{kernel.shared} shared, {kernel.barriers} barriers, {occupancy} %, {kernel.load} {kernel.store} bits"
                  + "".join(f", {key} {moved:.3f}" for key, moved in kernel.moved.items()))
    found = faults(kernels, occupancies)
    if not found or arguments.write:
        before, within, after = parts_of(PAGE.read_text(encoding="utf-8"))
        written = tables(kernels, occupancies)
        if arguments.write:
            PAGE.write_text(before + written + after, encoding="utf-8")
        elif within.splitlines()[:1] != written.splitlines()[:1]:
            print(f"gate: docs/gpu.md was written with another toolkit: {within.splitlines()[:1]}", file=sys.stderr)
        elif within != written:
            found.append("docs/gpu.md: its tables are not these; run scripts/kernel_gate.py --write")
    for fault in found:
        print(fault)
    names = {each.name for each in kernels}
    print(f"gate: {len(kernels)} compiled kernels of {len(names)} names, {len(found)} faults", file=sys.stderr)
    return 1 if found else 0


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--build", type=pathlib.Path, default=ROOT / "build/release", metavar="FOLDER")
    parser.add_argument("--write", action="store_true", help="write the tables of docs/gpu.md")
    parser.add_argument("--list", action="store_true", help="one line per kernel, its arguments and its generation")
    try:
        return gate(parser.parse_args())
    except cubins.Skipped as reason:
        print(f"gate: skipped: {reason}", file=sys.stderr)
        return 3
    except cubins.Failed as error:
        print(f"gate: {error}", file=sys.stderr)
        return 1


if __name__ == "__main__":
    sys.exit(main())
