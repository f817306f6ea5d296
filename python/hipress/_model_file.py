"""Model YAMLs (docs/models.md): written from measurements, and read by the library, as every tool reads them."""

import ctypes
import os
import re
import stat
import tempfile

from . import _library


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
    target = os.path.realpath(path) if os.path.islink(path) else os.fspath(path)
    if os.path.exists(target) and not os.path.isfile(target):
        with open(target, "w", encoding="utf-8") as file:
            file.write(text)
        return
    mode = stat.S_IMODE(os.stat(target).st_mode) if os.path.exists(target) else 0o666 & ~_umask()
    number, temporary = tempfile.mkstemp(prefix=f".{os.path.basename(target)}.", dir=os.path.dirname(target) or ".")
    try:
        with open(number, "w", encoding="utf-8") as file:
            file.write(text)
        os.chmod(temporary, mode)
        os.replace(temporary, target)
    except BaseException:
        os.unlink(temporary)
        raise


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
