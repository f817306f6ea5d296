"""Compares predictions with measurements of many plans on networks of known speed.

Profiles the network through the executor, then predicts and measures {ResNet50, VGG16, LSTM, GPT-2} x {ps, ring} x
{none, fp16, onebit, TernGrad, DGC} x {2, 3, 4} nodes x {200, 500, 1000} Mbit/s, sizes scaled so that a case takes
seconds. Writes cases.csv, pairs.csv, trace.json, scatter.png and the profiles into the output folder.
"""

import argparse

from .. import cases as matrix
from .. import results as files
from ..cases import LOOPBACK, Case
from ..command import Experiment
from ..evaluation import Result, Summary, different, groups, intervals, pairs, summarise
from ..measurement import MOST_NODES, Bench, Plan, by_group, links_of
from ..network import Network
from hipress._style import into_files, save  # noqa: E402  (through the path that whole_file adds)
from hipress._time_pictures import measured  # noqa: E402

#: Time to profile links, in seconds: those of the unlimited network, and those of each rate.
PROFILE_S, LINKS_S = 30, 90
#: Case that is traced, if it is among the cases of the run; otherwise the last case is traced.
TRACED = ("gpt2", "ps", "onebit")

HEADER = (f"{'model':9} {'topo':4} {'plan':8} {'N':>1} {'rate':>8} {'predicted':>10} {'measured':>10} "
          f"{'p10':>8} {'p90':>8} {'error':>8}   {'exposed':>9} {'measured':>9} {'error':>8}")


def percent(value: float | None, digits: int = 1) -> str:
    return "–" if value is None else f"{value * 100:+.{digits}f} %"


def format_row(result: Result) -> str:
    case = result.case
    notes = " within the spread" if result.within_spread else ""
    notes += " outside its interval" if result.within_interval is False else ""
    notes += f" disturbed: {result.disturbed} of {len(result.repetitions_s)}" if result.disturbed else ""
    notes += f" repeated: {result.repeated}" if result.repeated else ""
    return (f"{case.model:9} {case.topology:4} {case.algorithm:8} {case.nnodes} {case.rate:>8} "
            f"{result.predicted_s * 1e3:7.1f} ms {result.measured_s * 1e3:7.1f} ms {result.p10_s * 1e3:8.1f} "
            f"{result.p90_s * 1e3:8.1f} {percent(result.error):>8}   {result.exposed_predicted_s * 1e3:6.1f} ms "
            f"{result.exposed_measured_s * 1e3:6.1f} ms {percent(result.exposed_error):>8}{notes}")


def format_summary(name: str, summary: Summary) -> str:
    def share(value: float | None) -> str:
        return "–" if value is None else f"{value * 100:.1f} %"

    return (f"{name:12} {summary.cases:5} {share(summary.median_abs_error):>8} {share(summary.p90_abs_error):>8}   "
            f"{share(summary.median_abs_exposed_error):>8} {share(summary.p90_abs_exposed_error):>8}   "
            f"{summary.within_spread:13}   {share(summary.p90_abs_error_beyond_spread):>11}   "
            f"{summary.ranked}/{summary.pairs} {share(summary.ranking_accuracy)}")


def format_intervals(results: list[Result]) -> list[str]:
    told = intervals(results)
    if told is None:
        return []
    return [f"\n10–90 % intervals contain {told.within} of {told.cases} measured medians ({told.coverage * 100:.1f} %); mean width "
            f"{told.mean_width * 100:.1f} % of the prediction; of a constant width with the same coverage "
            f"{told.constant_width * 100:.1f} %"]


def format_report(results: list[Result]) -> str:
    lines = [f"{'':12} {'cases':>5} {'median':>8} {'p90':>8}   {'exposed':>8} {'p90':>8}   {'within spread':>13}   "
             f"{'beyond: p90':>11}   pairs ranked right"]
    for field in ("rate", "algorithm", "topology", "nnodes", "model"):
        for value, group in groups(results, field).items():
            lines.append(format_summary(f"{field if field == 'nnodes' else ''} {value}".strip(), summarise(group)))
    lines.append(format_summary("all", summarise(results)))
    lines.extend(format_intervals(results))
    wrong = [pair for pair in different(pairs(results)) if not pair.ranked]
    if wrong:
        lines.append("\nranked wrong:")
    for pair in wrong:
        case = pair.faster.case
        lines.append(f"  {case.model}, {case.nnodes} nodes, {case.rate}: {files.plan_name(pair.faster)} is faster than "
                     f"{files.plan_name(pair.slower)} by {pair.difference * 100:.1f} %")
    return "\n".join(lines)


