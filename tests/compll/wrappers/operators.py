"""Tests that every framework's operators must pass: results like those of make_codec(), and errors for invalid input.

A framework's test defines Operators and derives its TestCase from Checks.
"""
import os
import pathlib
import re
import shutil
import struct
import subprocess
import sys
import tempfile

import numpy

SKIPPED = 77  # SKIP_RETURN_CODE of the tests in CMakeLists.txt
LENGTHS = (0, 1, 33, 10007)
STEPS = 3
KEY = {"seed": 7, "node": 3, "gradient_number": 11}
#: Rows of (file of a program, name of its operators, parameters to test).
PROGRAMS = (
    ("OnebitEncode", "onebit", ({},)),
    ("TerngradEncode", "terngrad", ({}, {"b": 5})),
    ("DgcEncode", "dgc", ({}, {"rho": 0.125, "momentum": 0.5})),
    ("tern", "meanternary", ({}, {"factor": 0.1})),
)
#: State arrays by program.
ARRAYS = {"onebit": 1, "terngrad": 0, "dgc": 2, "meanternary": 1}


def skip(reason):
    print(f"skipped: {reason}")
    sys.exit(SKIPPED)


def blocks(page, language):
    return re.findall(rf"```{language}\n(.*?)```", page.read_text(encoding="utf-8"), re.S)


class Workplace:
    """Folder with the programs, where the commands of a framework's page are run."""

    def __init__(self, root, tools, reference, framework):
        self.root, self.reference = pathlib.Path(root), reference
        self.page = self.root / "docs" / f"{framework}.md"
        self.folder = tempfile.TemporaryDirectory()
        self.path = pathlib.Path(self.folder.name)
        binaries = os.pathsep.join((os.path.dirname(sys.executable), str(tools), os.environ["PATH"]))
        self.environment = dict(os.environ, PATH=binaries, HIPRESS=str(root), TF_CPP_MIN_LOG_LEVEL="3",
                                HIPRESS_CACHE=str(pathlib.Path(reference).parent / "cache"))
        for program in (self.root / "kernels" / "algorithms").glob("*.pse"):
            shutil.copy(program, self.path)
        tutorial = (self.root / "kernels/compll/language.md").read_text(encoding="utf-8")
        program = re.findall(r"```\n(.*?)```", tutorial.split("## An algorithm of one's own")[1], re.S)[0]
        (self.path / "tern.pse").write_text(program, encoding="utf-8")

    def run(self, *words, **options):
        done = subprocess.run(words, cwd=self.path, env=self.environment, check=False, **options)
        if done.returncode != 0:
            sys.exit(f"{words}: exit status {done.returncode}")
        return done

    def build(self, program):
        """Runs the page's commands for `program`, and returns the path of the library that they make."""
        script = "\n".join(blocks(self.page, "sh"))
        self.run("bash", "-euxc", re.sub(r"\btern(?=[._])", program, script))
        return str(self.path / f"{program}.so")

    def run_page(self):
        """Runs the page's Python in a new process."""
        self.run(sys.executable, "-c", "\n".join(blocks(self.page, "python")))

    def expected(self, algorithm, gradients, arrays):
        """Results of make_codec() for the gradients: (message, state, decoded, sum) for every step."""
        elements = gradients.shape[1]
        done = self.run(self.reference, algorithm, *map(str, KEY.values()), str(elements),
                        "state" if arrays else "none", input=gradients.tobytes(), capture_output=True)
        results, at = [], 0
        floats = elements * 4

        def take(count):
            nonlocal at
            at += count
            return done.stdout[at - count:at]

        while at < len(done.stdout):
            (used,) = struct.unpack("<q", take(8))
            results.append((take(used), take(floats * arrays), take(floats), take(floats)))
        return results


def gradients_of(elements):
    random = numpy.random.default_rng(elements)
    gradients = random.standard_normal((STEPS, elements), dtype=numpy.float32)
    if elements > 40:
        gradients[1, 40] = numpy.nan  # all values of that step become NaN; the state is unchanged
    return gradients


