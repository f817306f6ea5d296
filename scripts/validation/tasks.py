"""Task by task: a trace with a predicted and a measured timeline of one graph, laid side by side."""

import collections
import dataclasses
import json
import pathlib
import re
import statistics

from .results import write_rows

COLUMNS = ("task", "kind", "node", "gradient", "partition", "predicted_start_s", "measured_start_s", "predicted_s",
           "measured_s")


@dataclasses.dataclass(frozen=True)
class Task:
    task: int
    kind: str
    node: int
    gradient: str
    partition: int
    predicted_start_s: float
    measured_start_s: float
    predicted_s: float
    measured_s: float

    @property
    def later_s(self) -> float:
        """How much later than predicted it ended."""
        return self.measured_start_s + self.measured_s - self.predicted_start_s - self.predicted_s


def read(path: pathlib.Path) -> list[Task]:
    """The tasks that take time in both timelines."""
    events = json.loads(path.read_text())["traceEvents"]
    processes = {}
    for event in events:
        if event["ph"] == "M" and event["name"] == "process_name":
            processes[event["pid"]] = re.fullmatch(r"(.*) node (\d+)", event["args"]["name"]).groups()
    timelines: dict = {"predicted": {}, "measured": {}}
    for event in events:
        if event["ph"] == "X" and "task" in event["args"]:
            timelines[processes[event["pid"]][0]][event["args"]["task"]] = event
    tasks = []
    for number, predicted in sorted(timelines["predicted"].items()):
        measured = timelines["measured"].get(number)
        if measured is None:
            continue
        arguments = predicted["args"]
        tasks.append(Task(number, predicted["cat"], int(processes[predicted["pid"]][1]),
                          arguments.get("gradient", ""), arguments.get("partition", 0), predicted["ts"] / 1e6,
                          measured["ts"] / 1e6, predicted["dur"] / 1e6, measured["dur"] / 1e6))
    return tasks


def write(path: pathlib.Path, tasks: list[Task]) -> None:
    write_rows(path, COLUMNS, [vars(task) for task in tasks])


@dataclasses.dataclass(frozen=True)
class Kind:
    """All tasks of one kind. Times in seconds."""

    kind: str
    tasks: int
    predicted_s: float
    measured_s: float
    median_later_s: float  #: of their ends, against the prediction
    most_later_s: float

    @property
    def error(self) -> float | None:
        return self.predicted_s / self.measured_s - 1 if self.measured_s > 0 else None


def by_kind(tasks: list[Task]) -> list[Kind]:
    found = collections.defaultdict(list)
    for task in tasks:
        found[task.kind].append(task)
    return [Kind(kind, len(group), sum(task.predicted_s for task in group), sum(task.measured_s for task in group),
                 statistics.median(task.later_s for task in group), max(task.later_s for task in group))
            for kind, group in found.items()]


def table(kinds: list[Kind]) -> str:
    lines = [f"{'kind':10} {'tasks':>6} {'predicted':>11} {'measured':>11} {'error':>8}   "
             f"{'ends later by: median':>21} {'most':>10}"]
    for kind in kinds:
        error = "–" if kind.error is None else f"{kind.error * 100:+.1f} %"
        lines.append(f"{kind.kind:10} {kind.tasks:6} {kind.predicted_s * 1e3:8.2f} ms {kind.measured_s * 1e3:8.2f} ms "
                     f"{error:>8}   {kind.median_later_s * 1e3:18.2f} ms {kind.most_later_s * 1e3:7.2f} ms")
    return "\n".join(lines)
