"""Finds a python3 that has matplotlib, for the scripts that draw."""

import contextlib
import importlib.util
import os
import pathlib
import subprocess
import sys

#: Environment variable that marks a script that was started anew, so that this happens only once.
STARTED_ANEW = "HIPRESS_STARTED_ANEW"


def start_where_matplotlib_is() -> None:
    """Starts the script anew with the python3 that find_python.sh finds, if this one lacks matplotlib. (A pyenv or a venv is often
    first on the PATH, and lacks Debian's packages.) Call it before anything is read or printed. It returns if this python3 has
    matplotlib, or if no other one is found."""
    if STARTED_ANEW in os.environ or importlib.util.find_spec("matplotlib"):
        return
    finder = pathlib.Path(__file__).resolve().with_name("find_python.sh")
    with contextlib.suppress(OSError):
        found = subprocess.run([finder], stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, text=True,
                               check=False).stdout.strip()
        if found and found != sys.executable:
            os.execve(found, [found, *sys.orig_argv[1:]], {**os.environ, STARTED_ANEW: "1"})
