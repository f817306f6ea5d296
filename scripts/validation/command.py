"""What commands that measure on such networks have in common: how they speak, are scheduled, stopped, skipped and refused."""

import argparse
import contextlib
import pathlib
import signal
import sys
from collections.abc import Callable

from options import at_least
from whole_file import Unwritable

from .cases import ConditionError
from .network import CommandError, Unavailable
from .ranks import ToolError, awake, come_before_ranks, real_time_allowed, reserved_memory, short_turns
from .results import ResultsError


def speaker(command: str) -> Callable[[str], None]:
    """What prints sentences of a command on stderr, at once: "validate_ddp: ..."."""
    def say(text: str) -> None:
        print(f"{command}: {text}", file=sys.stderr, flush=True)

    return say


def parser(documentation: str | None, command: str | None = None) -> argparse.ArgumentParser:
    """Without options yet; its --help opens with the script's docstring. `command`: what users call, if it is not the script."""
    return argparse.ArgumentParser(prog=command, description=documentation, formatter_class=argparse.RawDescriptionHelpFormatter)


def add_options(parser: argparse.ArgumentParser, root: pathlib.Path, folder: str, of: str = "case", kept: str = "profiles of links") -> None:
    """Those that commands beside PyTorch share: --again of each `of`, --resume with what is `kept`, --json, --output (build/`folder`
    of the project's `root`) and --tools."""
    parser.add_argument("--again", type=at_least(0), default=1,
                        help=f"how often a {of} is measured again at most because other programs were busy (default: %(default)s)")
    parser.add_argument("--resume", action="store_true", help=f"keep the {kept} that a run before this left")
    parser.add_argument("--json", type=pathlib.Path, metavar="FILE", help="also write the results as JSON")
    parser.add_argument("--output", type=pathlib.Path, default=root / "build" / folder, help="folder of profiles and plans")
    parser.add_argument("--tools", type=pathlib.Path, default=root / "build/release/bin", help="folder of the tools")


def stop(number: int, _frame: object) -> None:
    """Ends the program as an exception, so that what was made is removed."""
    raise SystemExit(128 + number)


def stop_as_exceptions() -> None:
    for number in (signal.SIGTERM, signal.SIGHUP, signal.SIGINT):
        signal.signal(number, stop)


def run(body: Callable[[bool], int], say: Callable[[str], None], wants_real_time: bool = True) -> int:
    """Calls `body` with whether ranks are scheduled before ordinary programs; the exit status: what it returns, 2 for
    conditions that make no sense and results that cannot be written, 0 without the right to make namespaces, 1 where a
    tool fails or the disk is full."""
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
    except (ConditionError, Unwritable) as error:
        say(str(error))
        return 2
    except Unavailable as reason:
        print(f"skipped: {reason}")
        return 0
    except (ToolError, CommandError, ResultsError, OSError) as error:
        say(str(error))
        return 1
