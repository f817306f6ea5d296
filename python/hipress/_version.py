"""Version of this package."""

import functools
import importlib
import pathlib
import re
import subprocess


@functools.lru_cache(maxsize=None)
def version() -> str:
    """Version and commit, "0.2.0+g1a2b3c4d5e": those of the build that installed this package, or of the source tree that contains
    it. "0+unknown" for any other copy."""
    try:
        built = importlib.import_module("hipress._built")  # Written by CMake.
        return _named(built.VERSION, built.COMMIT)
    except ImportError:
        pass
    tree = pathlib.Path(__file__).resolve().parents[2]
    try:
        found = re.search(r"^project\(hipress VERSION ([\d.]+)", (tree / "CMakeLists.txt").read_text(), re.MULTILINE)
    except OSError:
        found = None
    return _named(found[1], _commit(tree)) if found else "0+unknown"


def _named(release: str, commit: str) -> str:
    return f"{release}+g{commit}" if re.fullmatch("[0-9a-f]+", commit) else release


def _commit(tree: pathlib.Path) -> str:
    """Commit checked out in a source tree; empty if it is no clone, or git is missing."""
    try:
        return subprocess.run(["git", "rev-parse", "--short=10", "HEAD"], cwd=tree, capture_output=True, text=True,
                              check=False).stdout.strip()
    except OSError:
        return ""
