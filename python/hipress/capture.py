"""python -m hipress.capture [--output model.yaml] [--steps 20] train.py ARGUMENTS…
python -m hipress.capture [--output model.yaml] [--steps 20] -m MODULE ARGUMENTS…

Runs an unmodified training script, and writes a model YAML of the model that it trains: shapes, ready times, forward and optimizer
times, and the micro-steps of a step. If optimizers train several models, it takes the one with the most elements, and names the
others. Rank 0 of a launcher or of torch.multiprocessing writes the file. With --steps the file is written once these steps are
measured, so that a script which is killed after that keeps it. hipress.capture documents the measurement.

The run is a measurement: the ranks of a DistributedDataParallel do not average, but each trains alone. Do not use the trained
model."""

import argparse
import os
import sys
import types


def main() -> int:
    from hipress import _arguments, _model_file, _script

    parser = argparse.ArgumentParser(prog="python -m hipress.capture", description=__doc__, usage=argparse.SUPPRESS,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--output", default="model.yaml", help="file to write (default: %(default)s)")
    parser.add_argument("--warmup", type=int, default=2, help="steps that are left out at the beginning (default: %(default)s)")
    parser.add_argument("--steps", type=int, help="steps that are measured after those, at most; the file is then written (default: "
                        "all, and the file is written at the end)")
    parser.add_argument("--module", help="the trained module to write, where there are several: its variable, class or index "
                        "(default: that with the most elements)")
    parser.add_argument("--bucket-mb", type=float, default=1,
                        help="bucket_cap_mb of the DistributedDataParallel that will train with the plan (default: %(default)s)")
    parser.add_argument("--memory", action="store_true", help="also measure what computation moves in memory, beside a copy on another "
                        "core in every second step")
    parser.add_argument("-m", dest="is_module", action="store_true", help="run a module of that name instead of a script")
    parser.add_argument("script", help="training script, or module")
    parser.add_argument("arguments", nargs=argparse.REMAINDER, help="its arguments")
    options = parser.parse_args()
    try:
        _arguments.number("--bucket-mb", options.bucket_mb, above=0, most=_arguments.MOST_BUCKET_MB)
        _arguments.whole("--warmup", options.warmup, least=0)
        if options.steps is not None:
            _arguments.whole("--steps", options.steps, least=1)
        if os.environ.get("RANK", "0") == "0":  # only rank 0 writes
            _model_file.require_writable(options.output, *([] if options.is_module else [options.script]))
    except ValueError as error:
        parser.error(str(error).replace("output ", "--output ", 1) if str(error).startswith("output ") else str(error))
    settings = {key: getattr(options, key) for key in ("output", "warmup", "steps", "module", "bucket_mb", "memory")}
    return _script.run(options.script, options.arguments, options.is_module, settings)


class _CallableModule(types.ModuleType):
    """Module that can be called. Its import replaces the function hipress.capture, so it does the function's work."""

    def __call__(self, model, output="model.yaml", **options):
        """Measures the ready times of a model's gradients, and writes them as a model YAML; see hipress._capture.Capture."""
        from hipress import _require_torch

        _require_torch()
        from hipress import _capture

        return _capture.Capture(model, output, **options)


if __name__ == "__main__":
    sys.exit(main())
sys.modules[__name__].__class__ = _CallableModule
