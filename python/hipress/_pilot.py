"""Starts the runs of a pilot, keeps their results, and estimates the steps that each plan needs for DDP's loss."""

import collections
import dataclasses
import functools
import hashlib
import json
import math
import os
import pathlib
import secrets
import shlex
import socket
import statistics
import subprocess
import sys
import tempfile
import time
from typing import Callable, List, Optional, Sequence, Tuple, Union

from hipress import _arguments, _model_file, _pilot_file, _steps_ratio
from hipress._engine import Engine, Error, InvalidRequest
from hipress._library import Gradient
from hipress._pilot_file import Row

_Path = Union[str, "os.PathLike[str]"]
#: Plan that all others are compared with.
DDP = "none"
#: Steps of the run that repeats the first, and the largest relative difference of their losses.
_REPEATED_STEPS, _REPEATED_WITHIN = 20, 1e-3
#: Seconds between polls of the runs, and between lines about the remaining time.
_LOOK_S, _SAY_S = 0.05, 15.0
#: Lines of a failed run's output that are shown.
_SHOWN_LINES = 20
#: Grace period in seconds for the other ranks to end after rank 0 has ended or one has failed.
_GRACE_S = 10.0
#: Intervals between the points of the file's loss curve.
_CURVE_POINTS = 60


@dataclasses.dataclass(frozen=True)
class Request:
    """Request for a pilot: a script with its arguments, and the plans under which it is trained."""

    script: List[str]
    is_module: bool
    ranks: int
    steps: int
    seeds: int
    plans: List[str]
    output: str
    jobs: int

    def __post_init__(self) -> None:
        _arguments.whole("ranks", self.ranks, least=2)
        _arguments.whole("steps", self.steps, least=10)
        _arguments.whole("seeds", self.seeds, least=1)
        _arguments.whole("jobs", self.jobs, least=1)
        _model_file.require_writable(self.output, *([] if self.is_module else [self.script[0]]))

    def key(self) -> Row:
        """Values that must be the same in an existing file for its runs to be kept."""
        return {"schema": _pilot_file.SCHEMA, "script": shlex.join(self.script),
                "digest": "" if self.is_module else _digest(self.script[0]), "ranks": self.ranks, "steps": self.steps}


def plans_of(text: str) -> List[str]:
    """Splits a list of plans at its commas, except at those in parentheses. `none` is always the first."""
    found, depth, one = [DDP], 0, ""
    for letter in text + ",":
        depth += (letter == "(") - (letter == ")")
        if letter == "," and depth == 0:
            if one.strip() and one.strip() not in found:
                found.append(one.strip())
            one = ""
        else:
            one += letter
    return found


def _is_file(plan: str) -> bool:
    return plan.endswith((".yaml", ".yml"))


def _digest(path: _Path) -> str:
    try:
        return hashlib.sha256(pathlib.Path(path).read_bytes()).hexdigest()[:16]
    except OSError as error:
        raise InvalidRequest(f"{os.fspath(path)}: cannot be read: {error.strerror}") from None


def _require_plan(plan: str) -> None:
    """Raises InvalidRequest for a plan that is neither a file nor an algorithm."""
    if _is_file(plan):
        _digest(plan)
        return
    Engine([Gradient("probe", (64, 64))], plan=plan, transport="memory", rendezvous=f"local:{secrets.token_hex(16)}").close()


@dataclasses.dataclass(frozen=True)
class _Task:
    """Run to do."""

    plan: str
    seed: int
    steps: int
    repeats: bool = False  #: true for the run that repeats the first, to check that runs are reproducible

    @property
    def named(self) -> str:
        return f"plan {self.plan}, seed {self.seed}" + (" again" if self.repeats else "")


