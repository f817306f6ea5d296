"""Tests of cmake/git_hash.cmake, which tells a tool the commit from which it was built: git_hash_test.py CMAKE [-v]"""

import os
import pathlib
import shutil
import subprocess
import sys
import tempfile
import unittest

CMAKE = sys.argv.pop(1)
GIT = shutil.which("git")
SCRIPT = pathlib.Path(__file__).resolve().parents[2] / "cmake/git_hash.cmake"


class GitHashTest(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.source = pathlib.Path(folder.name)
        self.header = self.source / "generated" / "git_hash.hpp"
        self.module = self.source / "generated" / "_built.py"

    def git(self, *arguments: str) -> str:
        """Runs git without the user's configuration and without a repository around the temporary folder."""
        environment = {"PATH": os.environ["PATH"], "HOME": str(self.source), "GIT_CONFIG_NOSYSTEM": "1"}
        return subprocess.run([GIT, "-c", "user.name=a", "-c", "user.email=a@b", *arguments], cwd=self.source,
                              env=environment, check=True, capture_output=True, text=True).stdout.strip()

    def hash(self, git: str | None = GIT) -> str:
        """Runs the script. Returns the commit in the header."""
        subprocess.run([CMAKE, f"-DGIT={git or ''}", f"-DSOURCE={self.source}", f"-DHEADER={self.header}",
                        f"-DMODULE={self.module}", "-DVERSION=1.2.3", "-P", SCRIPT],
                       env={**os.environ, "GIT_CEILING_DIRECTORIES": str(self.source.parent)}, check=True)
        built: dict[str, str] = {}
        exec(self.module.read_text(), built)
        self.assertEqual(self.header.read_text(), f'#define HIPRESS_GIT_HASH "{built["COMMIT"]}"\n')
        self.assertEqual(built["VERSION"], "1.2.3")
        return self.header.read_text().removeprefix('#define HIPRESS_GIT_HASH "').removesuffix('"\n')

    @unittest.skipIf(GIT is None, "git is not installed")
    def test_the_header_follows_commits_and_is_left_alone_between_them(self):
        self.assertEqual(self.hash(), "unknown")
        self.git("init", "--quiet")
        for message in ("first", "second"):
            self.git("commit", "--quiet", "--allow-empty", "--message", message)
            self.assertEqual(self.hash(), self.git("rev-parse", "--short=10", "HEAD"))
            os.utime(self.header, (1, 1))
            self.hash()
            self.assertEqual(self.header.stat().st_mtime, 1)

    def test_without_git_the_commit_is_unknown(self):
        self.assertEqual(self.hash(git=None), "unknown")

    def test_an_archive_knows_the_commit_that_it_was_made_of(self):
        archival = self.source / ".git_archival"
        for line, commit in (("$Format:%H$", "unknown"), ("0123456789abcdef", "0123456789")):
            archival.write_text(line + "\n")
            self.assertEqual(self.hash(git=None), commit)


if __name__ == "__main__":
    unittest.main()
