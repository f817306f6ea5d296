"""Model YAMLs (docs/models.md): written from measurements, and read by the library, as every tool reads them."""

import ctypes
import errno
import os
import re
import stat
import tempfile
from typing import Tuple

from . import _library
from ._engine import InvalidRequest


def quoted(text: str) -> str:
    """A text as a YAML scalar."""
    if re.fullmatch(r"[A-Za-z_][\w./-]*", text) and text.lower() not in ("null", "true", "false", "yes", "no", "on", "off", "y", "n"):
        return text
    escaped = text.replace("\\", "\\\\").replace('"', '\\"')
    return f'"{escaped}"'


def microseconds(seconds: float) -> str:
    """A duration as models have it."""
    return f"{max(0.0, seconds) * 1e6:.1f}us"


def write_whole(path, text: str) -> None:
    """A file that appears at once and complete. The temporary file beside it has a random name and is never opened through a
    link; a link or a device at `path` stays what it is."""
    target = _target(path)
    if os.path.exists(target) and not os.path.isfile(target):
        with open(target, "w", encoding="utf-8") as file:
            file.write(text)
        return
    mode = stat.S_IMODE(os.stat(target).st_mode) if os.path.exists(target) else 0o666 & ~_umask()
    number, temporary = _beside(target)
    try:
        with open(number, "w", encoding="utf-8") as file:
            file.write(text)
        os.chmod(temporary, mode)
        os.replace(temporary, target)
    except BaseException:
        os.unlink(temporary)
        raise


def require_writable(path, *inputs: str) -> None:
    """InvalidRequest for where write_whole() could not write, or would write over an input. Nothing is left there."""
    target = _target(path)
    try:
        for one in inputs:
            if os.path.exists(one) and os.path.exists(target) and os.path.samefile(one, target):
                raise InvalidRequest(f"output {os.fspath(path)} is {one}, which is read: give another name")
        if os.path.isdir(target) or not os.path.basename(target):
            raise InvalidRequest(f"output {os.fspath(path)!r} is a folder: give the name of a file")
        if os.path.exists(target) and not os.path.isfile(target):
            if not os.access(target, os.W_OK):
                raise PermissionError(errno.EACCES, os.strerror(errno.EACCES), target)
            return
        number, temporary = _beside(target)
        os.close(number)
        os.unlink(temporary)
    except (OSError, ValueError) as error:
        if isinstance(error, InvalidRequest):
            raise
        raise InvalidRequest(f"output {os.fspath(path)!r} cannot be written ({getattr(error, 'strerror', None) or error}): give a "
                             "file in a folder that is there and may be written") from None


def _target(path) -> str:
    return os.path.realpath(path) if os.path.islink(path) else os.fspath(path)


def _beside(target: str) -> Tuple[int, str]:
    """A new file in the same folder."""
    return tempfile.mkstemp(prefix=f".{os.path.basename(target)}.", dir=os.path.dirname(target) or ".")


def _umask() -> int:
    mask = os.umask(0o077)
    os.umask(mask)
    return mask


def ready_times(path) -> dict:
    """The ready time of each gradient, in seconds after the start of backward, in the file's order. Gradients of a bucket are ready
    with the last of them. InvalidRequest, a ValueError, with file and line if the file is no model; hipress.Error if it cannot be read."""
    from . import _engine
    library = _library.library()
    model, count = ctypes.c_void_p(), ctypes.c_size_t()
    _engine.check(library.hipress_read_model(os.fsencode(path), ctypes.byref(model)))
    try:
        gradients = library.hipress_model_gradients(model, ctypes.byref(count))
        return {gradients[i].name.decode(errors="surrogateescape"): gradients[i].ready_s for i in range(count.value)}
    finally:
        library.hipress_free_model(model)
