"""The models that are shipped are what the script writes, with the shapes of their architectures."""

import pathlib
import subprocess
import sys
import tempfile
import unittest

ROOT = pathlib.Path(__file__).resolve().parents[2]
SCRIPTS = ROOT / "scripts"
sys.path.insert(0, str(SCRIPTS))

import model_shapes  # noqa: E402


class ModelsTest(unittest.TestCase):
    def test_the_script_reproduces_the_shipped_files_byte_for_byte(self):
        with tempfile.TemporaryDirectory() as folder:
            subprocess.run([sys.executable, "-B", SCRIPTS / "make_models.py", "--output", folder], check=True)
            written = {path.name: path.read_bytes() for path in pathlib.Path(folder).iterdir()}
        shipped = {path.name: path.read_bytes() for path in (ROOT / "models").glob("*.yaml")}
        self.assertEqual(written, shipped)

    def test_every_shipped_model_has_an_architecture(self):
        self.assertEqual(sorted(model_shapes.ARCHITECTURES), sorted(path.stem for path in (ROOT / "models").glob("*.yaml")))

    def test_an_architecture_that_is_not_the_models_is_refused_by_the_gradient(self):
        sizes = {"encoder.weight": 33278 * 1500, "decoder.bias": 33278}
        for number in range(2):
            for part in ("ih", "hh"):
                sizes[f"rnns.{number}.weight_{part}_l0"] = 4 * 1500 * 1500
                sizes[f"rnns.{number}.bias_{part}_l0"] = 4 * 1500
        self.assertEqual(model_shapes.shapes_of("lstm", sizes)["rnns.1.weight_ih_l0"], (6000, 1500))
        for change, message in ((("decoder.bias", 33277), "lstm: decoder.bias has 33277 elements, its shape .33278. 33278"),
                                (("decoder.weight", 5), "lstm: decoder.weight is in the list of gradients alone")):
            with self.assertRaisesRegex(model_shapes.Mismatch, message):
                model_shapes.shapes_of("lstm", sizes | dict([change]))
        del sizes["decoder.bias"]
        with self.assertRaisesRegex(model_shapes.Mismatch, "lstm: decoder.bias is in the architecture alone"):
            model_shapes.shapes_of("lstm", sizes)

    def test_a_model_without_architecture_has_no_shapes(self):
        self.assertEqual(model_shapes.shapes_of("alexnet", {"a": 1}), {})


if __name__ == "__main__":
    unittest.main()
