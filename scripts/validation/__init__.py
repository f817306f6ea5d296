"""Predictions beside measurements on networks of known speed."""

import pathlib

#: The project's folder.
ROOT = pathlib.Path(__file__).resolve().parents[2]
