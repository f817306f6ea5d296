"""Tests of scripts/kernel_gate.py: kernel_gate_test.py [-v] [CLASS...]. `Planted` lets nvcc compile kernels with faults."""

import pathlib
import subprocess
import sys
import tempfile
import unittest

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "scripts"))

import kernel_gate  # noqa: E402
from gate import cubins, rows, sass  # noqa: E402

#: Code of a kernel, as nvdisasm prints it. Each thread first reads 4 bytes. Each of 4 rounds of a loop reads 8 bytes, and 4 more
#: under P1 or 2 more otherwise, and writes 4. At the end, 2 bytes are written; a path that adds in double reads 16 more.
SASS = """
	.section	.text._Z5countPf,"ax",@progbits
_Z5countPf:
.text._Z5countPf:
        /*0000*/                   UMOV UR4, URZ ;
        /*0010*/                   LDG.E R2, desc[UR6][R4.64] ;
        /*0020*/                   BAR.SYNC.DEFER_BLOCKING 0x0 ;
.L_x_1:
        /*0030*/                   ISETP.GE.U32.AND P1, PT, R9, R18, PT ;
        /*0040*/                   LDG.E.64 R2, desc[UR6][R4.64] ;
        /*0050*/               @P1 LDG.E R3, desc[UR6][R4.64+0x80] ;
        /*0060*/              @!P1 LDG.E.U16 R3, desc[UR6][R4.64+0x80] ;
        /*0070*/                   UIADD3 UR4, UPT, UPT, UR4, 0x8, URZ ;
        /*0080*/                   UISETP.NE.AND UP0, UPT, UR4, 0x20, UPT ;
        /*0090*/                   STG.E desc[UR6][R4.64], R3 ;
        /*00a0*/                   BRA.U UP0, `(.L_x_1) ;
        /*00b0*/               @P0 BRA `(.L_x_2) ;
        /*00c0*/                   LDG.E.128 R4, desc[UR6][R4.64] ;
        /*00d0*/                   DADD R4, R4, R6 ;
.L_x_2:
        /*00e0*/              @!P0 CALL.REL.NOINC `(.L_x_3) ;
        /*00f0*/                   EXIT ;
.L_x_3:
        /*0100*/                   STG.E.U16 desc[UR6][R4.64], R3 ;
        /*0110*/                   EXIT ;
.L_x_4:
        /*0120*/                   BRA `(.L_x_4);
"""

#: A kernel without faults (wide), and two with faults: scalar accesses, and spills.
PLANTED = """
__global__ void wide(const float4* from, float4* to) {
  const unsigned i = blockIdx.x * blockDim.x + threadIdx.x;
  to[i] = from[i];
}
__global__ void scalar(const float* from, float* to) {
  const unsigned i = blockIdx.x * blockDim.x + threadIdx.x;
#pragma unroll
  for (unsigned j = 0; j < 4; ++j) to[i + j * 4096] = from[i + j * 4096];
}
__global__ void __launch_bounds__(256, 8) spills(const float* from, float* to) {
  float kept[64];
#pragma unroll
  for (int i = 0; i < 64; ++i) kept[i] = from[threadIdx.x + 256 * i];
  __syncthreads();
#pragma unroll
  for (int i = 0; i < 64; ++i) to[threadIdx.x + 256 * i] = kept[i] * kept[63 - i];
}
"""


