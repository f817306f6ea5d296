"""The starter profiles that are shipped are what the script writes."""

import pathlib
import subprocess
import sys
import tempfile
import unittest

ROOT = pathlib.Path(__file__).resolve().parents[2]
PROFILES = ROOT / "profiler/profiles"
SCRIPT = ROOT / "scripts/make_starter_profiles.py"


class StarterProfilesTest(unittest.TestCase):
    def test_the_script_reproduces_the_shipped_files_byte_for_byte(self):
        with tempfile.TemporaryDirectory() as folder:
            subprocess.run([sys.executable, "-B", SCRIPT, "--output", folder], check=True)
            written = {path.name: path.read_bytes() for path in pathlib.Path(folder).iterdir()}
        shipped = {path.name: path.read_bytes() for path in PROFILES.glob("[!v]*-*g.yaml")}
        self.assertEqual(len(shipped), 4 * 5)  # GPUs, rates
        self.assertEqual(written, shipped)

    def test_every_rate_and_gpu_names_its_sources(self):
        for path in PROFILES.glob("[!v]*-*g.yaml"):
            with self.subTest(profile=path.name):
                text = path.read_text()
                self.assertIn("\nsource: estimated", text)
                self.assertIn("nccl-tests", text)
                self.assertIn("hipress-profile measures", text)


if __name__ == "__main__":
    unittest.main()
