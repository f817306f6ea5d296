"""ctypes bindings of libhipress.so and the structures of hipress.h."""

import ctypes
import os
import pathlib
from typing import Sequence

#: Environment variable: path of the library to load instead of the installed one.
LIBRARY_VARIABLE = "HIPRESS_LIBRARY"

OK, FAILED, INVALID, LOST = range(4)
FAULT, LEFT = range(2)
FLOAT32, FLOAT16, BFLOAT16 = range(3)
TYPE_NAMES = ("float32", "float16", "bfloat16")


class LibraryError(ImportError):
    """Failure to load libhipress.so: it is missing, or its version differs from this package's."""


class CGradient(ctypes.Structure):
    """hipress_gradient."""

    _fields_ = [("name", ctypes.c_char_p), ("elements", ctypes.c_int64), ("type", ctypes.c_int), ("dimensions", ctypes.c_int),
                ("shape", ctypes.POINTER(ctypes.c_int64)), ("ready_s", ctypes.c_double)]


#: Functions of hipress_store.
StoreAdd = ctypes.CFUNCTYPE(ctypes.c_int, ctypes.c_void_p, ctypes.c_char_p, ctypes.c_void_p, ctypes.c_size_t)
StoreWait = ctypes.CFUNCTYPE(ctypes.c_int64, ctypes.c_void_p, ctypes.c_char_p, ctypes.c_double, ctypes.c_void_p, ctypes.c_size_t)


class CStore(ctypes.Structure):
    """hipress_store."""

    _fields_ = [("context", ctypes.c_void_p), ("add", StoreAdd), ("wait", StoreWait)]


class COptions(ctypes.Structure):
    """hipress_options."""

    _fields_ = [("bytes", ctypes.c_size_t), ("rank", ctypes.c_int), ("ranks", ctypes.c_int), ("plan", ctypes.c_char_p),
                ("topology", ctypes.c_char_p), ("algorithm", ctypes.c_char_p), ("transport", ctypes.c_char_p),
                ("rendezvous", ctypes.c_char_p), ("network", ctypes.c_char_p), ("job", ctypes.c_char_p),
                ("secret", ctypes.c_char_p), ("secret_bytes", ctypes.c_size_t), ("timeout_s", ctypes.c_double),
                ("seed", ctypes.c_uint64), ("device", ctypes.c_int), ("store", ctypes.POINTER(CStore)),
                ("group_bytes", ctypes.c_int64), ("fragments", ctypes.POINTER(ctypes.c_uint32)), ("silence_s", ctypes.c_double),
                ("automatic", ctypes.c_int), ("profile", ctypes.c_char_p)]


class CTensor(ctypes.Structure):
    """hipress_tensor."""

    _fields_ = [("data", ctypes.c_void_p), ("elements", ctypes.c_int64), ("type", ctypes.c_int), ("on_device", ctypes.c_int),
                ("event", ctypes.c_void_p)]


class CProgress(ctypes.Structure):
    """hipress_progress."""

    _fields_ = [("stage", ctypes.c_char_p), ("share", ctypes.c_double), ("done", ctypes.c_int64), ("all", ctypes.c_int64),
                ("best_s", ctypes.c_double)]


#: Functions of hipress_call_options.
CallSentence = ctypes.CFUNCTYPE(None, ctypes.c_void_p, ctypes.c_char_p)
CallProgress = ctypes.CFUNCTYPE(None, ctypes.c_void_p, ctypes.POINTER(CProgress))


class CCallOptions(ctypes.Structure):
    """hipress_call_options."""

    _fields_ = [("bytes", ctypes.c_size_t), ("context", ctypes.c_void_p), ("warn", CallSentence), ("inform", CallSentence),
                ("progress", CallProgress), ("interrupt", ctypes.POINTER(ctypes.c_ubyte))]


class CCodecTraits(ctypes.Structure):
    """hipress_codec_traits."""

    _fields_ = [("varies", ctypes.c_int), ("keeps", ctypes.c_int), ("half_precision", ctypes.c_int),
                ("message_type", ctypes.c_int)]


class CEncode(ctypes.Structure):
    """hipress_encode."""

    _fields_ = [("values", ctypes.c_void_p), ("elements", ctypes.c_int64), ("type", ctypes.c_int), ("divisor", ctypes.c_float),
                ("step", ctypes.c_uint64), ("node", ctypes.c_uint32), ("gradient", ctypes.c_uint32), ("role", ctypes.c_uint32),
                ("first_element", ctypes.c_int64), ("state_elements", ctypes.c_int64), ("message", ctypes.c_void_p),
                ("capacity", ctypes.c_int64), ("message_bytes", ctypes.c_int64)]


