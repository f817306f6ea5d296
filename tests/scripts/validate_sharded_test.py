"""Tests of the experiment sharded: the Python alone, on tools, ip, tc and a python3 with torch that answer what the test says.
No rights needed.

Usage: validate_sharded_test.py
"""

import unittest

from fake_tools import NOTING_TOOL, FakeToolsTest, NeedsTorch
from validation.experiments import sharded  # found through the path that fake_tools adds

CAPTURED = """name: text
forward: 2000.0us  # 1900.0us to 2100.0us
optimizer: 1000.0us
gradients:  # in backward order
- {name: head.weight, elements: 1000, ready: 1000.0us, shape: [1000]}
- {name: blocks.0.norm1.weight, elements: 100, ready: 2000.0us, shape: [100]}
- {name: blocks.0.wide.weight, elements: 900000, ready: 5000.0us, shape: [900, 1000]}
- {name: characters.weight, elements: 1000, ready: 6000.0us, shape: [1000]}
"""

KERNELS = """schema: hipress.profile/1
kernels:
  codecs:
    int4block:
      encode:
        pieces:
          - {from: 0, a_s: 1e-6, s_per_element: 1e-9}
      decode:
        pieces:
          - {from: 0, a_s: 1e-6, s_per_element: 2e-9}
      decode_add:
        pieces:
          - {from: 0, a_s: 1e-6, s_per_element: 3e-9}
    int8block:
      encode:
        pieces:
          - {from: 0, a_s: 1e-6, s_per_element: 1e-9}
          - {from: 9000, a_s: 1e-6, s_per_element: 4e-9}
      decode:
        pieces:
          - {from: 0, a_s: 1e-6, s_per_element: 2e-9}
      decode_add:
        pieces:
          - {from: 0, a_s: 1e-6, s_per_element: 3e-9}
"""

TOOL = NOTING_TOOL.replace('"schema: hipress.profile/1\\n"', "KERNELS") + """
if tool == "hipress-sim":
    print(json.dumps({{"iteration_s": 0.3}}))
"""

#: Plain steps take 0.6 s, planned ones 0.2 s; a collective a second for each MiB and 10 ms.
PYTHON = """#!{python}
import json, os, pathlib, sys
words = sys.argv[1:]
if "-c" in words:
    if "print" not in words[-1]:
        sys.exit("NO_TORCH" in os.environ)
    print(json.dumps([("head.weight", 1000)]))
elif "hipress.capture" in words:
    pathlib.Path(words[words.index("--output") + 1]).write_text(CAPTURED)
elif os.environ["RANK"] == "0":
    if "--sizes" in words:
        sizes = [int(size) for size in words[words.index("--sizes") + 1].split(",")]
        print(json.dumps({{name: [[size, 0.01 + size / 2**20] for size in sizes]
                           for name in ("all_gather", "reduce_scatter", "all_to_all", "all_reduce")}}))
    else:
        planned = "--plan" in words
        print(json.dumps({{"iterations_s": [0.2 if planned else 0.6] * 3, "losses": [2.02 if planned else 2.0] * 30}}))
"""


def braced(text: str) -> str:
    return repr(text).replace("{", "{{").replace("}", "}}")


class ShardedTest(NeedsTorch, FakeToolsTest):
    experiment = "sharded"
    common = ("--python", "{folder}/bin/python_with_torch", *FakeToolsTest.common)
    tools = {"hipress-sim": TOOL.replace("KERNELS", braced(KERNELS)), "hipress-profile": TOOL.replace("KERNELS", braced(KERNELS)),
             "python_with_torch": PYTHON.replace("CAPTURED", braced(CAPTURED))}

    def test_steps_are_laid_beside_two_predictions(self):
        _, found = self.run_for_json("--nnodes", "2", "--rates", "200")
        cells = {cell["plan"]: cell for cell in found["cells"]}
        self.assertEqual([cells[plan]["speed_up"] for plan in ("fsdp", "gather", "both")], [1, 0.6 / 0.2, 0.6 / 0.2])
        self.assertEqual(cells["gather"]["simulated_s"], 0.3)
        # 9 ms of computation, three collectives of 10 ms for each of three layers, and a second for each MiB of 902100 elements.
        self.assertAlmostEqual(cells["fsdp"]["summed_s"], 0.009 + 9 * 0.01 + 3 * 4 * 902100 / 2**20, places=6)
        # int8block has (1 + 4/256)/4 of the bytes; two shards are encoded for 4/2 and decoded for 2 ns an element.
        self.assertAlmostEqual(cells["gather"]["summed_s"], 0.009 + 9 * 0.01 + (1 + 2 * (1 + 4 / 256) / 4) * 4 * 902100 / 2**20 +
                               2 * (4e-9 / 2 + 2e-9) * 902100, places=6)
        simulated = [call for call in self.calls() if call.startswith("hipress-sim")]
        self.assertIn("--plan none --schedule fsdp(in_flight=1, prefetch=none)", simulated[0])
        profile = self.folder / "out/profile_gloo_200_2.yaml"
        self.assertIn(f"--profile {profile}", simulated[0])
        profiled = [call for call in self.calls() if call.startswith("hipress-profile") and str(profile) in call]
        self.assertEqual(len(profiled), 2)  # each rank once, for all plans
        self.assertIn(f"--transport gloo --insecure --base {self.folder / 'out/kernels.yaml'}", profiled[0])

    def test_layers_are_those_that_are_sharded(self):
        embeddings, block, head = sharded.layers_of(CAPTURED)
        self.assertEqual([(one.name, one.elements) for one in (embeddings, block, head)],
                         [("embeddings", 1000), ("block0", 900100), ("head", 1000)])
        self.assertAlmostEqual(block.backward_s, 0.004)
        self.assertAlmostEqual(block.forward_s, 0.003 * 4 / 6)  # of 3 ms, the optimizer's with them

    def test_losses_are_compared(self):
        status, said = self.run_it("--losses", "30")
        self.assertEqual(status, 0, said + self.complained)
        self.assertIn("30 steps, both: loss 2.0200, +1.00 %\n", said)

    def test_without_pytorch_2_it_is_skipped(self):
        status, said = self.run_it(NO_TORCH="1")
        self.assertEqual(status, 0)
        self.assertIn("skipped: no python3 has PyTorch 2", said)


if __name__ == "__main__":
    unittest.main()
