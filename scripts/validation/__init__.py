"""Compares predictions with measurements on networks of known speed; README.md is the map."""

import pathlib

#: Root folder of the project.
ROOT = pathlib.Path(__file__).resolve().parents[2]
