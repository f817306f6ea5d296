"""Tests of scripts/whole_file.py, and of the scripts that write results with it: whole_file_test.py [-v]"""

import os
import pathlib
import stat
import subprocess
import sys
import tempfile
import threading
import unittest
from unittest import mock

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2] / "scripts"))
import demo  # noqa: E402  (found through the path above)
import reproduce_sosp21  # noqa: E402
from hipress import _output, _results, _style  # noqa: E402  (through the path that whole_file adds)
from whole_file import Unwritable, make_folder, replacing, require_writable, write_json  # noqa: E402

try:
    import matplotlib.figure
    import sosp21.plot
except ImportError:
    matplotlib = None


def half(path: pathlib.Path, *_, **__) -> None:
    """Stands in for a writer: Ctrl-C comes when half of the text is written."""
    path.write_bytes(b"half")
    raise KeyboardInterrupt


def half_picture(_, path: pathlib.Path, **__) -> None:
    half(path)


#: Functions of the scripts and of the package that write one file.
WRITERS = (lambda path: write_json(path, {}), require_writable, _results.Plan({"page": "page"}).save_html,
           _results.Sweep({"columns": ["a"], "rows": [[1]], "axes": [], "provenance": []}).save)


class WholeFileTest(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = pathlib.Path(folder.name)

    def require_old(self, name: str, patch, write) -> None:
        """Requires that `write`, which the patch interrupts, leaves the old file unchanged and no other file."""
        file = self.folder / name
        file.write_text("old")
        with patch, self.assertRaises(KeyboardInterrupt):
            write(file)
        self.assertEqual(file.read_text(), "old")
        self.assertEqual(list(self.folder.iterdir()), [file])
        file.unlink()

    def test_what_is_written_takes_the_place_of_the_file(self):
        picture = self.folder / "p.png"
        for content in ("first", "second"):
            with replacing(picture) as temporary:
                self.assertEqual(temporary.parent.resolve(), picture.resolve().parent)
                temporary.write_text(content)
            self.assertEqual(picture.read_text(), content)
            self.assertEqual(list(self.folder.iterdir()), [picture])

    def test_the_mode_of_the_file_stays_and_nobody_can_foresee_the_temporary_name(self):
        file, victim = self.folder / "a.json", self.folder / "victim"
        victim.write_text("precious")
        (self.folder / f".{os.getpid()}.a.json").symlink_to(victim)
        umask = os.umask(0o027)
        self.addCleanup(os.umask, umask)
        for mode in (0o640, 0o600, 0o664):
            if file.exists():
                file.chmod(mode)
            with replacing(file) as temporary:
                temporary.write_text("new")
            self.assertEqual(stat.S_IMODE(file.stat().st_mode), mode)
        self.assertEqual((victim.read_text(), file.is_symlink()), ("precious", False))

    def test_a_link_stays_and_its_target_is_replaced(self):
        link, target = self.folder / "link", self.folder / "target"
        target.write_text("old")
        link.symlink_to(target)
        with replacing(link) as temporary:
            temporary.write_text("new")
        self.assertTrue(link.is_symlink())
        self.assertEqual(target.read_text(), "new")

    def test_what_links_of_ones_own_lead_to_is_written(self):
        (self.folder / "real").mkdir()
        (self.folder / "folder").symlink_to("real")
        (self.folder / "real/link").symlink_to("../real/new")
        with replacing(self.folder / "folder/link") as temporary:
            temporary.write_text("new")
        self.assertEqual((self.folder / "real/new").read_text(), "new")
        (self.folder / "round").symlink_to("round")
        with self.assertRaisesRegex(OSError, "Too many levels of symbolic links"), replacing(self.folder / "round"):
            pass

    def test_a_device_is_written_to(self):
        with replacing("/dev/null") as temporary:
            temporary.write_text("gone")
        self.assertTrue(pathlib.Path("/dev/null").is_char_device())
        done = subprocess.run([sys.executable, "-c", "from whole_file import write_json; write_json('/dev/stdout', 7)"],
                              cwd=pathlib.Path(demo.__file__).parent, capture_output=True, text=True, check=True)
        self.assertEqual(done.stdout, "7\n")

    def test_a_pipe_is_written_to_and_gets_some_time_for_its_reader(self):
        pipe, read = self.folder / "pipe", []
        os.mkfifo(pipe)
        reader = threading.Thread(target=lambda: read.append(pipe.read_text()))
        reader.start()
        write_json(pipe, 7)
        reader.join()
        self.assertEqual((read, pipe.is_fifo()), (["7\n"], True))
        with mock.patch.object(_output, "PATIENCE_S", 0.1), \
                self.assertRaisesRegex(OSError, "no process reads this pipe; start its reader first"):
            write_json(pipe, 7)

    def test_a_file_that_may_not_be_written_is_refused(self):
        file = self.folder / "a.csv"
        file.write_text("old")
        file.chmod(0o400)
        with mock.patch.object(os, "access", lambda *_: False):  # without this, root could write the file
            for write in WRITERS:
                with self.subTest(write=write), \
                        self.assertRaisesRegex((OSError, Unwritable), "make the file writable, or choose another name"):
                    write(file)
        self.assertEqual((file.read_text(), list(self.folder.iterdir())), ("old", [file]))

    def test_the_mask_of_the_process_is_left_alone(self):
        with mock.patch.object(os, "umask", side_effect=AssertionError):
            for number, write in enumerate(WRITERS):
                write(self.folder / f"{number}.csv")

    @unittest.skipIf(os.geteuid() != 0, "only root can make links of another user")
    def test_links_and_files_of_other_users_in_a_shared_folder_are_refused(self):
        mine, shared = self.folder / "mine", self.folder / "shared"
        for folder in (mine, shared):
            folder.mkdir()
        victim = mine / "a.csv"
        victim.write_text("precious")
        shared.chmod(0o1777)
        (shared / "a.csv").symlink_to(victim)
        (shared / "new.csv").symlink_to(mine / "new.csv")
        (shared / "folder").symlink_to(mine)
        (shared / "file.csv").write_text("theirs")
        (mine / "on.csv").symlink_to(shared / "folder/a.csv")  # the user's own link to a link of another user
        for name in ("a.csv", "new.csv", "folder", "file.csv"):
            os.chown(shared / name, 12345, -1, follow_symlinks=False)
        for path in (shared / "a.csv", shared / "new.csv", shared / "folder/a.csv", shared / "file.csv", mine / "on.csv"):
            what = "file" if path.name == "file.csv" else "link"
            for write in WRITERS:
                with self.subTest(path=path, write=write), \
                        self.assertRaisesRegex((OSError, Unwritable), f"this {what} belongs to another user, in a folder that everybody"):
                    write(path)
        with self.assertRaisesRegex(Unwritable, "this link belongs to another user"):
            make_folder(shared / "folder/made")
        self.assertEqual((victim.read_text(), (shared / "file.csv").read_text()), ("precious", "theirs"))
        self.assertEqual(sorted(path.name for path in mine.iterdir()), ["a.csv", "on.csv"])
        shared.chmod(0o755)  # no other user can write there, so its links are trusted
        write_json(shared / "folder/a.csv", 7)
        shared.chmod(0o1777)
        os.chown(shared, 12345, -1)  # links of the folder's owner are trusted
        write_json(shared / "a.csv", 8)
        self.assertEqual(victim.read_text(), "8\n")

    def test_a_folder_that_is_missing_is_an_error(self):
        with self.assertRaises(FileNotFoundError), replacing(self.folder / "none" / "a.json") as temporary:
            temporary.write_text("{}")

    def test_what_cannot_be_written_is_refused_before_it_is_there(self):
        old = self.folder / "old.json"
        old.write_text("old")
        for path in (old, self.folder / "new.json", "/dev/null"):
            require_writable(path)
        self.assertEqual((old.read_text(), list(self.folder.iterdir())), ("old", [old]))
        for path, said in ((self.folder, "is a folder"), (self.folder / "none/a.json", "No such file or directory"),
                           ("/dev/null/a.json", "Not a directory"), (old / "a.json", "Not a directory")):
            with self.subTest(path=path), self.assertRaisesRegex(Unwritable, f"^{path}: cannot be written: {said}; choose"):
                require_writable(path)

    def test_a_folder_for_results_is_made_or_refused(self):
        made = self.folder / "a/b"
        for _ in range(2):
            make_folder(made)
            self.assertEqual(list(made.iterdir()), [])
        (made / "file").write_text("")
        for path in (made / "file", made / "file/c"):
            with self.subTest(path=path), self.assertRaisesRegex(Unwritable, f"^{path}: no files can be written there: "):
                make_folder(path)

    def test_interrupted_json_leaves_the_old_file(self):
        case = demo.Case("loopback", "ps", "none", 1, 1, 1, 1, 0, True, False, False, (), 1, 1, 0, True)
        job = demo.Job(demo.Tools(self.folder), self.folder, "m", 2, 1)
        for name, write in (("demo", lambda file: demo.write_results(file, job, [], [case])),
                            ("reproduce_sosp21", lambda file: reproduce_sosp21.write_json(file, {}))):
            with self.subTest(name):
                self.require_old("results.json", mock.patch.object(pathlib.Path, "write_text", half), write)

    @unittest.skipIf(matplotlib is None, "matplotlib is not installed")
    def test_interrupted_pictures_leave_the_old_one(self):
        for name, write in (("package", lambda file: _style.save(_style.grid(1, 2, 2)[0], file)),
                            ("sosp21", lambda file: sosp21.plot.draw([], file))):
            with self.subTest(name):
                savefig = mock.patch.object(matplotlib.figure.Figure, "savefig", half_picture)
                self.require_old("picture.png", savefig, write)


if __name__ == "__main__":
    unittest.main()
