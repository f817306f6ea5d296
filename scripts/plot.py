#!/usr/bin/env python3
"""Draws what the tools print: `python -m hipress.plot` of this tree, by a python3 that has matplotlib."""

import os
import pathlib
import sys

from python_that_draws import start_where_matplotlib_is

ROOT = pathlib.Path(__file__).resolve().parents[1]

if __name__ == "__main__":
    start_where_matplotlib_is()
    sys.path.insert(0, str(ROOT / "python"))
    os.environ.setdefault("HIPRESS_LIBRARY", str(ROOT / "build/release/runtime/libhipress.so"))
    from hipress import plot

    sys.exit(plot.main())
