"""Entry point of the command-line tools of an installed package."""

import os
import pathlib
import sys


def main() -> None:
    """Executes the tool of the name under which it was called. Raises SystemExit if the tool is missing."""
    name = pathlib.Path(sys.argv[0]).name
    tool = pathlib.Path(__file__).resolve().parent / "bin" / name
    if not tool.exists():
        sys.exit(f"{name}: {tool} is not there: install the package again with pip")
    os.execv(tool, [name, *sys.argv[1:]])