class CDecode(ctypes.Structure):
    """hipress_decode."""

    _fields_ = [("messages", ctypes.c_void_p), ("message_bytes", ctypes.c_void_p), ("count", ctypes.c_size_t),
                ("values", ctypes.c_void_p), ("elements", ctypes.c_int64), ("type", ctypes.c_int), ("divisor", ctypes.c_float)]


class Gradient:
    """Gradient that every rank submits once per iteration. `name` is its name in plans, `shape` begins with the outermost dimension
    (empty: a scalar), `type` is FLOAT32, FLOAT16 or BFLOAT16, and `ready_s` is the ready time in seconds (0: unknown)."""

    __slots__ = ("name", "ready_s", "shape", "type")

    def __init__(self, name: str, shape: Sequence[int], type: int = FLOAT32, ready_s: float = 0.0) -> None:
        self.name, self.shape, self.type, self.ready_s = name, tuple(shape), type, ready_s

    @property
    def elements(self) -> int:
        """Number of elements."""
        product = 1
        for dimension in self.shape:
            product *= dimension
        return product


#: Result type and argument types of each function.
_POINTER = ctypes.c_void_p
_FUNCTIONS = {
    "hipress_options_init": (None, [_POINTER]),
    "hipress_open": (ctypes.c_int, [ctypes.POINTER(COptions), ctypes.POINTER(CGradient), ctypes.c_size_t,
                                    ctypes.POINTER(_POINTER)]),
    "hipress_submit_many": (ctypes.c_int, [_POINTER, ctypes.c_size_t, _POINTER, _POINTER, _POINTER]),
    "hipress_wait_all": (ctypes.c_int, [_POINTER, ctypes.c_size_t, ctypes.c_double, ctypes.POINTER(ctypes.c_int)]),
    "hipress_release": (None, [_POINTER]),
    "hipress_all_finite": (ctypes.c_int, [_POINTER, ctypes.POINTER(ctypes.c_int)]),
    "hipress_discard": (ctypes.c_int, [_POINTER, _POINTER, ctypes.c_size_t]),
    "hipress_take_residual": (ctypes.c_int, [_POINTER, ctypes.c_uint32, _POINTER, ctypes.c_int64]),
    "hipress_residuals": (ctypes.c_int, [_POINTER, ctypes.POINTER(ctypes.c_double), ctypes.c_size_t]),
    "hipress_notes": (ctypes.c_char_p, [_POINTER]),
    "hipress_news": (ctypes.c_char_p, [_POINTER]),
    "hipress_measure_links": (ctypes.c_int, [_POINTER, ctypes.POINTER(ctypes.c_double), ctypes.POINTER(ctypes.c_double)]),
    "hipress_cached_profile": (ctypes.c_int, [ctypes.c_char_p, ctypes.c_int, ctypes.POINTER(_POINTER)]),
    "hipress_judge": (ctypes.c_int, [ctypes.POINTER(ctypes.c_double), ctypes.c_size_t, ctypes.POINTER(ctypes.c_int)]),
    "hipress_save_state": (ctypes.c_int, [_POINTER, ctypes.c_char_p]),
    "hipress_load_state": (ctypes.c_int, [_POINTER, ctypes.c_char_p]),
    "hipress_abort": (None, [_POINTER, ctypes.c_char_p]),
    "hipress_close": (None, [_POINTER]),
    "hipress_read_model": (ctypes.c_int, [ctypes.c_char_p, ctypes.POINTER(_POINTER)]),
    "hipress_model_gradients": (ctypes.POINTER(CGradient), [_POINTER, ctypes.POINTER(ctypes.c_size_t)]),
    "hipress_free_model": (None, [_POINTER]),
    "hipress_read_sharded_plan": (ctypes.c_int, [ctypes.c_char_p, ctypes.c_char_p, ctypes.c_int, ctypes.POINTER(CGradient),
                                                 ctypes.c_size_t, ctypes.POINTER(_POINTER)]),
    "hipress_codec_open": (ctypes.c_int, [ctypes.c_char_p, ctypes.c_uint64, ctypes.POINTER(_POINTER)]),
    "hipress_codec_describe": (ctypes.c_int, [_POINTER, ctypes.POINTER(CCodecTraits)]),
    "hipress_codec_bytes": (ctypes.c_int64, [_POINTER, ctypes.c_int64]),
    "hipress_codec_encode": (ctypes.c_int, [_POINTER, ctypes.POINTER(CEncode), ctypes.c_size_t]),
    "hipress_codec_decode": (ctypes.c_int, [_POINTER, ctypes.POINTER(CDecode), ctypes.c_size_t]),
    "hipress_codec_save": (ctypes.c_int, [_POINTER, ctypes.c_char_p]),
    "hipress_codec_load": (ctypes.c_int, [_POINTER, ctypes.c_char_p]),
    "hipress_codec_close": (None, [_POINTER]),
    "hipress_call_options_init": (None, [_POINTER]),
    "hipress_call_with": (ctypes.c_int, [ctypes.POINTER(CCallOptions), ctypes.c_char_p, ctypes.POINTER(_POINTER)]),
    "hipress_free_result": (None, [_POINTER]),
    "hipress_last_error": (ctypes.c_char_p, []),
    "hipress_culprit": (ctypes.c_int, []),
    "hipress_how_lost": (ctypes.c_int, []),
}