def choose(options: argparse.Namespace) -> list[Case]:
    if options.loopback:
        chosen = matrix.matrix((LOOPBACK,))
    else:
        chosen = matrix.quick() if options.quick else matrix.matrix()
    return matrix.only(chosen, options.only)


class Run:
    """All cases of a command line."""

    def __init__(self, options: argparse.Namespace, bench: Bench, chosen: list[Case]):
        self.options = options
        self.bench = bench
        self.chosen = chosen
        self.csv = options.output / "cases.csv"
        self.results = {result.case: result for result in files.read_csv(self.csv)} if options.resume else {}

    @property
    def missing(self) -> list[Case]:
        return [case for case in self.chosen if case not in self.results]

    def announce(self) -> None:
        missing = self.missing
        profiles = [name for name in self.profiles(missing) if not self.bench.has_profile(name)]
        seconds = self.bench.plan.estimate_s(missing) + sum(
            PROFILE_S if name.startswith("unlimited") else LINKS_S for name in profiles)
        kept = len(self.chosen) - len(missing)
        self.options.say(f"{len(missing)} cases to run{f', {kept} kept' if kept else ''}; about {seconds / 60:.0f} minutes")

    @staticmethod
    def profiles(missing: list[Case]) -> list[str]:
        names = sorted({links_of(case) for case in missing if case.rate != LOOPBACK})
        return [*names, *(f"unlimited_{name}" for name in names)]

    def run(self) -> int:
        """Runs all cases. Returns the exit status, which is 1 if data did not verify."""
        self.announce()
        if self.options.loopback:
            return self.run_loopback()
        with Network(MOST_NODES) as network:
            bench = self.bench.on(network)
            for rate, nnodes in sorted({(case.rate, case.nnodes) for case in self.missing}):
                chosen = [case for case in self.missing if (case.rate, case.nnodes) == (rate, nnodes)]
                bench.profile_links(network, chosen[0])
                self.run_cases(bench, chosen)
            status = self.finish()
            self.compare_tasks(bench, network)
        return status

    def run_loopback(self) -> int:
        self.run_cases(self.bench, self.missing)
        status = self.finish()
        self.compare_tasks(self.bench, None)
        return status

    def run_cases(self, bench: Bench, chosen: list[Case]) -> None:
        for group in by_group(chosen):
            for result in bench.run_group(group):
                self.results[result.case] = result
                print(format_row(result), flush=True)
            files.write_csv(self.csv, list(self.results.values()))

    def compare_tasks(self, bench: Bench, network: Network | None) -> None:
        case = next((case for case in self.chosen if (case.model, case.topology, case.algorithm) == TRACED),
                    self.chosen[-1])
        if network is not None:
            if not bench.profile_path(links_of(case)).exists():  # a resumed run measures no other profiles
                bench.profile_links(network, case)
            network.shape(case.rate)
        said = bench.trace(case, self.options.output / "trace.json", self.results[case].measured_s)
        print(f"\n{case.name}, tasks by kind:\n{said}", flush=True)

    def finish(self) -> int:
        """Summarises and writes all results. Returns the exit status."""
        results = [self.results[case] for case in self.chosen]
        print(f"\n{format_report(results)}")
        files.write_pairs(self.options.output / "pairs.csv", results)
        if self.options.json:
            files.write_json(self.options.json, results)
        self.draw(results)
        return 0 if all(result.verified for result in results) else 1

    def draw(self, results: list[Result]) -> None:
        """Draws a picture, which is optional: matplotlib may be missing."""
        try:
            into_files()
            save(measured([files.row(result) for result in results]).figure, self.options.output / "scatter.png")
        except (ImportError, OSError) as reason:
            self.options.say(f"scatter.png not drawn: {reason}")


def add_options(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--quick", action="store_true", help="twelve cases, in at most ten minutes")
    parser.add_argument("--loopback", action="store_true",
                        help="on plain loopback instead of a shaped network; needs no rights")
    parser.add_argument("--only", default="", metavar="CONDITIONS",
                        help="cases that meet all of them: model=lstm,rate=200|500,nnodes=2")
    parser.add_argument("--scheduling", choices=("real-time", "normal"), default="real-time",
                        help="of the ranks; real-time, where allowed, keeps other programs from disturbing them")


def run(options: argparse.Namespace) -> int:
    validation = Run(options, Bench.of(options), choose(options))
    print(HEADER, flush=True)
    return validation.run()


EXPERIMENT = Experiment(run, add_options, Plan.rounds, Plan.iterations, Plan.again, "cases and profiles",
                        needs_network=lambda options: not options.loopback, real_time=lambda options: options.scheduling == "real-time")