class Counts(unittest.TestCase):
    def setUp(self):
        self.kernel, = sass.kernels(SASS)

    def test_bytes_are_those_of_the_path_that_moves_most(self):
        # Read: 4 + 4 · (8 + 4) + 16 = 68 bytes. Written: 4 · 4 + 2 = 18.
        self.assertEqual(self.kernel.moved(), sass.Moved(68, 18))

    def test_paths_may_be_left_out(self):
        self.assertEqual(self.kernel.moved(("DADD",)), sass.Moved(52, 18))
        self.assertIsNone(self.kernel.moved(("UMOV",)))

    def test_preparation_before_the_first_barrier_may_be_left_out(self):
        self.assertEqual(self.kernel.moved(("DADD",), prepares=True), sass.Moved(48, 18))

    def test_a_loop_whose_bounds_are_data_has_the_rounds_of_the_row(self):
        kernel, = sass.kernels(SASS.replace("UR4, 0x20,", "UR4, UR9,"))
        self.assertEqual([loop.trips for loop in kernel.loops if len(loop.blocks) == 1][:1], [None])
        # The loop reads 2 · 12 instead of 4 · 12 bytes, and writes 2 · 4 instead of 4 · 4.
        self.assertEqual(kernel.moved(("DADD",), rounds=2), sass.Moved(28, 10))

    def test_accesses_and_barriers_are_listed(self):
        self.assertEqual((self.kernel.widest(sass.LOADS), self.kernel.widest(sass.STORES)), (128, 32))
        self.assertEqual((self.kernel.barriers, self.kernel.count("LDL", "STL")), (1, 0))

    def test_names_are_plain(self):
        name = ("void hipress::kernels::encode_tiles<hipress::kernels::generated::Program_12ab, (hipress::kernels::ValueType)0>"
                "(hipress::kernels::generated::Program_12ab, hipress::kernels::Batch<hipress::kernels::EncodeSlice>, void const*)")
        self.assertEqual(cubins.plain(name, "tbq"), "encode_tiles<tbq, 0>")
        self.assertEqual(cubins.plain("hipress::kernels::(anonymous namespace)::merge_values(hipress::X)", ""), "merge_values")


def measured(**changes):
    return cubins.Measured(**{"kernel": "copy<0>", "generation": 90, "registers": 40, "local": 0, "spilled": 0, "accesses": 0,
                              "shared": 0, "barriers": 0, "load": 128, "store": 128, "moved": {"none encode": 8.0}, **changes})


class Faults(unittest.TestCase):
    ROW = rows.Row("copy", "x.cu", load=128, store=128)
    TRAFFIC = rows.Traffic("none", "encode", (rows.Pass("copy<0>", 4),))

    def faults(self, kernel=measured(), occupancy=50, row=ROW, traffic=TRAFFIC, estimate=8.0):
        return kernel_gate.faults([kernel], [occupancy], (row,), (traffic,), {"none encode": estimate})

    def test_what_is_as_its_row_says_passes(self):
        self.assertEqual(self.faults(), [])
        self.assertEqual(self.faults(estimate=8.39), [])  # 4.6 % less than the estimate
        self.assertEqual(self.faults(occupancy=25, row=rows.Row("copy", "x.cu", occupancy=25, why="registers")), [])

    def test_each_fault_is_named(self):
        beyond = rows.Traffic("none", "encode", self.TRAFFIC.passes, 4, "a residual")
        for said, given in (("spills 16 bytes", {"kernel": measured(spilled=16)}),
                            ("has 8 bytes of local memory per thread, its row allows 0", {"kernel": measured(local=8)}),
                            ("local memory", {"kernel": measured(accesses=1)}),
                            ("occupancy 37 % with 40 registers", {"occupancy": 37}),
                            ("the widest load has 32 bits, its row claims 128", {"kernel": measured(load=32)}),
                            ("the widest store has 64 bits, its row claims 128", {"kernel": measured(store=64)}),
                            ("8.000 bytes per element in the code, 8.500 in the estimate", {"estimate": 8.5}),
                            ("12.000 in the estimate with 4 for a residual", {"traffic": beyond}),
                            ("no reason", {"row": rows.Row("copy", "x.cu", occupancy=25)}),
                            ("no kernel copy<1>", {"traffic": rows.Traffic("none", "encode", (rows.Pass("copy<1>", 4),))}),
                            ("no row in", {"kernel": measured(kernel="new")}),
                            ("no such kernel", {"kernel": measured(kernel="new")})):
            with self.subTest(said=said):
                self.assertIn(said, "\n".join(self.faults(**given)))


