"""Defines the jobs of the experiment learning and their mixed plans, and pilots them."""

import dataclasses
import json
import math
import pathlib
import random
import shlex
import subprocess
import sys
from collections.abc import Sequence

from .ranks import ToolError

ROOT = pathlib.Path(__file__).resolve().parents[2]
TRAIN = ROOT / "examples/train.py"
#: Algorithms of every pilot.
ALGORITHMS = ("onebit", "powersgd(rank=1)", "powersgd(rank=4)", "int4block", "int8block", "fp16", "powersgd(rank=2)")
#: Algorithms that plans mix; "none" sends raw gradients.
MIXED = ("none", "int4block", "powersgd(rank=4)", "powersgd(rank=1)", "onebit")
#: Number of mixed plans for each job.
PLANS = 5
MORE_STEPS = 1_000_000  #: more steps than a pilot takes, so that the pilot ends the script


@dataclasses.dataclass(frozen=True)
class Job:
    """Training job: arguments of train.py, ranks, and steps of its pilot. The constants of the model of learning are fitted to jobs
    with `fitted`, and tested on jobs without it."""

    name: str
    arguments: str
    ranks: int
    fitted: bool
    steps: int = 100

    @property
    def words(self) -> list:
        return ["--alone", *shlex.split(self.arguments)]


JOBS = (
    Job("digits-sgd", "--model digits --optimizer sgd --batch 8", 2, True),
    Job("digits-adamw", "--model digits --optimizer adamw --batch 8", 4, False),
    Job("residual-sgd", "--model residual --optimizer sgd --batch 8", 4, False),
    Job("residual-adamw", "--model residual --optimizer adamw --batch 8", 2, True),
    Job("autoencoder-sgd", "--model autoencoder --optimizer sgd --batch 32", 2, True),
    Job("autoencoder-adamw", "--model autoencoder --optimizer adamw --batch 32", 8, False),
    Job("tabular-sgd", "--model tabular --optimizer sgd --batch 32", 8, True),
    Job("tabular-adamw", "--model tabular --optimizer adamw --batch 32", 2, False),
    Job("words-adamw", "--model words --optimizer adamw --batch 64", 4, True),
    Job("lstm-sgd", "--model lstm --optimizer sgd --batch 2", 2, False),
    Job("lstm-adamw", "--model lstm --optimizer adamw --batch 2", 4, True),
    Job("gpt-adamw", "--model gpt --optimizer adamw --batch 2", 2, False),
)


def shapes(job: Job, python: str) -> list:
    """Names and shapes of the job's gradients, [name, shape], from the last to the first."""
    code = ("import json, sys, tasks, train; sys.argv = ['train.py', *sys.argv[1:]]; options = train.parse_arguments(); "
            "model = tasks.TASKS[options.model](options).make(); "
            "print(json.dumps([[name, list(one.shape)] for name, one in reversed(list(model.named_parameters()))]))")
    done = subprocess.run([python, "-B", "-c", code, *job.words], cwd=TRAIN.parent, capture_output=True, text=True, check=True)
    return json.loads(done.stdout)


def allowed(shape: list) -> list:
    """Algorithms that a mixed plan may use for a gradient. Vectors stay raw. Low rank is allowed if its factors have at most half
    of the gradient's elements."""
    if len(shape) < 2:
        return ["none"]
    rows, columns = shape[0], math.prod(shape[1:])
    ranks = {f"powersgd(rank={rank})": rank for rank in (1, 4)}
    return [name for name in MIXED if 2 * ranks.get(name, 0) * (rows + columns) <= rows * columns]


def mixed_plan(job: Job, gradients: list, number: int) -> str:
    """Plan file with a random algorithm for every matrix, the same in every run of this script."""
    source = random.Random(f"{job.name} {number}")
    rows = [f"- {{name: {name}, elements: {math.prod(shape)}, algorithm: {source.choice(allowed(shape))}, K: 1}}"
            for name, shape in gradients]
    return "\n".join(["schema: hipress.plan/1", f"model: {job.name}", "topology: ring", f"nodes: {job.ranks}", "gradients:", *rows, ""])


def write_plans(job: Job, folder: pathlib.Path, python: str) -> list:
    """Writes a job's mixed plans, unless they exist. Returns their paths."""
    paths = [folder / f"{job.name}.mixed{number}.yaml" for number in range(1, PLANS + 1)]
    if not all(path.exists() for path in paths):
        gradients = shapes(job, python)
        for number, path in enumerate(paths, 1):
            path.write_text(mixed_plan(job, gradients, number))
    return paths


def pilot(job: Job, folder: pathlib.Path, plans: Sequence[pathlib.Path], python: str = sys.executable, jobs: int = 1,
          seeds: int = 1) -> pathlib.Path:
    """Pilots a job under all algorithms and the files of plans with each of the seeds, or continues an earlier pilot. Returns the
    pilot's file."""
    path = folder / f"{job.name}.pilot.yaml"
    plans = ",".join([*ALGORITHMS, *map(str, plans)])
    words = ["--ranks", job.ranks, "--steps", job.steps, "--jobs", jobs, "--seeds", seeds, "--plans", plans, "--output", path, TRAIN,
             *job.words, "--steps", MORE_STEPS]
    done = subprocess.run([python, "-B", "-m", "hipress.pilot", *map(str, words)], check=False)
    if done.returncode != 0:
        raise ToolError(f"hipress.pilot of {job.name}: exit status {done.returncode}; what it says is above")
    return path
