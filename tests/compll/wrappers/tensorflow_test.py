#!/usr/bin/env python3
"""Tests operators of TensorFlow, built with the commands in docs/tensorflow.md.

usage: tensorflow_test.py PROJECT-ROOT FOLDER-OF-THE-TOOLS REFERENCE
"""
import os
import sys
import unittest

os.environ["TF_CPP_MIN_LOG_LEVEL"] = "3"

import tensorflow

import operators

PLACE = operators.Workplace(*sys.argv[1:4], "tensorflow")


class Operators:
    error = (tensorflow.errors.OpError, TypeError)

    def __init__(self):
        self.library = {name: tensorflow.load_op_library(PLACE.build(program))
                        for program, name, _ in operators.PROGRAMS}

    def of(self, name, what):
        return getattr(self.library[name], f"hipress_{name}_{what}")

    def encode(self, name, gradient, state, parameters, key):
        before = state.tobytes()
        message, new_state = self.of(name, "encode")(tensorflow.constant(gradient), tensorflow.constant(state),
                                                     **parameters, **key)
        assert state.tobytes() == before
        return message.numpy(), new_state.numpy()

    def decode(self, name, message, elements, parameters):
        return self.of(name, "decode")(tensorflow.constant(message), elements, **parameters).numpy()

    def decode_add(self, name, message, values, parameters):
        return self.of(name, "decode_add")(tensorflow.constant(message), tensorflow.constant(values),
                                           **parameters).numpy()


class TensorFlow(operators.Checks, unittest.TestCase):
    place = PLACE

    @classmethod
    def setUpClass(cls):
        cls.operators = Operators()

    def test_inside_a_function(self):
        encode = self.operators.of("terngrad", "encode")

        @tensorflow.function
        def messages(gradient, step):
            message, _ = encode(gradient, tensorflow.zeros([0]), seed=1, step=step, node=0, gradient_number=0, b=4)
            return message

        gradient = tensorflow.sin(tensorflow.range(1000.0))
        for step in (0, 1):
            eager, _ = encode(gradient, tensorflow.zeros([0]), 1, step, 0, 0, b=4)
            traced = messages(gradient, tensorflow.constant(step, tensorflow.int64))
            self.assertEqual(traced.numpy().tobytes(), eager.numpy().tobytes())
        other, _ = encode(gradient, tensorflow.zeros([0]), 1, 0, 0, 0, b=4)
        self.assertNotEqual(other.numpy().tobytes(), traced.numpy().tobytes())

    def test_an_input_that_is_used_again_keeps_its_value(self):
        state = tensorflow.zeros([1, 33])
        _, new_state = self.operators.of("onebit", "encode")(tensorflow.sin(tensorflow.range(33.0)), state, 0, 0, 0, 0)
        self.assertEqual(float(tensorflow.reduce_sum(abs(state))), 0)
        self.assertNotEqual(float(tensorflow.reduce_sum(abs(new_state))), 0)

    def test_a_step_is_one_number(self):
        self.refused("one number expected", self.operators.of("onebit", "encode"), tensorflow.zeros([3]),
                     tensorflow.zeros([0]), 0, [1, 2], 0, 0)


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1], verbosity=2)
