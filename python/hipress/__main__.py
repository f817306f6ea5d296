"""Commands of this package: `python -m hipress` lists them, and `python -m hipress plan …` runs hipress-plan of a wheel."""

import os
import pathlib
import runpy
import sys

HELP = """\
hipress {version}: plans, predicts and trains with compressed gradient synchronisation

  hipress-plan      decides what to compress, into how many partitions, and how many hosts pay
  hipress-sim       predicts a plan; `hipress-sim sweep` predicts many
  hipress-profile   measures codecs and links of this machine
  hipress-exec      replays a plan with N ranks, and verifies every value
  hipress-import    reads a trace of a training job, and writes its model
  hipress-compll    compiles your own compression algorithm

  python -m hipress.capture   measures the ready times of a script's gradients
  python -m hipress.pilot     measures how a script learns under several plans
  python -m hipress.plot      draws what the others print

  hipress.attach(model)       trains a DistributedDataParallel model with a plan (import hipress)

Each has --help. How many hosts should train a model?

  hipress-plan --input llama3_8b --machine p5.48xlarge --hosts 1,2,4 --batch 2 --seq 8192 --dtype mixed --schedule fsdp
"""


def main() -> None:
    """Prints the commands, or runs the one that the first argument names. Raises SystemExit with status 2 for an unknown one."""
    import hipress
    name, *arguments = sys.argv[1:] or ["--help"]
    if name in ("-h", "--help"):
        print(HELP.format(version=hipress.__version__), end="")
    elif name == "--version":
        print(f"hipress {hipress.__version__}")
    elif name in ("capture", "pilot", "plot"):
        sys.argv[:] = [f"hipress.{name}", *arguments]
        runpy.run_module(f"hipress.{name}", run_name="__main__")
    else:
        tool = pathlib.Path(__file__).resolve().parent / f"bin/hipress-{name}"
        if not tool.exists():
            print(f"hipress: there is no command {name!r} beside this package; see python -m hipress --help", file=sys.stderr)
            sys.exit(2)
        os.execv(tool, [tool.name, *arguments])


if __name__ == "__main__":
    main()
