#!/usr/bin/env python3
"""Tests hipress-compll as a process: operators' bodies compile for both targets, and errors leave no files.

usage: tool_test.py HIPRESS-COMPLL PROJECT-ROOT CXX [NVCC]
"""
import pathlib
import subprocess
import sys
import tempfile
import unittest

TOOL, ROOT, CXX = (sys.argv[1:] + [""] * 3)[:3]
NVCC = sys.argv[4] if len(sys.argv) > 4 else ""
SEED = "tests/compll/data/TernGradEncode.pse"


def run(*words, cwd=None):
    return subprocess.run(words, cwd=cwd, capture_output=True, text=True, check=False)


class Tool(unittest.TestCase):
    def setUp(self):
        self.folder = tempfile.TemporaryDirectory()
        self.addCleanup(self.folder.cleanup)
        self.out = pathlib.Path(self.folder.name)

    def files(self):
        return sorted(path.name for path in self.out.iterdir())

    def body(self, source, target):
        done = run(TOOL, f"{ROOT}/{source}", "-b", "--target", target, "-o", str(self.out))
        self.assertEqual(done.returncode, 0, done.stderr)
        path = pathlib.Path(done.stdout.strip())
        self.assertTrue(path.exists())
        return path

    def test_quiet_prints_errors_alone(self):
        done = run(TOOL, f"{ROOT}/kernels/algorithms/DgcEncode.pse", "-b", "--target", "cpp", "--quiet", "-o", str(self.out))
        self.assertEqual((done.returncode, done.stdout, done.stderr), (0, "", ""))
        self.assertEqual(self.files(), ["DgcEncode.cpp"])

    def compiles(self, *words):
        done = run(*words)
        self.assertEqual(done.returncode, 0, done.stderr)

    def test_the_published_program_compiles_alone_as_cpp(self):
        body = self.body(SEED, "cpp")
        self.assertEqual(body.name, "TernGradEncode.cpp")
        self.compiles(CXX, "-std=c++20", f"-I{ROOT}", "-c", str(body), "-o", f"{body}.o")

    def test_it_says_what_it_made_and_how_to_use_it(self):
        program = f"{ROOT}/kernels/algorithms/TerngradEncode.pse"
        done = run(TOOL, program, "-b", "--target", "cpp", "-o", str(self.out))
        body = self.out / "TerngradEncode.cpp"
        self.assertEqual(done.stdout, f"{body}\n")
        for said in (f"{body}: the body in C++, which compiles alone with -std=c++20",
                     f"{program}: terngrad, a quantiser for CPUs and GPUs; parameters: b (2)",
                     f"hipress-profile --algorithm {program}"):
            self.assertIn(said, done.stderr)
        done = run(TOOL, program, "-w", "-r", "-f", "pytorch", "-o", str(self.out))
        self.assertIn("the whole operator of pytorch", done.stderr)
        checked = run(TOOL, program)
        self.assertEqual((checked.returncode, checked.stdout), (0, ""))
        self.assertIn("terngrad, a quantiser", checked.stderr)
        alone = self.out / "TernGradEncode.pse"
        alone.write_bytes(pathlib.Path(ROOT, SEED).read_bytes())
        self.assertIn("no decoder yet", run(TOOL, str(alone)).stderr)

    def test_a_shipped_program_is_named_from_any_folder(self):
        """Runs the first example of --help."""
        example = run(TOOL, "--help").stdout.splitlines()[1].split()
        self.assertEqual(example[:2], ["hipress-compll", "TerngradEncode.pse"])
        done = subprocess.run([TOOL, *example[1:]], cwd=self.out, text=True, capture_output=True, check=False)
        self.assertEqual((done.returncode, done.stdout), (0, "./TerngradEncode.cpp\n"), done.stderr)
        self.assertTrue((self.out / "TerngradEncode.cpp").is_file())
        # A file of that name in the working directory takes precedence.
        (self.out / "TerngradEncode.pse").write_text("nonsense")
        done = subprocess.run([TOOL, *example[1:]], cwd=self.out, text=True, capture_output=True, check=False)
        self.assertEqual(done.returncode, 2)
        self.assertIn("TerngradEncode.pse:1", done.stderr)

    def test_a_decoder_brings_its_encoder(self):
        body = self.body("kernels/algorithms/TbqDecode.pse", "cpp")
        self.assertEqual(body.name, "TbqDecode.cpp")
        self.assertIn("struct Program_", body.read_text(encoding="utf-8"))

    @unittest.skipUnless(NVCC, "no nvcc on this machine")
    def test_quantisers_and_sparsifiers_compile_alone_as_cuda(self):
        for program in (SEED, "kernels/algorithms/DgcEncode.pse"):
            body = self.body(program, "cuda")
            self.assertEqual(body.name, pathlib.Path(program).stem + ".cu")
            for architecture in ("sm_75", "sm_80", "sm_90"):
                with self.subTest(program=program, architecture=architecture):
                    self.compiles(NVCC, "-std=c++20", f"-arch={architecture}", f"-I{ROOT}", "-c", str(body),
                                  "-o", f"{body}.o")

    def test_a_program_for_cpus_only_has_no_cuda_body(self):
        (self.out / "sorted.pse").write_text(
            "void SortedEncode(float* g, uint8* c) { float* out = sort(g); c = concat(out); }\n"
            "void SortedDecode(uint8* c, float* g) { float* out; extract(c, out);\n"
            "g = map(range(g.size), [&](int i) { return out[i]; }); }\n", encoding="utf-8")
        for words in (("-b",), ("-b", "--target", "cuda")):
            done = run(TOOL, "sorted.pse", *words, cwd=self.out)
            self.assertEqual((done.returncode, done.stdout), (2, ""))
            self.assertIn("sorted.pse: the program runs on CPUs only", done.stderr)
            self.assertIn("give --target cpp", done.stderr)
            self.assertEqual(self.files(), ["sorted.pse"])
        self.assertEqual(run(TOOL, "sorted.pse", "-b", "--target", "cpp", cwd=self.out).returncode, 0)

    def test_an_encoder_alone_compiles(self):
        alone = self.out / "TernGradEncode.pse"
        alone.write_bytes(pathlib.Path(ROOT, SEED).read_bytes())
        done = run(TOOL, "TernGradEncode.pse", "-b", "--target", "cpp", cwd=self.out)
        self.assertEqual(done.returncode, 0, done.stderr)
        self.compiles(CXX, "-std=c++20", f"-I{ROOT}", "-c", str(self.out / "TernGradEncode.cpp"),
                      "-o", str(self.out / "x.o"))

    def test_an_error_is_exit_2_with_place_and_caret_and_no_file(self):
        (self.out / "x.pse").write_text("void XEncode(float* g, uint8* c) {\n  float x = y;\n}\n",
                                        encoding="utf-8")
        done = run(TOOL, "x.pse", "-b", cwd=self.out)
        self.assertEqual(done.returncode, 2)
        self.assertEqual(done.stdout, "")
        self.assertEqual(done.stderr, "x.pse:2:13: there is nothing called 'y' here\n"
                                      "  float x = y;\n"
                                      "            ^\n")
        self.assertEqual(self.files(), ["x.pse"])

    def wrapped(self, *options, program="kernels/algorithms/TbqEncode.pse"):
        done = run(TOOL, f"{ROOT}/{program}", *options, "-o", str(self.out))
        self.assertEqual(done.returncode, 0, done.stderr)
        return [pathlib.Path(line).name for line in done.stdout.splitlines()]

    def test_wrapper_and_registration_make_one_file_or_two(self):
        for framework in ("pytorch", "tensorflow", "mxnet"):
            whole = f"TbqEncode_{framework}.cpp"
            self.assertEqual(self.wrapped("-w", "-r", "-f", framework), [whole])
            text = (self.out / whole).read_text(encoding="utf-8")
            self.assertIn("struct Program_", text)
            self.assertNotRegex(text, r"[$]")
            self.assertEqual(self.wrapped("-w", "-f", framework), [f"TbqEncode_{framework}.hpp"])
            self.assertEqual(self.wrapped("-r", "-f", framework), [whole])
            header = (self.out / f"TbqEncode_{framework}.hpp").read_text(encoding="utf-8")
            source = (self.out / whole).read_text(encoding="utf-8")
            self.assertIn(f'#include "TbqEncode_{framework}.hpp"', source)
            self.assertEqual(header.removeprefix("#pragma once\n") + source.split("\n\n", 1)[1], text)

    def test_a_body_beside_an_operator_is_cpp(self):
        self.assertEqual(self.wrapped("-b", "-w", "-r", "-f", "mxnet"), ["TbqEncode.cpp", "TbqEncode_mxnet.cpp"])

    def test_operators_that_cannot_be_are_exit_2_and_leave_no_file(self):
        program = ("void XEncode(float* g, uint8* c, float step = 1 in [0, 2]) {\n"
                   "  uint<1>* q = map(g, [&](float v) { return v > step ? 1 : 0; });\n  c = concat(q);\n}\n")
        decoder = ("void XDecode(uint8* c, float* g) { uint<1>* q; extract(c, q);\n"
                   "g = map(q, [](int s) { return s; }); }\n")
        (self.out / "step.pse").write_text(program + decoder, encoding="utf-8")
        for name in ("class", "new_state", "sum"):
            (self.out / f"{name}.pse").write_text((program + decoder).replace("step", name), encoding="utf-8")
        (self.out / "alone.pse").write_text(program, encoding="utf-8")
        tbq = f"{ROOT}/kernels/algorithms/TbqEncode.pse"
        for said, words in (
                ("-w and -r need a framework: give -f with one of pytorch, tensorflow, mxnet", (tbq, "-w")),
                ("-w and -r need a framework", (tbq, "-r")),
                ("-f names the framework", (tbq, "-f", "mxnet")),
                ("-f names the framework", (tbq, "-b", "-f", "mxnet")),
                ("jax", (tbq, "-w", "-r", "-f", "jax")),
                ("leave --target cuda out", (tbq, "-w", "-r", "-f", "mxnet", "--target", "cuda")),
                ("cannot have a parameter called 'step'; rename it", ("step.pse", "-b", "-w", "-r", "-f", "pytorch")),
                ("parameter called 'class'; rename it", ("class.pse", "-w", "-r", "-f", "pytorch")),
                ("parameter called 'new_state'; rename it", ("new_state.pse", "-w", "-r", "-f", "tensorflow")),
                ("parameter called 'sum'; rename it", ("sum.pse", "-w", "-r", "-f", "tensorflow")),
                ("an operator needs the decoder too", ("alone.pse", "-w", "-r", "-f", "pytorch"))):
            with self.subTest(said=said):
                done = run(TOOL, *words, cwd=self.out)
                self.assertEqual((done.returncode, done.stdout), (2, ""))
                self.assertIn(said, done.stderr)
                self.assertEqual(self.files(), ["alone.pse", "class.pse", "new_state.pse", "step.pse", "sum.pse"])

    def test_no_name_of_a_file_reaches_what_is_written(self):
        program = pathlib.Path(ROOT, SEED).read_text(encoding="utf-8")
        for name in ("a\nb", "a\x1b[31mb"):
            path = self.out / f"{name}.pse"
            path.write_text(program, encoding="utf-8")
            done = run(TOOL, path.name, "-b", "--target", "cpp", cwd=self.out)
            self.assertEqual((done.returncode, done.stdout), (2, ""))
            self.assertRegex(done.stderr, r"^[^\x00-\x1f]*control characters[^\x00-\x1f]*\n$")
            path.unlink()
        hostile = 'Tbq"; #error PWNED'
        for half in ("Encode", "Decode"):
            text = pathlib.Path(ROOT, f"kernels/algorithms/Tbq{half}.pse").read_text(encoding="utf-8")
            (self.out / f"{hostile}{half}.pse").write_text(text, encoding="utf-8")
        for words in (("-b", "--target", "cpp"), ("-b",), ("-w", "-f", "pytorch"), ("-w", "-r", "-f", "pytorch")):
            done = run(TOOL, f"{hostile}Encode.pse", *words, cwd=self.out)
            self.assertEqual(done.returncode, 0, done.stderr)
            self.assertNotIn("PWNED", (self.out / done.stdout.strip()).read_text(encoding="utf-8"))
        done = run(TOOL, f"{hostile}Encode.pse", "-r", "-f", "pytorch", cwd=self.out)
        self.assertEqual((done.returncode, done.stdout), (2, ""))
        self.assertIn("rename the program", done.stderr)

    def test_large_programs_are_refused_in_little_time(self):
        def text(statements):
            return ("void BigEncode(float* g, uint8* c) {\n  uint<1>* q = map(g, [](float v) {\n    float x = v;\n" +
                    statements + "    return x < 0 ? 1 : 0; });\n  c = concat(q);\n}\n")

        for said, statements in (
                ("more than 1000 operations per element", "".join(f"    x = x * 1.5 + {i};\n" for i in range(12000))),
                ("more than 1000 variables", "".join(f"    float x{i} = v + {i};\n" for i in range(12000)))):
            (self.out / "big.pse").write_text(text(statements), encoding="utf-8")
            done = subprocess.run((TOOL, "big.pse", "-b", "--target", "cpp"), cwd=self.out, capture_output=True,
                                  text=True, check=False, timeout=60)
            self.assertEqual(done.returncode, 2)
            self.assertIn(said, done.stderr)

    def test_files_that_cannot_be_read_or_written_are_exit_2(self):
        done = run(TOOL, "no.pse", cwd=self.out)
        self.assertEqual(done.returncode, 2)
        self.assertIn("no.pse", done.stderr)
        done = run(TOOL, f"{ROOT}/{SEED}", "-b", "-o", str(self.out / "none"))
        self.assertEqual(done.returncode, 2)
        decoder = self.out / "LoneDecode.pse"
        decoder.write_text("void LoneDecode(uint8* c, float* g) { uint<1>* q; extract(c, q);\n"
                           "g = map(q, [](int s) { return s; }); }\n", encoding="utf-8")
        done = run(TOOL, "LoneDecode.pse", "-b", cwd=self.out)
        self.assertEqual(done.returncode, 2)
        self.assertIn("encoder is missing", done.stderr)


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1], verbosity=2)
