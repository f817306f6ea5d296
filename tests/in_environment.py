#!/usr/bin/env python3
"""Runs a test with packages from PyPI, in a virtual environment that is made on first use.

usage: in_environment.py FOLDER "PACKAGE==VERSION …" TEST.py ARGUMENT…
       in_environment.py FOLDER "PACKAGE==VERSION …" -m MODULE ARGUMENT…
"""
import pathlib
import subprocess
import sys

SKIPPED = 77  # the tests' SKIP_RETURN_CODE


def made(folder, packages):
    """Makes the environment if needed, and returns its python. Skips the test if that fails."""
    python, mark = folder / "bin" / "python3", folder / "packages.txt"
    if mark.exists() and mark.read_text(encoding="utf-8") == packages:
        return python
    install = (python, "-m", "pip", "install", "--quiet", "--disable-pip-version-check", "--retries", "1",
               "--only-binary", ":all:", *packages.split())
    for words in ((sys.executable, "-m", "venv", "--clear", folder), install):
        done = subprocess.run(words, check=False)
        if done.returncode != 0:
            print(f"skipped: {' '.join(map(str, words))}: exit status {done.returncode} (no python3-venv, no PyPI, or "
                  f"nothing for Python {sys.version_info.major}.{sys.version_info.minor} there)")
            sys.exit(SKIPPED)
    mark.write_text(packages, encoding="utf-8")
    return python


if __name__ == "__main__":
    environment = made(pathlib.Path(sys.argv[1]), sys.argv[2])
    sys.exit(subprocess.run((environment, "-B", *sys.argv[3:]), check=False).returncode)
