#!/usr/bin/env python3
"""Tests operators of PyTorch, built with the commands in docs/pytorch.md.

usage: pytorch_test.py PROJECT-ROOT FOLDER-OF-THE-TOOLS REFERENCE
"""
import pathlib
import sys
import unittest

try:
    import numpy
    import torch
except ImportError as error:
    print(f"skipped: {error}; on Debian, apt-get install python3-torch libtorch-dev")
    sys.exit(77)

import operators

if not (pathlib.Path(torch.__path__[0]) / "include/torch/library.h").exists():
    operators.skip("no headers of PyTorch; on Debian, apt-get install libtorch-dev")

PLACE = operators.Workplace(*sys.argv[1:4], "pytorch")


class Operators:
    error = RuntimeError

    def __init__(self):
        for program, _, _ in operators.PROGRAMS:
            torch.ops.load_library(PLACE.build(program))

    @staticmethod
    def of(name):
        return getattr(torch.ops, f"hipress_{name}")

    def encode(self, name, gradient, state, parameters, key):
        state = torch.from_numpy(state.copy())
        message = self.of(name).encode(torch.from_numpy(gradient), state, **parameters, **key)
        return message.numpy(), state.numpy()

    def decode(self, name, message, elements, parameters):
        return self.of(name).decode(torch.from_numpy(message), elements, **parameters).numpy()

    def decode_add(self, name, message, values, parameters):
        values = torch.from_numpy(values.copy())
        self.of(name).decode_add(torch.from_numpy(message), values, **parameters)
        return values.numpy()


class PyTorch(operators.Checks, unittest.TestCase):
    place = PLACE

    @classmethod
    def setUpClass(cls):
        cls.operators = Operators()

    def test_tensors_that_begin_anywhere(self):
        onebit = torch.ops.hipress_onebit
        gradient = torch.arange(-20, 20, dtype=torch.float32)
        message = onebit.encode(gradient[3:], torch.empty(0))
        moved = torch.cat([torch.zeros(5, dtype=torch.uint8), message])[5:]
        self.assertTrue(torch.equal(onebit.decode(moved, 37), onebit.decode(message, 37)))

    def test_any_shape_of_gradient(self):
        onebit = torch.ops.hipress_onebit
        gradient = torch.arange(-6, 6, dtype=torch.float32)
        self.assertTrue(torch.equal(onebit.encode(gradient.reshape(3, 4), torch.zeros(1, 12)),
                                    onebit.encode(gradient, torch.zeros(1, 12))))

    def test_wrapper_and_registration_in_two_files_and_for_any_processor(self):
        """-w and -r in two calls, and compiler flags without AVX, give the same bits."""
        for part in ("-w", "-r"):
            PLACE.run("hipress-compll", "TerngradEncode.pse", part, "-f", "pytorch")
        torch_folder = torch.__path__[0]
        PLACE.run(PLACE.environment.get("CXX", "c++"), "-std=c++20", "-fPIC", "-shared", "-w", f"-I{PLACE.root}",
                  f"-I{torch_folder}/include", f"-I{torch_folder}/include/torch/csrc/api/include",
                  f"-D_GLIBCXX_USE_CXX11_ABI={int(torch.compiled_with_cxx11_abi())}",
                  "TerngradEncode_pytorch.cpp", "-o", "plain.so", f"-L{torch_folder}/lib", "-lc10", "-ltorch_cpu")
        script = ("import torch; torch.ops.load_library('./plain.so'); "
                  "print(torch.ops.hipress_terngrad.encode(torch.arange(1000.).sin(), torch.empty(0), seed=5).tolist())")
        plain = PLACE.run(sys.executable, "-c", script, capture_output=True, text=True).stdout
        native = torch.ops.hipress_terngrad.encode(torch.arange(1000.).sin(), torch.empty(0), seed=5)
        self.assertEqual(plain, f"{native.tolist()}\n")

    def test_tensors_that_it_does_not_take(self):
        onebit = torch.ops.hipress_onebit
        self.refused("not contiguous", onebit.encode, torch.ones(4, 4)[:, :2], torch.empty(0))
        self.refused("not contiguous", onebit.encode, torch.ones(4), torch.zeros(1, 1).expand(1, 4))
        self.refused("Unknown keyword argument", lambda: onebit.encode(torch.ones(4), torch.empty(0), tau=1.0))
        self.refused(".", onebit.encode, torch.ones(4, device="meta"), torch.empty(0))
        self.refused(".", onebit.encode, torch.ones(4).to_sparse(), torch.empty(0))


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1], verbosity=2)
