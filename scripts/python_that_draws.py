"""A python3 that has matplotlib, for the scripts that draw."""

import contextlib
import importlib.util
import os
import pathlib
import subprocess
import sys

#: In the environment of a script that was started anew, so that this happens once.
STARTED_ANEW = "HIPRESS_STARTED_ANEW"


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
