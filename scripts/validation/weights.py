#!/usr/bin/env python3
"""Writes made-up weights as raw fp32: normally distributed, and rounded to bf16. Needs numpy, as Debian's python3-torch does.

    weights.py ELEMENTS DEVIATION FILE
"""

import sys

import numpy


def weights(elements: int, deviation: float) -> numpy.ndarray:
    """Made-up weights, the same in every run."""
    numbers = numpy.random.default_rng(1).standard_normal(elements, dtype=numpy.float32) * numpy.float32(deviation)
    bits = numbers.view(numpy.uint32)
    bits += 0x7FFF + ((bits >> 16) & 1)  # to the nearest, ties to even
    bits &= 0xFFFF0000
    return numbers


if __name__ == "__main__":
    weights(int(sys.argv[1]), float(sys.argv[2])).tofile(sys.argv[3])
