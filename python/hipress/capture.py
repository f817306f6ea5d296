"""python -m hipress.capture [--output model.yaml] [--steps 20] train.py ARGUMENTS…

Runs a training script as it is, and writes a model YAML of the first model that it trains: shapes, ready times, forward and
optimiser times. Of the ranks of a launcher, the first writes it. See hipress.capture for what is measured."""

import argparse
import os
import runpy
import sys


class FirstTrained:
    """Captures the first module that is called with parameters to train; DistributedDataParallel is looked into."""

    def __init__(self, output: str, **options):
        self.output, self.options = output, options
        self.capture = None
        self.optimizers = []

    def install(self) -> None:
        import torch
        from torch.nn.modules.module import register_module_forward_pre_hook

        self.handle = register_module_forward_pre_hook(self.on_call)
        original = torch.optim.Optimizer.__init__

        def remember(optimizer, *arguments, **options):
            original(optimizer, *arguments, **options)
            self.optimizers.append(optimizer)

        torch.optim.Optimizer.__init__ = remember

    def on_call(self, module, _inputs) -> None:
        import torch

        from hipress._capture import Capture

        if self.capture is not None or not torch.is_grad_enabled() or not module.training:
            return
        if not any(parameter.requires_grad for parameter in module.parameters()):
            return
        self.capture = Capture(module, self.output, **self.options)
        self.capture.start()
        own = {id(parameter) for parameter in module.parameters()}
        for optimizer in self.optimizers:
            if any(id(parameter) in own for group in optimizer.param_groups for parameter in group["params"]):
                self.capture.time_optimizer(optimizer)
                break
        self.handle.remove()


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m hipress.capture", description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--output", default="model.yaml", help="file to write (default: %(default)s)")
    parser.add_argument("--warmup", type=int, default=2, help="steps that are left out at the beginning (default: %(default)s)")
    parser.add_argument("--steps", type=int, help="steps that are measured after those, at most (default: all)")
    parser.add_argument("--bucket-mb", type=float, default=1,
                        help="bucket_cap_mb of the DistributedDataParallel that will train with the plan (default: %(default)s)")
    parser.add_argument("script", help="training script")
    parser.add_argument("arguments", nargs=argparse.REMAINDER, help="its arguments")
    options = parser.parse_args()
    if not options.bucket_mb > 0:
        parser.error(f"--bucket-mb must be above 0, got {options.bucket_mb:g}")
    first = FirstTrained(options.output, warmup=options.warmup, steps=options.steps, bucket_mb=options.bucket_mb)
    first.install()
    sys.argv = [options.script, *options.arguments]
    try:
        runpy.run_path(options.script, run_name="__main__")
    except SystemExit as ended:
        if ended.code not in (None, 0):
            raise
    if first.capture is None:
        print(f"hipress.capture: {options.script} trained no model: no module with parameters was called", file=sys.stderr)
        return 1
    first.capture.stop()
    if os.environ.get("RANK", "0") != "0":
        return 0
    try:
        first.capture.write(options.output)
    except ValueError as error:
        print(f"hipress.capture: {error}", file=sys.stderr)
        return 1
    print(f"hipress.capture: wrote {options.output}", file=sys.stderr)
    return 0


if __name__ == "__main__":
    sys.exit(main())
