"""Version of this package."""

import importlib.metadata
import pathlib
import re


def version() -> str:
    """Version of the source tree that contains this package, or of the installed package; "0+unknown" for any other copy."""
    project = pathlib.Path(__file__).resolve().parents[2] / "pyproject.toml"
    try:
        found = re.search(r'^name = "hipress"\nversion = "([^"]+)"', project.read_text(), re.MULTILINE)
        if found:
            return found[1]
    except OSError:
        pass
    try:
        return importlib.metadata.version("hipress")
    except importlib.metadata.PackageNotFoundError:
        return "0+unknown"
