"""What the compiled code of CUDA kernels says without a GPU; README.md is the map."""
