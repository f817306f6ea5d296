"""One case of the experiment ddp as users run it: real namespaces, real tools, PyTorch. Prints "skipped: ..." where they
are not there. Timing decides nothing here: a machine under test may be busy.

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
        # Half of ResNet50's 25.6 million fp32 gradients: the classifier's are more than 1 MiB, then 25 MiB at least, and
        # the rest.
        assert [size >= least for size, least in zip(case["bucket_bytes"], (1 << 20, 25 << 20, 0))] == [True] * 3, case
        assert len(case["bucket_bytes"]) == 3 and sum(case["bucket_bytes"]) > 50e6, case
        # Each rank sends them once, 51 MB at 25 MB/s, whatever the machine does besides.
        assert case["measured_s"] > 2, case
    return 0


if __name__ == "__main__":
    sys.exit(main())
