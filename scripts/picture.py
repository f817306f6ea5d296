"""What the scripts that draw have in common: a python3 that can, how a picture is written, and how they end."""

import contextlib
import importlib.util
import os
import pathlib
import subprocess
import sys
from collections.abc import Callable

from whole_file import replacing

#: In the environment of a script that was started anew, so that this happens once.
STARTED_ANEW = "HIPRESS_STARTED_ANEW"


class Refused(Exception):
    """A file cannot be drawn; the message names it and says why."""


def start_where_matplotlib_is() -> None:
    """Starts the script anew with the python3 that find_python.sh finds, where this one has no matplotlib: that of a
    pyenv or a venv comes first on many a PATH, and lacks Debian's packages. To be called before anything is read or
    printed. Returns if this one has matplotlib, or no other is found."""
    if STARTED_ANEW in os.environ or importlib.util.find_spec("matplotlib"):
        return
    finder = pathlib.Path(__file__).resolve().with_name("find_python.sh")
    with contextlib.suppress(OSError):
        found = subprocess.run([finder], stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, text=True,
                               check=False).stdout.strip()
        if found and found != sys.executable:
            os.execve(found, [found, *sys.orig_argv[1:]], {**os.environ, STARTED_ANEW: "1"})


def pyplot():
    """matplotlib.pyplot, which draws into files. ImportError without matplotlib."""
    import matplotlib

    matplotlib.use("Agg")
    import matplotlib.pyplot as plt

    return plt


def form_of(picture: str | os.PathLike) -> str:
    """The form that the picture's suffix names, as "png". Refused if matplotlib writes no such; ImportError without
    matplotlib."""
    from matplotlib.backend_bases import FigureCanvasBase

    form = pathlib.Path(picture).suffix[1:].lower()
    if form not in FigureCanvasBase.get_supported_filetypes():
        raise Refused(f"{picture}: its suffix says no form of a picture; give a name that ends in .png, .svg or .pdf")
    return form


def save(figure, picture: str | os.PathLike, dpi: int) -> None:
    """Writes the figure whole or not at all, and closes it. Refused as form_of, OSError if it cannot be written."""
    form = form_of(picture)
    with replacing(picture) as temporary:
        figure.savefig(temporary, dpi=dpi, format=form)
    pyplot().close(figure)


def exit_status(tool: str, picture: str | os.PathLike, draw: Callable[[], None]) -> int:
    """Calls `draw`, which reads something and writes `picture`, and says on stderr what went wrong: 2 for a file that
    cannot be drawn or written, 1 where a package is missing, else 0."""
    start_where_matplotlib_is()
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
