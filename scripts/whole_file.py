"""Files that are written whole or not at all, so that an interrupted script leaves no half file."""

import contextlib
import errno
import json
import os
import pathlib
import stat
import tempfile
from collections.abc import Iterator


@contextlib.contextmanager
def replacing(path: str | os.PathLike) -> Iterator[pathlib.Path]:
    """A new file beside `path`, with its suffix and a name that nobody can foresee, to write to. It takes the place and
    the mode of `path` when the block ends, and is removed if that is by an exception. A symbolic link stays, its target
    is replaced; a device or pipe has no other name, so that it is `path` itself. OSError if the file cannot be written.
    """
    path = pathlib.Path(path)
    if path.exists() and not path.is_file():
        yield path
        return
    target = path.resolve()
    mode = stat.S_IMODE(target.stat().st_mode) if target.exists() else new_mode()
    number, name = tempfile.mkstemp(prefix=".hipress.", suffix=target.suffix, dir=target.parent)
    os.close(number)
    temporary = pathlib.Path(name)
    try:
        yield temporary
        temporary.chmod(mode)
        temporary.replace(target)
    finally:
        temporary.unlink(missing_ok=True)


def new_mode() -> int:
    """The permissions of a new file, which the umask decides."""
    umask = os.umask(0o077)
    os.umask(umask)
    return 0o666 & ~umask


class Unwritable(Exception):
    """Results cannot be written where they were asked for; the message says why, and what to do."""


def require_writable(path: str | os.PathLike) -> None:
    """Unwritable unless `replacing` can write there: for commands that have results only after minutes or hours."""
    path = pathlib.Path(path)
    try:
        if path.is_dir():
            raise IsADirectoryError(errno.EISDIR, os.strerror(errno.EISDIR))
        if path.is_file() or not path.exists():
            with tempfile.TemporaryFile(dir=path.resolve().parent):
                pass
    except OSError as error:
        raise Unwritable(f"{path}: cannot be written: {error.strerror}; choose a file in a folder that exists and is "
                         "writable") from error


def make_folder(path: str | os.PathLike) -> None:
    """The folder, which may exist, and those that it lies in. Unwritable if it cannot be made or written into."""
    try:
        os.makedirs(path, exist_ok=True)
        with tempfile.TemporaryFile(dir=path):
            pass
    except OSError as error:
        raise Unwritable(f"{path}: no files can be written there: {error.strerror}; choose another folder") from error


def prepare(folder: pathlib.Path, results: pathlib.Path | None) -> pathlib.Path:
    """Makes the folder of results, and refuses what cannot be written before anything takes long. Returns the folder's
    absolute path."""
    folder = folder.resolve()
    make_folder(folder)
    if results:
        require_writable(results)
    return folder


def write_json(path: str | os.PathLike, value: object) -> None:
    """OSError if the file cannot be written."""
    with replacing(path) as temporary:
        temporary.write_text(json.dumps(value, indent=2) + "\n", encoding="utf-8")
