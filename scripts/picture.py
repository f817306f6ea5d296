"""What the scripts that draw have in common: a python3 that can, how a picture is written, and how they end."""

import contextlib
import importlib.util
import json
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


class ToolFailed(Exception):
    """A tool of ours ended with another status than 0; `status` is the exit status for that: 2 where the request is wrong."""

    def __init__(self, message: str, status: int):
        super().__init__(message)
        self.status = status


def ask(tool: pathlib.Path, *arguments: object) -> dict:
    """What one of our tools prints with --json; ToolFailed if it fails."""
    command = [str(tool), *map(str, arguments), "--json"]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode != 0:
        raise ToolFailed(f"{' '.join(command)}: {done.stderr.strip()}", 2 if done.returncode == 2 else 1)
    return json.loads(done.stdout)


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


def drawing() -> None:
    """Makes the drawing code of the Python package importable, as hipress._pictures: its pictures and ours are the same."""
    folder = str(pathlib.Path(__file__).resolve().parents[1] / "python")
    if folder not in sys.path:
        sys.path.insert(0, folder)


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
    import matplotlib

    form = form_of(picture)
    # Texts of an SVG stay texts, and equal pictures are equal files.
    with replacing(picture) as temporary, matplotlib.rc_context({"svg.fonttype": "none", "svg.hashsalt": "hipress"}):
        figure.savefig(temporary, dpi=dpi, format=form, **({"metadata": {"Date": None}} if form == "svg" else {}))
    pyplot().close(figure)


def exit_status(tool: str, picture: str | os.PathLike, draw: Callable[[], None]) -> int:
    """Calls `draw`, which reads something and writes `picture`, and says on stderr what went wrong: 2 for a file that
    cannot be drawn or written and a request that a tool refuses, 1 where a package is missing or a tool fails, else 0."""
    start_where_matplotlib_is()
    try:
        draw()
    except Refused as error:
        print(f"{tool}: {error}", file=sys.stderr)
        return 2
    except ToolFailed as error:
        print(f"{tool}: {error}", file=sys.stderr)
        return error.status
    except ImportError as error:
        print(f"{tool}: {error}; install it with apt-get install python3-matplotlib", file=sys.stderr)
        return 1
    except OSError as error:
        print(f"{tool}: {picture}: cannot be written: {error.strerror or error}", file=sys.stderr)
        return 2
    return 0
