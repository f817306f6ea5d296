#!/usr/bin/env python3
"""Predicts the training throughputs that the HiPress paper (SOSP 2021) published, with hipress-sim.

Calibrates each cluster (slow-down and summing inside a node, effective bandwidth of the uncompressed ring and PS) on the rows of
--calibrate whose algorithm is `none`, and predicts every row of --predict. `linear` rows, of either file, give the compute time;
they count in no mean. Prints every case with its error, and the errors of two trivial predictors: linear scaling, and the multiple
of linear scaling that fits the predicted rows best.

example: reproduce_sosp21.py --calibrate tests/data/sosp21_throughput.csv --predict tests/data/sosp21_throughput.csv
exit status: 0 done; 1 a tool failed or a package is missing; 2 the request is wrong
"""

import argparse
import pathlib
import sys

from python_that_draws import start_where_matplotlib_is
from sosp21 import evaluation, plot, rows, setups, simulator, systems
from sosp21.calibration import Lab, calibrate
from whole_file import Unwritable, require_writable, write_json
from hipress._style import PictureError, form_of  # noqa: E402  (through the path that whole_file adds)

CSV = setups.ROOT / "tests/data/sosp21_throughput.csv"

#: Assumptions: subject, assumption, reason.
ASSUMPTIONS = (
    ("raw BytePS, Ring", "compute, sum in the node, network one after the other",
     "predicts 4 nodes from 1 and 2 better than overlap"),
    ("their messages", f"buffers of {systems.RAW_BUFFER_BYTES >> 20} MiB, K = N",
     "Horovod's default; BytePS cuts, to the same effect"),
    ("a message", f"{simulator.OVERHEAD_S * 1e6:.1f} us on both ports, {simulator.LATENCY_S * 1e6:.1f} us on the wire",
     "published with SeCoPa (profile sosp21)"),
    ("HiPress", f"SeCoPa's plan, gradients below {systems.BULK_BYTES >> 20} MiB collected, all pipelined",
     "its documentation"),
    ("its messages", "the same times, but the ports are busy with bytes alone", "bulk: what waits goes together"),
    ("its network", "bandwidth and slow-down of the cluster's Ring rows", "the same machines"),
    ("its codecs", "profile v100-100g × 900 GB/s ÷ the GPU's memory bandwidth",
     "kernels wait for memory; bulk: launches in a busy stream"),
    ("BytePS(OSS-...)", "5 GB/s on the CPU (10 on aws), one codec thread, pieces of 4 MB",
     "middle of what generic CPU code reaches; faster host memory"),
    ("Ring(OSS-...)", f"all GPUs gather after backward, kernels at {systems.GENERIC_EFFICIENCY:.0%} of the bandwidth",
     "Horovod's gather is flat; the same generic code beside memcpy"),
    ("any, on one node", "uncompressed, as BytePS or Ring", "nothing crosses a network"),
    ("ablation", "one plan, all costs as published; " + ", ".join(switch for switch, _ in systems.FEATURES),
     "so that what a feature gains is for hipress-sim to say"),
    ("its bulk", f"gradients below {systems.BULK_BYTES >> 20} MiB, up to as many; kernels below it, within "
     f"{simulator.BATCH_WAIT}", "as above; without a bound all would wait for the last"),
)


def parse_arguments():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--calibrate", metavar="CSV", default=str(CSV), help="rows to learn from")
    parser.add_argument("--predict", metavar="CSV", default=str(CSV), help="rows to predict")
    parser.add_argument("--json", metavar="FILE", help="write calibration, cases and means here")
    parser.add_argument("--plot", metavar="FILE.png", help="draw predictions over what was published")
    parser.add_argument("--held-out", action="store_true",
                        help="also predict uncompressed rows of --calibrate from the other ones")
    parser.add_argument("--larger", action="store_true",
                        help="also predict every system of --predict on as many GPUs as its linear rows have")
    parser.add_argument("--ablation", action="store_true", help="also add CaSync's features one after the other")
    parser.add_argument("--tools", type=pathlib.Path, help="folder of hipress-sim and hipress-plan")
    return parser.parse_args()


def percent(value):
    return "–" if value is None else f"{value * 100:+.1f} %"


def print_assumptions():
    for what, assumed, reason in (("what", "assumed", "because"), *ASSUMPTIONS):
        print(f"{what:18}{assumed:75}{reason}")
    print()


def print_calibration(calibrations):
    print(f"{'cluster':8}{'system':8}{'slow-down':>10}{'in the node':>14}{'network':>12}   learnt from")
    for (cluster, system), c in calibrations.items():
        local = f"{1e-9 / c.local_s_per_byte:.1f} GB/s" if c.local_s_per_byte else "hidden"
        print(f"{cluster:8}{system:8}{c.slowdown:10.1%}{local:>14}{c.bandwidth / 1e9:7.2f} GB/s   "
              f"{c.local_from}; {c.bandwidth_from}")