def library_path() -> pathlib.Path:
    """Path of the library that this package loads: HIPRESS_LIBRARY if set, else the one installed with the package. Raises
    LibraryError if the file does not exist."""
    named = os.environ.get(LIBRARY_VARIABLE)
    if named:
        if not pathlib.Path(named).is_file():
            raise LibraryError(f"{LIBRARY_VARIABLE} is '{named}', and there is no such file")
        return pathlib.Path(named)
    package = pathlib.Path(__file__).resolve().parent
    # A wheel has the library in the package. `cmake --install` puts the package into PREFIX/share/hipress/python/hipress, and the
    # library into PREFIX/lib or the system's equivalent.
    prefixes = [package, *package.parents[3:4]]
    folders = [folder for prefix in prefixes
               for folder in (prefix / "lib/hipress", prefix / "lib", prefix / "lib64", *sorted(prefix.glob("lib/*-linux-gnu")))]
    places = [folder / name for folder in folders for name in ("libhipress.so", "libhipress.so.0")]
    for place in places:
        if place.is_file():
            return place
    raise LibraryError(f"libhipress.so is not there ({', '.join(map(str, places))}): install it and this package with "
                       f"`pip install .` or `cmake --install`, or set {LIBRARY_VARIABLE} to the one of your build")


#: Libraries that a wheel brings for machines that lack them: folder, and names in loading order. The machine's own copies take
#: precedence: its C++ library fits its C library and Python's other modules, and its libibverbs fits its adapters.
_SPARES = (("gcc", ("libgcc_s.so.1", "libstdc++.so.6")), ("ibverbs", ("libnl-3.so.200", "libnl-route-3.so.200", "libibverbs.so.1")))


def _has(name: str) -> bool:
    """True if the machine has a library of that name."""
    try:
        ctypes.CDLL(name)
    except OSError:
        return False
    return True


def _open(path: pathlib.Path) -> ctypes.CDLL:
    """Opens a library. If that fails, it loads the spare libraries beside it, and tries again. Raises the OSError of the first
    attempt if both fail."""
    try:
        return ctypes.CDLL(str(path))
    except OSError as error:
        alone = error
    try:
        for folder, names in _SPARES:
            for name in () if _has(names[-1]) else names:
                ctypes.CDLL(str(path.parent / folder / name), mode=ctypes.RTLD_GLOBAL)
        return ctypes.CDLL(str(path))
    except OSError:
        raise alone from None


def _load() -> ctypes.CDLL:
    path = library_path()
    try:
        library = _open(path)
    except OSError as error:
        raise LibraryError(f"{path} cannot be loaded: {error}") from error
    remedy = "install this package and libhipress.so of one version, with `pip install .` or `cmake --install`"
    for name, (result, arguments) in _FUNCTIONS.items():
        try:
            function = getattr(library, name)
        except AttributeError:
            raise LibraryError(f"{path} is of another version than this package (it lacks {name}): {remedy}") from None
        function.restype, function.argtypes = result, arguments
    # The library's structure may be larger than ours.
    room = ctypes.create_string_buffer(4096)
    library.hipress_options_init(room)
    found = COptions.from_buffer(room).bytes
    library.hipress_call_options_init(room)
    found_for_calls = CCallOptions.from_buffer(room).bytes
    if (found, found_for_calls) != (ctypes.sizeof(COptions), ctypes.sizeof(CCallOptions)):
        raise LibraryError(f"{path} is of another version than this package (its hipress_options has {found} bytes and its "
                           f"hipress_call_options {found_for_calls}; {ctypes.sizeof(COptions)} and {ctypes.sizeof(CCallOptions)} "
                           f"were expected): {remedy}")
    return library


_loaded = None


def library() -> ctypes.CDLL:
    """Returns the library, and loads it at the first call. Raises LibraryError if it is missing or has a different version."""
    global _loaded
    if _loaded is None:
        _loaded = _load()
    return _loaded
