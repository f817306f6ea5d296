"""Runs two cases of the experiment networks as users do, with real namespaces and tools. Prints "skipped: ..." if namespaces are
not allowed. Times are not checked closely, because the machine may be busy.

Usage: validate_long_test.py FOLDER_OF_TOOLS
"""

import json
import pathlib
import subprocess
import sys
import tempfile

ROOT = pathlib.Path(__file__).resolve().parents[2]


def namespaces() -> list[str]:
    """Namespaces of validations."""
    listed = subprocess.run(["ip", "netns", "list"], capture_output=True, text=True, check=True).stdout
    return [line.split()[0] for line in listed.splitlines() if line.startswith("hipress-")]


def main() -> int:
    with tempfile.TemporaryDirectory(prefix="hipress_validate_test_") as name:
        folder = pathlib.Path(name)
        done = subprocess.run([sys.executable, "-B", str(ROOT / "scripts/validate.py"), "networks", "--tools", sys.argv[1],
                               "--only", "model=resnet50,nnodes=2,rate=200,topology=ps,algorithm=none|onebit",
                               "--rounds", "1", "--again", "0", "--output", str(folder), "--json", str(folder / "json")],
                              capture_output=True, text=True, check=False)
        print(done.stdout, done.stderr, sep="\n")
        if "skipped: " in done.stdout:
            return 0
        assert done.returncode == 0, done.returncode
        cases = json.loads((folder / "json").read_text())["cases"]
        assert [case["algorithm"] for case in cases] == ["none", "onebit"], cases
        assert all(case["verified"] for case in cases), cases
        assert all(case["measured_s"] > case["compute_s"] and case["predicted_s"] > case["compute_s"]
                   for case in cases), cases
        assert all(case["predicted_s_p10"] < case["predicted_s"] < case["predicted_s_p90"] for case in cases), cases
        # 16 MB in one direction take 0.64 s at 25 MB/s, even on a busy machine.
        assert cases[0]["measured_s"] > 0.6, cases
        kinds = {event.get("cat") for event in json.loads((folder / "trace.json").read_text())["traceEvents"]}
        assert {"Encode", "Send", "Decode"} <= kinds, kinds
        assert namespaces() == [], namespaces()
    return 0


if __name__ == "__main__":
    sys.exit(main())
