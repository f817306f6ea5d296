"""How the scripts that draw a picture of a file end."""

import os
import sys
from collections.abc import Callable


class Refused(Exception):
    """A file cannot be drawn; the message names it and says why."""


def exit_status(tool: str, picture: str | os.PathLike, draw: Callable[[], None]) -> int:
    """Calls `draw`, which writes `picture`, and says on stderr what went wrong: 2 for a file that cannot be drawn or
    written, 1 where a package is missing, else 0."""
    try:
        draw()
    except Refused as error:
        print(f"{tool}: {error}", file=sys.stderr)
        return 2
    except ImportError as error:
        print(f"{tool}: {error}; install it with apt-get install python3-matplotlib", file=sys.stderr)
        return 1
    except OSError as error:
        print(f"{tool}: {picture}: cannot be written: {error.strerror or error}", file=sys.stderr)
        return 2
    return 0
