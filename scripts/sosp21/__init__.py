"""Predictions of the throughputs published for HiPress (SOSP 2021); README.md is the map."""
