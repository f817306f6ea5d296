"""What measures ranks of PyTorch beside our tools."""

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
#: Where torch is looked for: Debian's own python3 first.
PYTHONS = ("/usr/bin/python3", sys.executable)


def python_with(code: str, missing: str, pythons: tuple = ()) -> pathlib.Path:
    """The first Python, PYTHONS by default, that runs `code`. Unavailable, with what is `missing`, if there is none."""
    for python in pythons or PYTHONS:
        try:
            if subprocess.run([python, "-c", code], capture_output=True, check=False).returncode == 0:
                return pathlib.Path(python)
        except OSError:
            continue
    raise Unavailable(missing)


def python_with_torch() -> pathlib.Path:
    """Unavailable if there is none."""
    return python_with("import torch.distributed as d; assert d.is_gloo_available()",
                       "no python3 has torch with gloo (Debian package python3-torch)")


def run_python(python: pathlib.Path, *words: object) -> str:
    """What Python prints, alone on the machine and beside train.py. ToolError if it fails."""
    done = subprocess.run([python, "-B", *map(str, words)], cwd=TRAIN.parent, capture_output=True, text=True, check=False,
                          env={name: value for name, value in os.environ.items() if name != "GLOO_SOCKET_IFNAME"})
    if done.returncode != 0:
        raise ToolError(f"{shlex.join(map(str, words))}: exit status {done.returncode}\n{done.stderr.strip()}")
    return done.stdout


def use_package(options: argparse.Namespace, **more: str) -> None:
    """Lets programs that are started from now on import the package hipress of this tree, with the library of the tools' build."""
    os.environ.update(PYTHONPATH=str(ROOT / "python"), HIPRESS_LIBRARY=str(options.tools.parent / "runtime/libhipress.so"), **more)


@dataclasses.dataclass
class TorchBench(Bench):
    """A bench with a Python that has PyTorch."""

    python: pathlib.Path = pathlib.Path("python3")

    @classmethod
    def of(cls, options: argparse.Namespace, **fields: object) -> Self:
        """Unavailable without `python` among the fields, if there is none."""
        return super().of(options, **({} if "python" in fields else {"python": python_with_torch()}), **fields)

    def write_scaled(self, case: Case, scale: Scale) -> tuple[pathlib.Path, pathlib.Path]:
        """The case's model, for the tools as YAML and for ranks that sleep as JSON."""
        text = scaled_model((self.models / f"{case.model}.yaml").read_text(), scale)
        yaml = self.output / f"{case.model}_{case.rate}.yaml"
        yaml.write_text(text)
        yaml.with_suffix(".json").write_text(json.dumps(gradients_of(text)))
        return yaml, yaml.with_suffix(".json")

    def capture(self, path: pathlib.Path, training: list, steps: int, *options: object) -> pathlib.Path:
        """Captures so many steps of train.py, alone on the machine, into a file; one that is there may be kept. `training` are
        arguments of train.py, the others those of hipress.capture."""
        if not (self.keep_profiles and path.exists()):
            run_python(self.python, "-m", "hipress.capture", "--steps", steps, *options, "--output", path, TRAIN, *training, "--average",
                       "none", "--steps", steps + 4, "--ranks", "1")
        return path

    def run_rank(self, nnodes: int, script: str, *arguments: object, timeout_s: float | None = None) -> dict:
        """What rank 0 of a script in validation/ prints."""
        ranks = dataclasses.replace(self.launcher, tools=self.python.parent, timeout_s=timeout_s or self.launcher.timeout_s)
        return ranks.run_json(nnodes, self.python.name, "-B", ROOT / "scripts/validation" / script, *arguments)


@dataclasses.dataclass
class GlooBench(TorchBench):
    """A bench whose links are gloo's, since those of PyTorch's ranks are."""

    def measure_profile(self, name: object, nnodes: int, *arguments: object) -> None:
        super().measure_profile(name, nnodes, "--transport", "gloo", "--insecure", *arguments)