class _Process:
    """Run in progress: the process of rank 0, and those of the other ranks once the script asks for them."""

    def __init__(self, request: Request, task: _Task, processes: Optional[bool], folder: pathlib.Path) -> None:
        self.task, self._request, self._folder = task, request, folder
        self._ended_at: Optional[float] = None
        arguments = [one.replace("{seed}", str(task.seed)) for one in request.script]
        self._job = json.dumps({"script": arguments, "seed_in_arguments": arguments != request.script, "plan": task.plan,
                                "seed": task.seed, "steps": task.steps, "ranks": request.ranks, "folder": str(folder),
                                "is_module": request.is_module})
        with socket.socket() as probe:
            probe.bind(("127.0.0.1", 0))
            self._port = probe.getsockname()[1]
        self._of_ranks: List[subprocess.Popen[bytes]] = []
        # Sets the variables of torchrun; a script without a process group ignores them.
        self._start(0, processes is not False)

    def _start(self, rank: int, is_launched: bool) -> None:
        environment = dict(os.environ)
        package = str(pathlib.Path(__file__).resolve().parents[1])
        environment["PYTHONPATH"] = os.pathsep.join([package, *filter(None, [environment.get("PYTHONPATH")])])
        threads = max(1, (os.cpu_count() or 1) // (self._request.jobs * (self._request.ranks if is_launched else 1)))
        environment.setdefault("OMP_NUM_THREADS", str(threads))
        if is_launched:
            environment.update({"RANK": str(rank), "LOCAL_RANK": str(rank), "WORLD_SIZE": str(self._request.ranks),
                                "LOCAL_WORLD_SIZE": str(self._request.ranks), "MASTER_ADDR": "127.0.0.1",
                                "MASTER_PORT": str(self._port)})
        with open(self._folder / f"output{rank}", "wb") as output:
            command = [sys.executable, "-m", "hipress._piloted", self._job]
            self._of_ranks.append(subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=output, stderr=subprocess.STDOUT,
                                                   env=environment))

    def look(self) -> bool:
        """Starts the other ranks if the script has asked for them. True once the run has ended."""
        if len(self._of_ranks) == 1 and (self._folder / "ranks").exists():
            for rank in range(1, self._request.ranks):
                self._start(rank, True)
        codes = [process.poll() for process in self._of_ranks]
        if None not in codes:
            return True
        if codes[0] is not None or any(codes):
            self._ended_at = self._ended_at or time.monotonic()
            return time.monotonic() - self._ended_at > _GRACE_S
        return False

    @property
    def steps(self) -> int:
        """Number of steps so far."""
        try:
            return int((self._folder / "progress0").read_bytes() or b"0")
        except (FileNotFoundError, ValueError):
            return 0

    def result(self) -> Row:
        """Result of the run. Raises Error, with the end of the run's output, if the run failed, and InvalidRequest for a script
        that cannot be piloted."""
        try:
            told = json.loads((self._folder / "result.json").read_text())
        except FileNotFoundError:
            codes = [process.poll() for process in self._of_ranks]
            rank = next((rank for rank, code in enumerate(codes) if code), 0)
            shown = (self._folder / f"output{rank}").read_text(errors="replace").splitlines()[-_SHOWN_LINES:]
            raise Error(f"{self.task.named}: rank {rank} ended with status {codes[rank]}; its output ended "
                        "with\n" + "\n".join(f"  {line}" for line in shown)) from None
        if "refusal" in told:
            raise InvalidRequest(f"{self.task.named}: {told['refusal']}")
        return dict(told)

    def end(self) -> None:
        for process in self._of_ranks:
            if process.poll() is None:
                process.kill()
            process.wait()