def print_cases(cases):
    print(f"\n{'cluster':8}{'model':12}{'system':23}{'algorithm':10}{'gpus':>5}{'published':>11}{'predicted':>11}"
          f"{'error':>9}{'linear':>9}")
    for case in cases:
        row = case.row
        if row.is_linear:
            continue
        published, beside = ("–", "–") if row.throughput is None else (
            f"{row.throughput:g}", percent(case.linear / row.throughput - 1))
        print(f"{row.cluster:8}{row.model:12}{row.system:23}{row.algorithm:10}{row.gpus:5}{published:>11}"
              f"{case.predicted:11.5g}{percent(case.error):>9}{beside:>9}")


def summarise(groups):
    """Summaries, {group: {"rows", "mean_abs_error", "linear", "best_constant"}}, of the groups that have published rows."""
    result = {}
    for name, cases in groups.items():
        cases = evaluation.measured(cases)
        if cases:
            result[name] = {"rows": len(cases), "mean_abs_error": evaluation.mean_abs_error(cases),
                            "linear": evaluation.linear_error(cases),
                            "best_constant": evaluation.constant_error(cases)}
    return result


def print_summary(summary):
    print(f"\nmean absolute error             {'rows':>5}{'ours':>9}{'linear':>9}{'constant × linear':>19}")
    for name, means in summary.items():
        print(f"{name:32}{means['rows']:5}{means['mean_abs_error']:9.1%}{means['linear']:9.1%}"
              f"{means['best_constant']:19.1%}")


def print_ablation(ablations):
    print(f"\nVGG19 on {evaluation.ABLATION_NODES} nodes of local, synchronisation time in ms\n"
          f"{'':26}{'published':>10}" + "".join(f"{'CaSync-' + topology:>14}" for topology in ablations))
    for index, (name, published) in enumerate(evaluation.ABLATION):
        print(f"{name:26}{published:10}" + "".join(f"{times[index]:14.0f}" for times in ablations.values()))


def require_outputs(options) -> None:
    """Raises PictureError or Unwritable if a result could not be written after the minutes of simulation, and ImportError without
    matplotlib."""
    if options.json:
        require_writable(options.json)
    if options.plot:
        form_of(options.plot)
        require_writable(options.plot)


def run(options) -> int:
    require_outputs(options)
    given = rows.read(options.calibrate, with_throughput=True)
    wanted = rows.read(options.predict, with_throughput=False)
    lab = Lab(simulator.Simulator(options.tools), given, wanted)
    calibrations = calibrate(lab, given)
    cases = evaluation.predict(lab, calibrations, wanted)
    groups = {name: [case for case in cases if case.group == name] for name in evaluation.GROUPS}
    if options.held_out:
        groups.update(evaluation.held_out(lab, given))
    ablations = {topology: evaluation.ablation(lab, calibrations, topology)
                 for topology in ("PS", "RING")} if options.ablation else {}
    larger = evaluation.predict(lab, calibrations, evaluation.larger(wanted)) if options.larger else []
    summary = summarise(groups)
    print_assumptions()
    print_calibration(calibrations)
    print_cases(cases + larger)
    for name in list(groups)[len(evaluation.GROUPS):]:
        print(f"\n{name}:", end="")
        print_cases(groups[name])
    print_summary(summary)
    if ablations:
        print_ablation(ablations)
    if options.json:
        write_json(options.json, report(calibrations, cases, larger, summary, ablations))
    if options.plot:
        plot.draw(cases + larger, options.plot)
    return 0


def report(calibrations, cases, larger, summary, ablations):
    return {"mean_abs_error": evaluation.mean_abs_error(cases),
            "means": summary,
            "calibration": [{"cluster": cluster, "system": system, "slowdown": c.slowdown,
                             "local_s_per_byte": c.local_s_per_byte, "bandwidth_bytes_per_s": c.bandwidth,
                             "local_from": c.local_from, "bandwidth_from": c.bandwidth_from}
                            for (cluster, system), c in calibrations.items()],
            "ablation_ms": ablations,
            "cases": [case.report() for case in cases],
            "larger": [case.report() for case in larger]}


def main() -> int:
    options = parse_arguments()
    if options.plot:
        start_where_matplotlib_is()
    try:
        return run(options)
    except (rows.InputError, Unwritable, PictureError) as error:
        print(f"reproduce_sosp21: {error}", file=sys.stderr)
        return 2
    except ImportError as error:
        print(f"reproduce_sosp21: --plot: {error}", file=sys.stderr)
        return 1
    except (simulator.ToolError, OSError) as error:
        print(f"reproduce_sosp21: {error}", file=sys.stderr)
        return 1


if __name__ == "__main__":
    sys.exit(main())
