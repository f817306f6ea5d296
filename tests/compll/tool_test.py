#!/usr/bin/env python3
"""hipress-compll as a process: bodies for both targets compile alone, and errors leave nothing behind.

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

    def compiles(self, *words):
        done = run(*words)
        self.assertEqual(done.returncode, 0, done.stderr)

    def test_the_published_program_compiles_alone_as_cpp(self):
        body = self.body(SEED, "cpp")
        self.assertEqual(body.name, "TernGradEncode.cpp")
        self.compiles(CXX, "-std=c++20", f"-I{ROOT}", "-c", str(body), "-o", f"{body}.o")

    def test_a_decoder_brings_its_encoder(self):
        body = self.body("kernels/algorithms/TbqDecode.pse", "cpp")
        self.assertEqual(body.name, "TbqDecode.cpp")
        self.assertIn("struct Tbq", body.read_text(encoding="utf-8"))

    @unittest.skipUnless(NVCC, "no nvcc on this machine")
    def test_it_compiles_alone_as_cuda(self):
        body = self.body(SEED, "cuda")
        self.assertEqual(body.name, "TernGradEncode.cu")
        for architecture in ("sm_75", "sm_90"):
            self.compiles(NVCC, "-std=c++20", f"-arch={architecture}", f"-I{ROOT}", "-c", str(body),
                          "-o", f"{body}.o")

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
