"""Common code of experiments: options, messages, priority of ranks, interrupts, skips and errors."""

import argparse
import contextlib
import dataclasses
import pathlib
import signal
import sys
import types
from collections.abc import Callable

import whole_file
from options import at_least

from . import ROOT
from .cases import ConditionError
from .network import CommandError, Unavailable, remove_leftovers
from .ranks import ToolError, awake, come_before_ranks, real_time_allowed, reserved_memory, short_turns
from .results import ResultsError

EPILOG = 'Needs a release build. Without the right to make namespaces, or what else is missing, says "skipped: ..." and exits with 0.'


@dataclasses.dataclass(frozen=True)
class Experiment:
    """Definition of an experiment, the constant EXPERIMENT of its module. An option whose default is None is not offered."""

    run: Callable[[argparse.Namespace], int]  #: measures as the options say, and returns the exit status
    add_options: Callable[[argparse.ArgumentParser], None]  #: adds the experiment's own options
    rounds: int | None = None  #: default of --rounds; a round runs every case once
    iterations: int | None = None  #: default of --iterations, the measured iterations of a case in a round
    again: int | None = 1  #: default of --again
    kept: str | None = "profiles of links"  #: files that --resume keeps
    json: bool = True  #: true if --json is offered
    folder: bool = True  #: true if --output is offered
    needs_network: Callable[[argparse.Namespace], bool] = lambda _: True
    real_time: Callable[[argparse.Namespace], bool] = lambda _: True  #: true if ranks have priority, where allowed


def parser_of(name: str, documentation: str | None, experiment: Experiment) -> argparse.ArgumentParser:
    """Parser of the experiment's own options, followed by the options that all experiments share."""
    parser = argparse.ArgumentParser(prog=f"validate.py {name}", description=documentation, epilog=EPILOG,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    experiment.add_options(parser)
    for option, least, text in (("rounds", 1, "each of which runs every case once"),
                                ("iterations", 1, "measured of each case in a round"),
                                ("again", 0, "how often a case is measured again at most because other programs were busy")):
        default = getattr(experiment, option)
        if default is not None:
            parser.add_argument(f"--{option}", type=at_least(least), default=default, help=f"{text} (default: %(default)s)")
    if experiment.kept:
        parser.add_argument("--resume", action="store_true", help=f"keep the {experiment.kept} that a run before this left")
    if experiment.json:
        parser.add_argument("--json", type=pathlib.Path, metavar="FILE", help="also write the results as JSON")
    if experiment.folder:
        parser.add_argument("--output", type=pathlib.Path, default=ROOT / "build/validation" / name,
                            help="folder of results, profiles and plans")
    parser.add_argument("--tools", type=pathlib.Path, default=ROOT / "build/release/bin", help="folder of the tools")
    parser.set_defaults(json=None)
    return parser


def main(name: str, module: types.ModuleType, words: list[str]) -> int:
    """Runs an experiment. Returns the exit status, as run() does."""
    experiment: Experiment = module.EXPERIMENT
    options = parser_of(name, module.__doc__, experiment).parse_args(words)
    options.tools, options.say = options.tools.resolve(), speaker(f"validate {name}")

    def body(real_time: bool) -> int:
        options.real_time = real_time
        if options.json:
            whole_file.require_writable(options.json)
        if experiment.folder:
            options.output = whole_file.prepare(options.output, None)
        if experiment.needs_network(options):
            for left in remove_leftovers():
                options.say(f"removed {left}, left by a run that was killed")
        return experiment.run(options)

    return run(body, options.say, experiment.real_time(options))


def speaker(command: str) -> Callable[[str], None]:
    """Returns a function that prints a sentence of a command on stderr at once, such as "validate ddp: ..."."""
    def say(text: str) -> None:
        print(f"{command}: {text}", file=sys.stderr, flush=True)

    return say


def stop(number: int, _frame: object) -> None:
    """Ends the program by an exception, so that networks and settings are cleaned up."""
    raise SystemExit(128 + number)


def stop_as_exceptions() -> None:
    for number in (signal.SIGTERM, signal.SIGHUP, signal.SIGINT):
        signal.signal(number, stop)


def run(body: Callable[[bool], int], say: Callable[[str], None], wants_real_time: bool) -> int:
    """Calls `body`, whose argument is true if ranks get priority over ordinary programs. Returns the exit status: that of `body`; 2
    for a wrong condition or results that cannot be written; 0 without the right to make namespaces; 1 if a tool fails or the disk
    is full."""
    stop_as_exceptions()
    real_time = wants_real_time and real_time_allowed()
    if real_time:
        come_before_ranks()
    try:
        with contextlib.ExitStack() as stack:
            for lasting in (short_turns, reserved_memory) if real_time else ():
                stack.enter_context(lasting())
            stack.enter_context(awake())
            return body(real_time)
    except (ConditionError, whole_file.Unwritable) as error:
        say(str(error))
        return 2
    except Unavailable as reason:
        print(f"skipped: {reason}")
        return 0
    except (ToolError, CommandError, ResultsError, OSError) as error:
        say(str(error))
        return 1
