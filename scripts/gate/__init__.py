"""Checks of the compiled code of CUDA kernels, without a GPU; README.md is the map."""