class Checks:
    """Tests of `operators`, an object with the functions

        encode(name, gradient, state, parameters, key) -> message, state
        decode(name, message, elements, parameters) -> values
        decode_add(name, message, values, parameters) -> sum

    on NumPy arrays, and the attribute `error`, the framework's exception class.
    """

    def agree(self, program, name, parameters, elements, keeps_state):
        text = ",".join(f"{key}={value}" for key, value in parameters.items())
        algorithm = name if name != "meanternary" else str(self.place.path / "tern.pse")
        gradients = gradients_of(elements)
        arrays = ARRAYS[name] if keeps_state else 0
        expected = self.place.expected(f"{algorithm}({text})", gradients, arrays)
        self.assertEqual(len(expected), STEPS if elements else 1)
        state = numpy.zeros((arrays, elements) if arrays else (0,), numpy.float32)
        for step, (message, kept, decoded, total) in enumerate(expected):
            with self.subTest(program=program, parameters=text, elements=elements, state=keeps_state, step=step):
                got, state = self.operators.encode(name, gradients[step], state, parameters, dict(KEY, step=step))
                self.assertEqual(got.tobytes(), message)
                self.assertEqual(state.tobytes(), kept)
                values = self.operators.decode(name, got, elements, parameters)
                self.assertEqual((values.shape, values.tobytes()), ((elements,), decoded))
                added = self.operators.decode_add(name, got, gradients[step], parameters)
                self.assertEqual(added.tobytes(), total)

    def test_same_bits_as_the_codec(self):
        for program, name, all_parameters in PROGRAMS:
            for parameters in all_parameters:
                for elements in LENGTHS:
                    for keeps_state in (True, False):
                        self.agree(program, name, parameters, elements, keeps_state)

    def test_the_page_runs(self):
        self.place.run_page()

    def refused(self, text, function, *arguments):
        with self.subTest(text=text), self.assertRaisesRegex(self.operators.error, text):
            function(*arguments)

    def test_bad_input_is_an_error(self):
        encode, decode, add = self.operators.encode, self.operators.decode, self.operators.decode_add
        gradient, none = numpy.ones(33, numpy.float32), numpy.zeros(0, numpy.float32)
        state, key = numpy.zeros((1, 33), numpy.float32), dict(KEY, step=0)
        message, _ = encode("onebit", gradient, state, {}, key)
        damaged = message.copy()
        damaged[4] ^= 1  # the algorithm's tag
        self.refused(".", encode, "onebit", gradient.astype(numpy.float64), state, {}, key)
        self.refused(".", encode, "onebit", gradient, state.astype(numpy.float64), {}, key)
        self.refused(r"state of shape \[33\]", encode, "onebit", gradient, state[0], {}, key)
        self.refused(r"state of shape \[2, 33\]", encode, "onebit", gradient, numpy.zeros((2, 33), numpy.float32),
                     {}, key)
        self.refused("b=9 is out of range", encode, "terngrad", gradient, none, {"b": 9}, key)
        self.refused("factor=0.001 is out of range", encode, "meanternary", gradient, none, {"factor": 0.001}, key)
        self.refused("node -1", encode, "onebit", gradient, state, {}, dict(key, node=-1))
        self.refused("damaged message", decode, "onebit", damaged, 33, {})
        self.refused("damaged message", add, "onebit", damaged, gradient, {})
        self.refused("damaged message", decode, "onebit", message, 34, {})
        self.refused("a message of 16 bytes for 33 elements", decode, "onebit", message[:16], 33, {})
        self.refused("a message of", decode, "onebit", message, 1 << 40, {})
        self.refused("a gradient of -1 elements", decode, "onebit", message, -1, {})
        self.refused(".", decode, "onebit", gradient, 33, {})
        self.refused("a message of", add, "onebit", message, numpy.ones(10007, numpy.float32), {})
        entries, _ = encode("dgc", gradient, none, {}, key)
        for length in (4, len(entries) - 4):
            self.refused("damaged message", decode, "dgc", entries[:length], 33, {})

    def test_damage_never_crashes(self):
        random = numpy.random.default_rng(1)
        for _, name, _ in PROGRAMS:
            message, _ = self.operators.encode(name, numpy.ones(100, numpy.float32), numpy.zeros(0, numpy.float32), {},
                                               dict(KEY, step=0))
            for _ in range(100):
                damaged = message.copy()
                damaged[random.integers(len(message))] ^= random.integers(1, 256)
                try:
                    self.operators.decode(name, damaged, 100, {})
                except self.operators.error:
                    pass
