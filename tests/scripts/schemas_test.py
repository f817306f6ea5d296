"""Tests that files of every released schema can still be read: schemas_test.py FOLDER_OF_TOOLS [-v]

Rows of ROWS are never removed. A new version of a schema is a new file and a new row."""

import pathlib
import re
import subprocess
import sys
import tempfile
import unittest

ROOT = pathlib.Path(__file__).resolve().parents[2]
FOLDER = ROOT / "tests/data/schemas"
JOB = "--input {model.yaml} --topology ring --nnodes 4"
#: Schema, file, and the command that reads the file. {name} is a file of the folder, {} a file to write.
ROWS = (
    ("hipress.model/1", "model.yaml", f"hipress-sim {JOB} --plan all"),
    ("hipress.plan/1", "plan.yaml", "hipress-sim --input {model.yaml} --plan {plan.yaml} --profile {profile.yaml}"),
    ("hipress.profile/1", "profile.yaml", f"hipress-sim {JOB} --plan all --profile {{profile.yaml}} --algorithm int8block"),
    ("hipress.cluster/1", "cluster.yaml", "hipress-sim --input {model.yaml} --topology ring --plan all --cluster {cluster.yaml}"),
    ("hipress.cluster/1", "fabric.yaml", "hipress-sim --input {model.yaml} --topology ring --plan none --cluster {fabric.yaml}"),
    ("hipress.machine/1", "machine.yaml", "hipress-sim --input {model.yaml} --plan none --machine {machine.yaml} --hosts 2"),
    ("hipress.sweep/1", "sweep.yaml", "hipress-sim sweep {sweep.yaml} --output {}"),
    ("1", "pilot.yaml", "hipress-plan --input vgg19 --nnodes 4 --profile a100-10g --pilot {pilot.yaml} --evaluations 1 --output {}"),
)
#: Schemas of caches. Caches of other versions are made anew.
CACHES = {"hipress.cache/1", "hipress.sweep_cache/1"}


class SchemasTest(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = pathlib.Path(folder.name)

    def run_row(self, command: str, replaced: dict[str, pathlib.Path]) -> subprocess.CompletedProcess:
        def path(match: re.Match) -> str:
            return str(replaced.get(match[1], FOLDER / match[1]) if match[1] else self.folder / "out.yaml")

        tool, *arguments = [re.sub(r"\{([^}]*)\}", path, word) for word in command.split()]
        return subprocess.run([TOOLS / tool, *arguments], cwd=ROOT, capture_output=True, text=True, check=False)

    def test_every_file_is_read(self):
        for schema, name, command in ROWS:
            with self.subTest(name):
                self.assertEqual((FOLDER / name).read_text().splitlines()[0], f"schema: {schema}")
                self.assertIn(f"{{{name}}}", command)
                done = self.run_row(command, {})
                self.assertEqual(done.returncode, 0, done.stderr)

    def test_another_version_is_refused_with_the_version_that_is_read(self):
        for schema, name, command in ROWS:
            with self.subTest(name):
                other = self.folder / name
                other.write_text((FOLDER / name).read_text().replace(schema, schema[:-1] + "99", 1))
                done = self.run_row(command, {name: other})
                self.assertEqual(done.returncode, 2, done.stdout)
                self.assertRegex(done.stderr, rf"{re.escape(name)}:1: schema:? must be .*{schema}.*, got")

    def test_every_schema_of_the_sources_has_a_row_and_every_file_one(self):
        named = set(CACHES)
        for folder in ("costs", "kernels", "models", "plans", "python", "requests", "sweep", "traces"):
            for source in (ROOT / folder).rglob("*.[chp]*"):
                named |= set(re.findall(r'"(hipress\.[a-z_]+/\d+)', source.read_text(errors="ignore")))
        self.assertEqual(named - CACHES, {schema for schema, _, _ in ROWS if "/" in schema})
        self.assertEqual({path.name for path in FOLDER.iterdir()}, {name for _, name, _ in ROWS})


if __name__ == "__main__":
    TOOLS = pathlib.Path(sys.argv.pop(1))
    unittest.main()