class Table(unittest.TestCase):
    def test_every_kernel_of_the_sources_has_a_row(self):
        sources = [path for folder in ("kernels", "runtime") for path in (ROOT / folder).rglob("*.cu*")]
        declared = {(name, str(path.relative_to(ROOT))) for path in sources
                    for name in kernel_gate.re.findall(r"__global__ void (\w+)\(", path.read_text(encoding="utf-8"))}
        self.assertEqual(declared, {(row.name, row.file) for row in rows.ROWS})

    def test_the_page_has_the_rows_and_the_estimates(self):
        page = kernel_gate.parts_of(kernel_gate.PAGE.read_text(encoding="utf-8"))[1]
        self.assertEqual(kernel_gate.re.findall(r"^\| `(\w+)` \| `([\w/.]+)`", page, kernel_gate.re.MULTILINE),
                         [(row.name, row.file) for row in rows.ROWS])
        estimates = kernel_gate.estimates()
        self.assertEqual(kernel_gate.re.findall(r"^\| [a-z][^|]*\|[^|]*\|[\d., ]*\| ([\d.]+) \|", page, kernel_gate.re.MULTILINE),
                         [f"{estimates[f'{row.algorithm} {row.direction}']:.7g}" for row in rows.TRAFFIC])

    def test_every_estimate_is_counted_or_has_the_reason(self):
        algorithms = {key.split()[0] for key in kernel_gate.estimates()}
        self.assertEqual(algorithms - rows.UNCOUNTED.keys(), {row.algorithm for row in rows.TRAFFIC})


class Planted(unittest.TestCase):
    """Tests of kernels with faults. nvcc compiles them for one generation, and the gate for the others."""

    @classmethod
    def setUpClass(cls):
        try:
            for name in ("nvcc", "ptxas", "cuobjdump", "nvdisasm"):
                cubins.tool(name)
        except cubins.Skipped as reason:
            raise unittest.SkipTest(str(reason)) from None
        folder = tempfile.TemporaryDirectory()
        cls.addClassCleanup(folder.cleanup)
        cls.folder = pathlib.Path(folder.name)
        (cls.folder / "planted.cu").write_text(PLANTED, encoding="utf-8")
        subprocess.run([cubins.tool("nvcc"), "-c", "planted.cu", "-o", "planted.cu.o", "-gencode",
                        "arch=compute_80,code=[compute_80,sm_80]"], cwd=cls.folder, check=True)
        cls.traffic = tuple(rows.Traffic(name, "encode", (rows.Pass(name, 4),)) for name in ("wide", "scalar"))
        cls.kernels = cubins.all_measured([cls.folder / "planted.cu.o"], cls.folder, cls.traffic)
        cls.occupancies = cubins.occupancies([(kernel, 256) for kernel in cls.kernels], cls.folder)

    def faults(self, table, wide=8.0):
        return kernel_gate.faults(self.kernels, self.occupancies, table, self.traffic, {"wide encode": wide, "scalar encode": 8.0})

    def test_a_spill_a_scalar_load_and_a_wrong_estimate_are_found(self):
        wide, scalar = rows.Row("wide", "planted.cu", load=128, store=128), rows.Row("scalar", "planted.cu")
        allowed = rows.Row("spills", "planted.cu", local=1024, why="planted")
        made = {(kernel.name, kernel.generation): kernel for kernel in self.kernels}
        self.assertEqual(made.keys(), {(name, each) for name in ("wide", "scalar", "spills") for each in cubins.GENERATIONS})
        # For code that the gate compiled, ptxas reports spills. Code that the build compiled only shows its local memory.
        self.assertEqual([fault.partition(":")[0] for fault in self.faults((wide, scalar, allowed))],
                         ["spills for sm_90", "spills for sm_100"])
        for generation in cubins.GENERATIONS:
            self.assertGreater(made["spills", generation].accesses, 0)
            forbidden = self.faults((wide, scalar, rows.Row("spills", "planted.cu")))
            self.assertIn(f"spills for sm_{generation}: has", "\n".join(forbidden))
            self.assertIn(f"scalar for sm_{generation}: the widest load has 32 bits, its row claims 128",
                          self.faults((wide, rows.Row("scalar", "planted.cu", load=128), allowed)))
            self.assertIn(f"wide encode for sm_{generation}: 8.000 bytes per element in the code, 12.000 in the estimate",
                          self.faults((wide, scalar, allowed), wide=12.0))

    def test_occupancy_is_what_registers_and_the_bounds_leave(self):
        # With 32 registers, 65536 / 32 = 2048 threads fit, which are all.
        self.assertEqual({occupancy for kernel, occupancy in zip(self.kernels, self.occupancies) if kernel.name == "spills"}, {100})


if __name__ == "__main__":
    unittest.main()
