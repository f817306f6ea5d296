"""Captures a training script's timings: python -m hipress.capture [--output MODEL.yaml] [--steps N] train.py ARGUMENTS...

The script runs unchanged. The first module whose forward runs with gradients and is no part of another is watched (of a
DistributedDataParallel, what it wraps) for so many steps after the warm-up; then the model file is written, and the script
goes on. Under torchrun, rank 0 writes it.
"""

import argparse
import os
import runpy
import sys
import typing

import torch

from hipress.capturing import capture


class _Watcher:
    """Begins a capture at the first forward, and ends it after some steps."""

    def __init__(self, output: typing.Optional[str], steps: int, warmup: int):
        self._output, self._left, self._warmup = output, steps + warmup, warmup
        self._capture = None
        self._call = torch.nn.Module.__call__

    def install(self) -> None:
        watcher = self

        def call(module, *arguments, **named):
            watcher.before(module)
            return watcher._call(module, *arguments, **named)
        torch.nn.Module.__call__ = call

    def before(self, module: torch.nn.Module) -> None:
        if not torch.is_grad_enabled() or not any(weight.requires_grad for weight in module.parameters()):
            return
        if self._capture is None:
            self._model = module
            self._capture = capture(module, self._output, warmup=self._warmup)
            self._capture.__enter__()
        if module is self._model:
            if self._left == 0:
                self.finish()
            self._left -= 1

    def finish(self) -> None:
        """Writes what there is, and watches nothing any more."""
        torch.nn.Module.__call__ = self._call
        if self._capture is not None:
            watched, self._capture = self._capture, None
            watched.__exit__(None, None, None)
            if self._output is not None:
                print(f"hipress.capture: written to {self._output}", file=sys.stderr)


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m hipress.capture", description=__doc__.split("\n\n")[0],
                                     epilog="example: python -m hipress.capture --output model.yaml train.py --epochs 1")
    parser.add_argument("--output", default="model.yaml", help="the model file (default: %(default)s)")
    parser.add_argument("--steps", type=int, default=20, help="to watch (default: %(default)s)")
    parser.add_argument("--warmup", type=int, default=2, help="steps before them (default: %(default)s)")
    parser.add_argument("script", help="the training script")
    parser.add_argument("arguments", nargs=argparse.REMAINDER, help="of the script")
    options = parser.parse_args()
    if options.steps < 2 or options.warmup < 0:
        parser.error("--steps must be at least 2, --warmup at least 0")
    if not os.path.exists(options.script):
        parser.error(f"there is no script '{options.script}'")
    output = options.output if os.environ.get("RANK", "0") == "0" else None
    watcher = _Watcher(output, options.steps, options.warmup)
    watcher.install()
    sys.argv = [options.script, *options.arguments]
    sys.path.insert(0, os.path.dirname(os.path.abspath(options.script)))
    try:
        runpy.run_path(options.script, run_name="__main__")
    finally:
        watcher.finish()
    return 0


if __name__ == "__main__":
    sys.exit(main())
