"""python -m hipress.pilot --ranks 8 --steps 400 --plans none,int8block,plan.yaml [--output pilot.yaml] train.py ARGUMENTS…
python -m hipress.pilot --ranks 8 --steps 400 --plans none,int8block,plan.yaml [--output pilot.yaml] -m MODULE ARGUMENTS…

Trains an unmodified script once under each plan and seed, and writes the number of steps that each plan needs for the loss of plain
DDP (none). Data and initial weights are the same under all plans. No network is needed: the progress per step does not depend on
it.

A script with DistributedDataParallel runs as processes, as under torchrun. In a script without it, the ranks take turns: each
optimizer step has the gradients of one pass of the script's loop for each rank, and the script counts passes as steps. The loss is
the tensor that backward() is called for, or the argument of hipress.pilot.report(loss) if the script calls it; report(loss,
held_out=True) adds losses of data that are not trained on.

The output has the finished runs, which the same command does not repeat. docs/learning.md describes the measurements."""

import argparse
import sys


def _say(text: str) -> None:
    print(f"hipress.pilot: {text}", file=sys.stderr, flush=True)


def main() -> int:
    from hipress import _pilot

    parser = argparse.ArgumentParser(prog="python -m hipress.pilot", description=__doc__, usage=argparse.SUPPRESS,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--ranks", type=int, required=True, help="ranks that average their gradients, at least 2")
    parser.add_argument("--steps", type=int, required=True, help="steps of the optimizer in each run, which ends after them")
    parser.add_argument("--plans", required=True, help="plan files and algorithms, separated by commas; none (plain DDP) is always added")
    parser.add_argument("--seeds", type=int, default=1,
                        help="runs of each plan, with seeds from 1 on: {seed} in the script's arguments, or else an "
                        "offset to the seeds that it sets (default: %(default)s)")
    parser.add_argument("--output", default="pilot.yaml", help="file to write, and to go on from (default: %(default)s)")
    parser.add_argument("--jobs", type=int, default=1, help="runs at a time (default: %(default)s)")
    parser.add_argument("-m", dest="is_module", action="store_true", help="run a module of that name instead of a script")
    parser.add_argument("script", help="training script, or module")
    parser.add_argument("arguments", nargs=argparse.REMAINDER, help="its arguments")
    options = parser.parse_args()
    try:
        request = _pilot.Request([options.script, *options.arguments], options.is_module, options.ranks, options.steps,
                                 options.seeds, _pilot.plans_of(options.plans), options.output, options.jobs)
        document = _pilot.Pilot(request, _say).run()
    except ValueError as error:  # an InvalidRequest, too
        print(f"hipress.pilot: {error}", file=sys.stderr)
        return 2
    except _pilot.Error as error:
        print(f"hipress.pilot: {error}", file=sys.stderr)
        return 1
    except KeyboardInterrupt:
        print(f"hipress.pilot: interrupted; the same command goes on from the runs that {options.output} has", file=sys.stderr)
        return 130
    print("\n".join([*_pilot.summary(document), f"wrote {options.output}"]))
    return 0


if __name__ == "__main__":
    sys.exit(main())
else:  # makes `import hipress.pilot` return the function hipress.pilot
    from hipress._pilot_report import pilot
    sys.modules[__name__] = pilot  # type: ignore[assignment]
