"""What measures ranks of PyTorch beside our tools."""

import argparse
import dataclasses
import pathlib
from collections.abc import Callable
from typing import Self

from .measurement import Bench, Plan
from .ranks import Launcher

MODELS = pathlib.Path(__file__).resolve().parents[2] / "models"


@dataclasses.dataclass
class TorchBench(Bench):
    """A bench with a Python that has PyTorch."""

    python: pathlib.Path = pathlib.Path("python3")
    iterations: int = 8  #: measured of each case

    @classmethod
    def of(cls, options: argparse.Namespace, real_time: bool, plan: Plan, say: Callable[[str], None], **fields: object) -> Self:
        """As a script's options say."""
        return cls(Launcher(options.tools.resolve(), None, real_time), MODELS, options.output, plan, say, options.resume,
                   iterations=options.iterations, **fields)


@dataclasses.dataclass
class GlooBench(TorchBench):
    """A bench whose links are gloo's, since those of PyTorch's ranks are."""

    def measure_profile(self, name: object, nnodes: int, *arguments: object) -> None:
        super().measure_profile(name, nnodes, "--transport", "gloo", "--insecure", *arguments)
