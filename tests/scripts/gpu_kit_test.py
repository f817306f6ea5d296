"""Tests of the requests that scripts/gpu_kit.sh refuses before it builds anything."""

import pathlib
import subprocess
import tempfile
import unittest

GPU_KIT = pathlib.Path(__file__).resolve().parents[2] / "scripts/gpu_kit.sh"


class GpuKit(unittest.TestCase):
    def test_wrong_requests_are_refused(self):
        with tempfile.TemporaryDirectory() as folder:
            for options, said in ((["--arch", "hopper"], "'hopper' is no generation of GPUs; give 80"), (["--fast"], "--fast"),
                                  (["--output"], "needs a value"), (["--output", folder], "cannot be written"),
                                  (["--output", f"{folder}/none/kit.tar.zst"], "cannot be written")):
                with self.subTest(options=options):
                    done = subprocess.run([GPU_KIT, *options], capture_output=True, text=True, check=False)
                    self.assertEqual(done.returncode, 2)
                    self.assertIn(said, done.stderr)


if __name__ == "__main__":
    unittest.main()