class Pilot:
    """Runs of a request, both those in its file and those still to do."""

    def __init__(self, request: Request, say: Callable[[str], object]) -> None:
        self._request, self._say = request, say
        for plan in request.plans:
            _require_plan(plan)
        self._document = self._known()
        self._processes: Optional[bool] = None  #: true if the script runs as ranks of torch.distributed; None: unknown
        self._done = 0  #: steps of finished runs
        self._begun: Optional[Tuple[float, int]] = None  #: time of the first poll that saw steps, and their number
        self._said = time.monotonic()

    def _known(self) -> Row:
        """Document of the file, with this pilot's keys. Raises InvalidRequest if the file belongs to a different pilot."""
        key, found = self._request.key(), _pilot_file.read(self._request.output)
        for name, value in key.items():
            if found and found.get(name) != value:
                raise InvalidRequest(f"{self._request.output} is of a pilot with {name} {found.get(name)!r}, and this is of "
                                     f"{value!r}: give --output another name, or remove the file")
        for row in found.get("plans", []):
            if _is_file(row["plan"]) and row["plan"] in self._request.plans and row.get("digest") != _digest(row["plan"]):
                raise InvalidRequest(f"{self._request.output} has runs of another {row['plan']}: give the plan or --output "
                                     "another name, or remove the file")
        return {"plans": [], "errors": [], "noise_scale": [], "repeat": None, **found, **key,
                "seeds": max(self._request.seeds, found.get("seeds", 1))}

    def _tasks(self) -> List[_Task]:
        """Runs to do, first those that check if the script can be piloted."""
        has = {(row["plan"], row["seed"]) for row in self._document["plans"]}
        found = [_Task(plan, seed, self._request.steps) for seed in range(1, self._request.seeds + 1)
                 for plan in self._request.plans if (plan, seed) not in has]
        if self._document["repeat"] is None:
            found.insert(1 if found and found[0] == _Task(DDP, 1, self._request.steps) else 0,
                         _Task(DDP, 1, min(_REPEATED_STEPS, self._request.steps), repeats=True))
        return found

    def run(self) -> Row:
        """Does all runs, and returns the document. Raises the error of a run that failed; finished runs are in the file."""
        waiting, running = collections.deque(self._tasks()), []
        total = sum(task.steps for task in waiting)
        try:
            with tempfile.TemporaryDirectory(prefix="hipress-pilot-") as folder:
                while waiting or running:
                    while waiting and len(running) < (self._request.jobs if self._processes is not None else 1):
                        place = pathlib.Path(tempfile.mkdtemp(dir=folder))
                        running.append(_Process(self._request, waiting.popleft(), self._processes, place))
                    for process in [one for one in running if one.look()]:
                        process.end()
                        self._keep(process.task, process.result())
                        running.remove(process)
                        self._done += process.task.steps
                    self._say_time_left(total, running)
                    time.sleep(_LOOK_S)
        finally:
            for process in running:
                process.end()
        self._write()
        return self._document

    def _say_time_left(self, total: int, running: Sequence[_Process]) -> None:
        now, done = time.monotonic(), self._done + sum(process.steps for process in running)
        self._begun = self._begun or ((now, done) if done else None)
        if now - self._said < _SAY_S or self._begun is None or done == self._begun[1]:
            return
        self._said = now
        left = (total - done) * (now - self._begun[0]) / (done - self._begun[1])
        what = ", ".join(f"{process.task.named} step {process.steps}" for process in running)
        self._say(f"{what}; {_duration(left)} left")

    def _keep(self, task: _Task, result: Row) -> None:
        """Adds a finished run to the file. Raises InvalidRequest if it shows that the script cannot be piloted."""
        self._processes = result["processes"]
        if task.plan == DDP and result["diverged"]:
            raise InvalidRequest(f"{task.named}: plain DDP diverges or its loss does not fall, so no plan can be compared "
                                 "with it: mend the training, or give hipress.pilot.report() a loss that falls")
        result = _pilot_file.rounded(result)
        if task.repeats:
            self._document["repeat"] = self._repeat(result["loss"])
            return self._write()
        of = {"plan": task.plan, **({"digest": _digest(task.plan)} if _is_file(task.plan) else {}), "seed": task.seed}
        self._document["plans"].append({**of, **{key: result[key] for key in ("diverged", "loss", "held_out")}})
        if task.seed == 1:
            self._document["errors"] += [{"plan": task.plan, **row} for row in result["errors"]]
            if task.plan == DDP:
                self._document["noise_scale"] = result["noise_scale"]
        if task.plan == DDP and task.seed > 1:
            self._require_other_seed(task.seed)
        self._write()
        losses = _steps_ratio.smoothed(result["loss"])
        self._say(f"{task.named}: " + ("has diverged" if result["diverged"] else f"loss {losses[0]:.4g} to {losses[-1]:.4g}"))

    def _losses(self, plan: str, seed: int) -> Optional[Row]:
        return next((row for row in self._document["plans"] if (row["plan"], row["seed"]) == (plan, seed)), None)

    def _repeat(self, again: List[float]) -> Row:
        """Compares two runs of `none`. Returns a row with the number of steps and the largest relative difference of the losses.
        Raises InvalidRequest if rounding does not explain it."""
        first = self._losses(DDP, 1)["loss"]
        apart = [abs(one - other) / max(abs(one), abs(other), 1e-30) for one, other in zip(first, again)]
        if max(apart) > _REPEATED_WITHIN:
            step = next(number for number, one in enumerate(apart, 1) if one > _REPEATED_WITHIN)
            raise InvalidRequest(f"two runs of {DDP} with seed 1 differ by more than rounding: in step {step} their losses are "
                                 f"{first[step - 1]:.6g} and {again[step - 1]:.6g}. Plans can be compared only on the same "
                                 "data in the same order: seed what shuffles and draws, also numpy.random.default_rng() and "
                                 "the workers of a DataLoader, and do not read data in the order in which they arrive")
        return {"steps": len(apart), "apart": _pilot_file.rounded(max(apart))}

    def _require_other_seed(self, seed: int) -> None:
        first, this = self._losses(DDP, 1), self._losses(DDP, seed)
        if first is not None and this is not None and first["loss"] == this["loss"]:
            raise InvalidRequest(f"seeds 1 and {seed} train alike, so they say nothing of the spread: write {{seed}} where "
                                 "the script's arguments have its seed, as in --seed {seed}, or pilot --seeds 1")

    def _write(self) -> None:
        """Writes the file, with rows in the order of plans and seeds."""
        document = self._document
        order = list(dict.fromkeys([DDP, *self._request.plans, *sorted(row["plan"] for row in document["plans"])]))
        document["plans"].sort(key=lambda row: (order.index(row["plan"]), row["seed"]))
        document["errors"].sort(key=lambda row: (order.index(row["plan"]), row["step"]))
        document["ratios"] = self._ratios([plan for plan in order if plan != DDP])
        document["curve"] = self._curve()
        _pilot_file.write(self._request.output, document)

    def _curve(self) -> List[Row]:
        """Points of DDP's smoothed loss, the mean over seeds."""
        of_seeds = [_steps_ratio.smoothed(row["loss"]) for row in self._document["plans"] if row["plan"] == DDP]
        by_step = [statistics.fmean(losses) for losses in zip(*of_seeds)]
        last = len(by_step) - 1
        places = sorted({round(last * point / _CURVE_POINTS) for point in range(_CURVE_POINTS + 1)}) if by_step else []
        return [{"step": place + 1, "loss": _pilot_file.rounded(by_step[place])} for place in places]

    def _ratios(self, plans: Sequence[str]) -> List[Row]:
        rows = []
        for plan in plans:
            of_seeds: List[_steps_ratio.Ratio] = []
            for row in self._document["plans"]:
                ddp = self._losses(DDP, row["seed"])
                if row["plan"] == plan and ddp is not None:
                    of_seeds.append(_ratio(tuple(ddp["loss"]), tuple(() if row["diverged"] else row["loss"])))
            if of_seeds:
                one = _steps_ratio.over_seeds(of_seeds)
                found = dataclasses.asdict(one) if one.ratio is not None else {"ratio": NEVER}
                known = {key: value for key, value in found.items() if value is not None}
                rows.append({"plan": plan, **_pilot_file.rounded(known), "runs": len(of_seeds)})
        return rows


@functools.lru_cache(maxsize=None)
def _ratio(ddp: Tuple[float, ...], plan: Tuple[float, ...]) -> _steps_ratio.Ratio:
    return _steps_ratio.of_curves(ddp, plan)


#: Ratio of a plan that does not reach DDP's loss within the pilot.
NEVER = "never"


def _duration(seconds: float) -> str:
    minutes = math.ceil(seconds / 60)
    return f"{seconds:.0f} s" if seconds < 90 else f"{minutes} min" if minutes < 90 else f"{minutes / 60:.1f} h"


def summary(document: Row) -> Tuple[str, ...]:
    """Describes the ratios, one line for each plan."""
    lines = []
    for row in document["ratios"]:
        if row["ratio"] == NEVER:
            lines.append(f"{row['plan']}: never reaches the loss of {DDP} within the pilot")
        else:
            bound = f" ({row['p10']:.2f} to {row['p90']:.2f})" if "p90" in row else f" (from {row['p10']:.2f})"
            lines.append(f"{row['plan']}: {row['ratio']:.2f}{bound} times the steps of {DDP}, after {row['after']:.0f} of them")
    return tuple(lines)


__all__ = ["DDP", "Error", "NEVER", "Pilot", "Request", "plans_of", "summary"]
