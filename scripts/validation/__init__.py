"""Predictions beside measurements on a network of known speed; see README.md."""
