"""Benches that run ranks of PyTorch as well as this project's tools."""

import argparse
import dataclasses
import json
import os
import pathlib
import shlex
import subprocess
import sys
from typing import Self

from . import ROOT
from .cases import Case, Scale, gradients_of, scaled_model
from .measurement import Bench
from .network import Unavailable
from .ranks import ToolError

TRAIN = ROOT / "examples/train.py"
#: Interpreters in which torch is looked for. Debian's own python3 comes first.
PYTHONS = ("/usr/bin/python3", sys.executable)


def python_with(code: str, missing: str, pythons: tuple = ()) -> pathlib.Path:
    """First Python of `pythons`, by default PYTHONS, that runs `code`. Raises Unavailable, with the name of what is `missing`, if
    there is none."""
    for python in pythons or PYTHONS:
        try:
            if subprocess.run([python, "-c", code], capture_output=True, check=False).returncode == 0:
                return pathlib.Path(python)
        except OSError:
            continue
    raise Unavailable(missing)


def python_with_torch() -> pathlib.Path:
    """First Python that has torch. Raises Unavailable if there is none."""
    return python_with("import torch.distributed as d; assert d.is_gloo_available()",
                       "no python3 has torch with gloo (Debian package python3-torch)")


def run_python(python: pathlib.Path, *words: object) -> str:
    """Runs Python on this machine, without the emulated network, in the folder of train.py. Returns its output. Raises ToolError if
    it fails."""
    done = subprocess.run([python, "-B", *map(str, words)], cwd=TRAIN.parent, capture_output=True, text=True, check=False,
                          env={name: value for name, value in os.environ.items() if name != "GLOO_SOCKET_IFNAME"})
    if done.returncode != 0:
        raise ToolError(f"{shlex.join(map(str, words))}: exit status {done.returncode}\n{done.stderr.strip()}")
    return done.stdout


def use_package(options: argparse.Namespace, **more: str) -> None:
    """Lets programs that are started later import the package hipress of this tree, with the library of the tools' build."""
    os.environ.update(PYTHONPATH=str(ROOT / "python"), HIPRESS_LIBRARY=str(options.tools.parent / "runtime/libhipress.so"), **more)


@dataclasses.dataclass
class TorchBench(Bench):
    """Bench with a Python that has PyTorch."""

    python: pathlib.Path = pathlib.Path("python3")

    @classmethod
    def of(cls, options: argparse.Namespace, **fields: object) -> Self:
        """Makes a bench from the options of an experiment. Without `python` among the fields, raises Unavailable if no Python has
        torch."""
        return super().of(options, **({} if "python" in fields else {"python": python_with_torch()}), **fields)

    def write_scaled(self, case: Case, scale: Scale) -> tuple[pathlib.Path, pathlib.Path]:
        """Writes the case's scaled model as YAML for the tools, and as JSON for ranks that sleep."""
        text = scaled_model((self.models / f"{case.model}.yaml").read_text(), scale)
        yaml = self.output / f"{case.model}_{case.rate}.yaml"
        yaml.write_text(text)
        yaml.with_suffix(".json").write_text(json.dumps(gradients_of(text)))
        return yaml, yaml.with_suffix(".json")

    def capture(self, path: pathlib.Path, training: list, steps: int, *options: object) -> pathlib.Path:
        """Captures `steps` steps of train.py into a file, without the emulated network. An existing capture may be kept.
        `training` has arguments of train.py; all others are those of hipress.capture."""
        if not (self.keep_profiles and path.exists()):
            run_python(self.python, "-m", "hipress.capture", "--steps", steps, *options, "--output", path, TRAIN, *training, "--average",
                       "none", "--steps", steps + 4, "--ranks", "1")
        return path

    def run_rank(self, nnodes: int, script: str, *arguments: object, timeout_s: float | None = None) -> dict:
        """Runs a script of this folder as ranks. Returns the output of rank 0."""
        ranks = dataclasses.replace(self.launcher, tools=self.python.parent, timeout_s=timeout_s or self.launcher.timeout_s)
        return ranks.run_json(nnodes, self.python.name, "-B", ROOT / "scripts/validation" / script, *arguments)


@dataclasses.dataclass
class GlooBench(TorchBench):
    """Bench whose links are profiled over gloo, which PyTorch's ranks use."""

    def measure_profile(self, name: object, nnodes: int, *arguments: object) -> None:
        super().measure_profile(name, nnodes, "--transport", "gloo", "--insecure", *arguments)
