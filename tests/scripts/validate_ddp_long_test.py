"""Runs one case of the experiment ddp as users do, with real namespaces, real tools and PyTorch. Prints "skipped: ..." if one of
these is missing. Times are not checked closely, because the machine may be busy.

Usage: validate_ddp_long_test.py FOLDER_OF_TOOLS
"""

import json
import pathlib
import subprocess
import sys
import tempfile

ROOT = pathlib.Path(__file__).resolve().parents[2]


def main() -> int:
    with tempfile.TemporaryDirectory(prefix="hipress_validate_test_") as name:
        folder = pathlib.Path(name)
        done = subprocess.run([sys.executable, "-B", str(ROOT / "scripts/validate.py"), "ddp", "--tools", sys.argv[1],
                               "--models", "resnet50", "--nnodes", "2", "--iterations", "3", "--again", "0",
                               "--output", str(folder), "--json", str(folder / "json")],
                              capture_output=True, text=True, check=False)
        print(done.stdout, done.stderr, sep="\n")
        if "skipped: " in done.stdout:
            return 0
        assert done.returncode == 0, done.returncode
        case, = json.loads((folder / "json").read_text())["cases"]
        assert case["verified"], case
        # The model has half of ResNet50's 25.6 million fp32 gradients. The first bucket holds the classifier's, more than 1 MiB;
        # the second has at least 25 MiB, and the third the rest.
        assert [size >= least for size, least in zip(case["bucket_bytes"], (1 << 20, 25 << 20, 0))] == [True] * 3, case
        assert len(case["bucket_bytes"]) == 3 and sum(case["bucket_bytes"]) > 50e6, case
        # Each rank sends all of them once: 51 MB at 25 MB/s take more than 2 s, even on a busy machine.
        assert case["measured_s"] > 2, case
    return 0


if __name__ == "__main__":
    sys.exit(main())
