"""Files that are written whole or not at all. The rules are those of io/output_file.cpp: no link of another user is followed."""

import contextlib
import errno
import os
import pathlib
import secrets
import stat
import time
from typing import Iterator, NoReturn, Optional, Tuple, Union

_Path = Union[str, "os.PathLike[str]"]

MOST_LINKS = 40  # Linux's own limit
#: Longest wait for a reader to open a pipe, in seconds.
PATIENCE_S = 10.0


@contextlib.contextmanager
def replacing(path: _Path) -> Iterator[pathlib.Path]:
    """Yields a new file beside `path` to write to, with an unpredictable name. When the block ends, it takes the place, the mode
    and, where permitted, the owner of `path`; after an exception it is removed. A symbolic link stays, and its target is replaced.
    A device or pipe is written to directly. Raises OSError if the file cannot be written."""
    target, old = _target(path)
    if old is not None and not stat.S_ISREG(old.st_mode):
        number = _opened(target, old)
        try:
            yield pathlib.Path(f"/proc/self/fd/{number}")
        finally:
            os.close(number)
        return
    number, temporary = _beside(target, old)
    try:
        yield pathlib.Path(temporary)
        if old is not None:
            try:
                os.fchown(number, old.st_uid, old.st_gid)
            except OSError:  # only root may give files away, others only to a group of theirs
                with contextlib.suppress(OSError):
                    os.fchown(number, -1, old.st_gid)
            os.fchmod(number, old.st_mode & 0o777)
        os.replace(temporary, target)
    except BaseException:
        with contextlib.suppress(FileNotFoundError):
            os.unlink(temporary)
        raise
    finally:
        os.close(number)


def write_whole(path: _Path, text: str) -> None:
    """Writes a text to a file that appears complete or not at all; see replacing()."""
    with replacing(path) as beside:
        beside.write_text(text, encoding="utf-8")


def require_writable(path: _Path) -> None:
    """Raises OSError if replacing() could not write there. Leaves no file behind."""
    target, old = _target(path)
    if old is None or stat.S_ISREG(old.st_mode):
        number, temporary = _beside(target, old)
        os.close(number)
        os.unlink(temporary)


def without_links(path: _Path) -> Tuple[str, Optional[os.stat_result]]:
    """Resolves the links of a path. Returns the target and its status, None if there is no file. Raises PermissionError for a link
    that another user has put into a folder that everybody may write to."""
    at, rest, links, status = "", os.fspath(path), 0, None
    while rest:
        part, slash, rest = rest.partition("/")
        here = at + part
        if part:
            try:
                status = os.lstat(here)
            except FileNotFoundError:
                return here + slash + rest, None
            if stat.S_ISLNK(status.st_mode):
                if _is_planted(at, status):
                    _refuse_stranger("link", here)
                links += 1
                if links > MOST_LINKS:
                    raise OSError(errno.ELOOP, os.strerror(errno.ELOOP), os.fspath(path))
                leads_to = os.readlink(here)
                # Links of /proc to pipes have no target path; only the system can follow them.
                if not rest and not os.path.lexists(os.path.join(at, leads_to)) and os.path.exists(here) and not os.path.isfile(here):
                    return here, os.stat(here)
                at, rest = "" if leads_to.startswith("/") else at, leads_to + slash + rest
                continue
        at = here + slash
    return at, status


def _target(path: _Path) -> Tuple[str, Optional[os.stat_result]]:
    """Finds the target of writing to `path`: a file, a device or a pipe. Returns its path and status (None for a new file)."""
    target, old = without_links(path)
    folder, name = os.path.split(target)
    if not name or old is not None and stat.S_ISDIR(old.st_mode):
        raise IsADirectoryError(errno.EISDIR, "is a folder", os.fspath(path))
    if old is None:
        return target, None
    if _is_planted(folder, old):
        _refuse_stranger("file", target)
    if stat.S_ISSOCK(old.st_mode) or stat.S_ISBLK(old.st_mode):
        raise OSError(errno.EINVAL, "is a socket or a disk, give the name of a file", os.fspath(path))
    # Replacing a read-only file would bypass its mode.
    if not os.access(target, os.W_OK):
        raise PermissionError(errno.EACCES, "make the file writable, or choose another name", os.fspath(path))
    return target, old


def _is_planted(folder: str, status: os.stat_result) -> bool:
    """Equivalent of is_planted() in io/ownership.cpp."""
    around = os.stat(folder or ".")
    shared = stat.S_ISVTX | stat.S_IWOTH
    return around.st_mode & shared == shared and status.st_uid not in (os.geteuid(), around.st_uid)


def _refuse_stranger(what: str, path: str) -> NoReturn:
    raise PermissionError(errno.EACCES, f"this {what} belongs to another user, in a folder that everybody may write to; remove it, or "
                          "choose another folder", path)


def _beside(target: str, old: Optional[os.stat_result]) -> Tuple[int, str]:
    """Opens a new file in the same folder, private if it will replace one. Returns its descriptor and name."""
    name = os.path.join(os.path.dirname(target), f".hipress.{secrets.token_hex(16)}.tmp")
    return os.open(name, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC, 0o666 if old is None else 0o600), name


def _opened(target: str, old: os.stat_result) -> int:
    """Opens a device or pipe, and returns the descriptor. Waits up to PATIENCE_S for a pipe's reader."""
    end = time.monotonic() + PATIENCE_S
    while True:
        try:
            return os.open(target, os.O_WRONLY | os.O_NOCTTY | os.O_CLOEXEC | os.O_NONBLOCK)
        except OSError as error:
            if error.errno != errno.ENXIO or not stat.S_ISFIFO(old.st_mode):
                raise
        if time.monotonic() > end:
            raise OSError(errno.ENXIO, "no process reads this pipe; start its reader first", target)
        time.sleep(0.01)
