"""Tests of the table of public complaints in docs/arithmetic.md: each command gives the table's answer within a second.

    complaints_test.py FOLDER_OF_TOOLS [-v]
"""

import json
import pathlib
import re
import resource
import shlex
import subprocess
import sys
import unittest

ROOT = pathlib.Path(__file__).resolve().parents[2]
TOOLS = pathlib.Path(sys.argv.pop(1)).resolve()
#: Limit of a command's processor time, which other processes on the machine hardly lengthen.
MOST_S = 1.0


def complaints() -> list:
    """Rows of the table: complaint, measured throughput, command, its answer."""
    text = (ROOT / "docs/arithmetic.md").read_text(encoding="utf-8")
    section = text[text.index("## Public complaints"):]
    rows = [[cell.strip() for cell in line.strip("|").split("|")] for line in section.splitlines() if line.startswith("|")]
    return rows[2:]


class ComplaintsTest(unittest.TestCase):
    def test_there_are_eight(self):
        self.assertEqual(len(complaints()), 8)

    def test_each_command_says_what_the_table_does(self):
        for complaint, measured, command, says in complaints():
            with self.subTest(complaint):
                program, *arguments = shlex.split(command.strip("`"))
                self.assertEqual(program, "hipress-plan")
                before = resource.getrusage(resource.RUSAGE_CHILDREN)
                done = subprocess.run([TOOLS / program, *arguments, "--json"], capture_output=True, text=True, check=False)
                after = resource.getrusage(resource.RUSAGE_CHILDREN)
                self.assertEqual(done.returncode, 0, done.stderr)
                self.assertLess(after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime, MOST_S)
                answer = json.loads(done.stdout)
                first, last = answer["hosts"][0], answer["hosts"][-1]
                factor = last["units_per_s"] / first["units_per_s"]
                pays = all(row["added"] >= 0.5 for row in answer["hosts"])
                told = f"{factor:.2f} times, bound by {last['bound_by']}: {'pays' if pays else 'does not pay'}"
                if pays:
                    told += f", {last['units_per_s'] / last['gpus'] / 1e3:.1f}k {answer['unit']}/s a GPU"
                self.assertEqual(told, says)
                self.assertIn("more hosts pay" if pays else "do not pay", answer["sentence"])
                # If more hosts did not help in the thread, the verdict is that they do not pay.
                if found := re.match(r"([\d.]+) times", measured):
                    self.assertEqual((float(found[1]) < 1.5, pays), (True, False))



if __name__ == "__main__":
    unittest.main()
