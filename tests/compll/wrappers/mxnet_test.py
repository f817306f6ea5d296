#!/usr/bin/env python3
"""Tests operators of MXNet, built with the commands in docs/mxnet.md.

usage: mxnet_test.py PROJECT-ROOT FOLDER-OF-THE-TOOLS REFERENCE
"""
import sys
import unittest

import mxnet
from mxnet import nd

import operators

PLACE = operators.Workplace(*sys.argv[1:4], "mxnet")


def array(values):
    return nd.array(values, dtype=values.dtype)


class Operators:
    error = mxnet.MXNetError

    def __init__(self):
        for program, _, _ in operators.PROGRAMS:
            mxnet.library.load(PLACE.build(program), False)

    @staticmethod
    def of(name, what):
        return getattr(nd, f"hipress_{name}_{what}")

    # Without np_shape, a length of 0 means an unknown length in MXNet.

    def encode(self, name, gradient, state, parameters, key):
        with mxnet.util.np_shape(True):
            if name == "terngrad" and state.size == 0:
                return self.of(name, "encode")(array(gradient), **parameters, **key).asnumpy(), state
            state = array(state)
            message = self.of(name, "encode")(array(gradient), state, **parameters, **key)
            return message.asnumpy(), state.asnumpy()

    def decode(self, name, message, elements, parameters):
        with mxnet.util.np_shape(True):
            return self.of(name, "decode")(array(message), elements=elements, **parameters).asnumpy()

    def decode_add(self, name, message, values, parameters):
        with mxnet.util.np_shape(True):
            values, message = array(values), array(message)
            total = self.of(name, "decode_add")(message, values, **parameters)
            self.of(name, "decode_add")(message, values, out=values, **parameters)
            assert total.asnumpy().tobytes() == values.asnumpy().tobytes()
            return values.asnumpy()


class MXNet(operators.Checks, unittest.TestCase):
    place = PLACE

    @classmethod
    def setUpClass(cls):
        cls.operators = Operators()

    def refused(self, text, function, *arguments):
        """Checks the last error only, because MXNet's exceptions list earlier ones, too."""
        with self.subTest(text=text), self.assertRaises(self.operators.error) as caught:
            function(*arguments)
        self.assertRegex(str(caught.exception).rsplit("\t[", 1)[-1], text)

    def test_without_feedback_it_takes_no_state(self):
        gradient = nd.sin(nd.arange(33))
        with mxnet.util.np_shape(True):
            empty = nd.hipress_onebit_encode(gradient, nd.zeros((0,)))
        for off in (False, 0):
            message = nd.hipress_onebit_encode(gradient, feedback=off)
            self.assertEqual(message.asnumpy().tobytes(), empty.asnumpy().tobytes())
        self.refused("expects 2 inputs", nd.hipress_onebit_encode, gradient)
        self.refused("neither True nor False", lambda: nd.hipress_onebit_encode(gradient, feedback="maybe"))

    def test_attributes_that_it_does_not_take(self):
        gradient = nd.ones(33)
        self.refused("no parameter is called 'tau'; there are none",
                     lambda: nd.hipress_onebit_encode(gradient, feedback=False, tau=1))
        self.refused("b='x' is not a number", lambda: nd.hipress_terngrad_encode(gradient, b="x"))
        self.refused("step='x' is not a whole number",
                     lambda: nd.hipress_terngrad_encode(gradient, step="x").wait_to_read())
        self.refused("elements=… must be the length", nd.hipress_onebit_decode, nd.ones(16, dtype="uint8"))


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1], verbosity=2)
