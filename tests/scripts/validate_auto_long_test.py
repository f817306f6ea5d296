"""Tests hipress-exec --auto between network namespaces: the bandwidth that it measures on a link of known speed, and the plan that
it chooses. Prints "skipped: ..." where namespaces are not allowed.

Usage: validate_auto_long_test.py FOLDER_OF_TOOLS
"""

import json
import os
import pathlib
import subprocess
import sys
import tempfile

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "scripts"))

from validation.network import INTERFACE, Network, Unavailable  # noqa: E402

MBITS = 100
#: 16 MiB of fp32 gradients.
ELEMENTS = 1 << 22


def run(tools: pathlib.Path, network: Network, folder: pathlib.Path, job: str, *more: str) -> dict:
    """Starts a rank on each of two hosts. Returns what rank 0 says."""
    command = [str(tools / "hipress-exec"), "--auto", "--json", "--input", str(folder / "model.txt"), "--interface", INTERFACE,
               "--rendezvous", f"file://{folder}", "--job", job, "--timeout", "120", *more]
    ranks = [subprocess.Popen([*network.enter(rank), *command], text=True, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                              env={**os.environ, "RANK": str(rank), "WORLD_SIZE": "2", "LOCAL_RANK": "0",
                                   "HIPRESS_CACHE": str(folder / "cache")}) for rank in range(2)]
    try:
        said = [rank.communicate(timeout=400) for rank in ranks]
    finally:
        for rank in ranks:
            rank.kill()
    for rank, (out, err) in zip(ranks, said):
        print(out, err, sep="\n")
        assert rank.returncode == 0, rank.returncode
    return json.loads(said[0][0])


def main() -> int:
    tools = pathlib.Path(sys.argv[1])
    try:
        with Network(2) as network, tempfile.TemporaryDirectory(prefix="hipress_validate_test_") as name:
            folder = pathlib.Path(name)
            (folder / "model.txt").write_text(f"a,{ELEMENTS}\n")
            network.shape(MBITS)
            # The first job measures this machine's kernels, and keeps them; the second finds them.
            first, second = (run(tools, network, folder, job, "--iterations", "2") for job in ("first", "second"))
            assert len(list((folder / "cache").glob("profile-*.yaml"))) == 1
            # 256 bytes are nothing beside 50 ms of computation.
            (folder / "model.txt").write_text("a,64\n")
            bound = run(tools, network, folder, "bound", "--iterations", "2", "--compute-time", "50ms")
    except Unavailable as reason:
        print(f"skipped: {reason}")
        return 0
    for report in (first, second):
        auto = report["automatic"]
        assert report["verified"], report
        # TCP carries 1448 bytes in frames of 1538 at most: 94 % of the link's 12.5 MB/s. A busy machine may reach less.
        assert 0.7 * MBITS * 125e3 < auto["links"]["bandwidth_Bps"] < 1.2 * MBITS * 125e3, auto["links"]
        # Each rank sends 16 MiB an iteration uncompressed, which takes 1.34 s; int8block sends 8.1 of 32 bits.
        assert auto["plan"] == "int8block for 1 of 1 gradients", auto["plan"]
        assert auto["measured_uncompressed_s"] > 1.3, auto
        assert auto["takes_plan"] and auto["chosen"] == auto["plan"], auto
        assert 2 < auto["measured_speedup"] < 32 / 8.1 * 1.1, auto
        assert abs(auto["predicted_speedup"] / auto["measured_speedup"] - 1) < 0.3, auto
    auto = bound["automatic"]
    assert not auto["takes_plan"] and auto["chosen"] == auto["uncompressed"], auto
    return 0


if __name__ == "__main__":
    sys.exit(main())
