"""The version of this package."""

import importlib.metadata
import pathlib
import re


def version() -> str:
    """That of the source tree that this package lies in, or of the installed package; "0+unknown" of a copy that is neither."""
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
