"""``libhipress.so`` by ctypes: an engine that averages gradients between ranks (runtime/hipress.h)."""

import ctypes
import dataclasses
import os
import pathlib
import typing

OK, FAILED, INVALID, LOST = range(4)
FLOAT32, FLOAT16, BFLOAT16 = range(3)

#: How long Python's signal handlers wait while a work is waited for.
_PATIENCE_S = 0.1


class HipressError(RuntimeError):
    """The library refused a call, or failed; the text says why."""


class RankLost(HipressError):
    """A rank no longer takes part: ``rank`` is its number."""

    def __init__(self, text: str, rank: int):
        super().__init__(text)
        self.rank = rank


class _Gradient(ctypes.Structure):
    _fields_ = [("name", ctypes.c_char_p), ("elements", ctypes.c_int64), ("type", ctypes.c_int),
                ("dimensions", ctypes.c_int), ("shape", ctypes.POINTER(ctypes.c_int64))]


_ADD = ctypes.CFUNCTYPE(ctypes.c_int, ctypes.c_void_p, ctypes.c_char_p, ctypes.c_void_p, ctypes.c_size_t)
_WAIT = ctypes.CFUNCTYPE(ctypes.c_int64, ctypes.c_void_p, ctypes.c_char_p, ctypes.c_double, ctypes.c_void_p,
                         ctypes.c_size_t)


class _Store(ctypes.Structure):
    _fields_ = [("context", ctypes.c_void_p), ("add", _ADD), ("wait", _WAIT)]


class _Options(ctypes.Structure):
    _fields_ = [("bytes", ctypes.c_size_t), ("rank", ctypes.c_int), ("ranks", ctypes.c_int), ("plan", ctypes.c_char_p),
                ("strategy", ctypes.c_char_p), ("algorithm", ctypes.c_char_p), ("transport", ctypes.c_char_p),
                ("rendezvous", ctypes.c_char_p), ("network", ctypes.c_char_p), ("job", ctypes.c_char_p),
                ("secret", ctypes.c_char_p), ("secret_bytes", ctypes.c_size_t), ("timeout_s", ctypes.c_double),
                ("seed", ctypes.c_uint64), ("device", ctypes.c_int), ("store", ctypes.POINTER(_Store)),
                ("state", ctypes.c_char_p), ("iteration", ctypes.c_uint64)]


class _Tensor(ctypes.Structure):
    _fields_ = [("data", ctypes.c_void_p), ("elements", ctypes.c_int64), ("type", ctypes.c_int), ("on_device", ctypes.c_int),
                ("event", ctypes.c_void_p)]


_HANDLE = ctypes.c_void_p
_SIGNATURES = {
    "hipress_options_init": (None, [ctypes.POINTER(_Options)]),
    "hipress_open": (ctypes.c_int, [ctypes.POINTER(_Options), ctypes.POINTER(_Gradient), ctypes.c_size_t,
                                    ctypes.POINTER(_HANDLE)]),
    "hipress_submit": (ctypes.c_int, [_HANDLE, ctypes.c_uint32, ctypes.POINTER(_Tensor), ctypes.POINTER(_HANDLE)]),
    "hipress_wait_for": (ctypes.c_int, [_HANDLE, ctypes.c_double, ctypes.POINTER(ctypes.c_int)]),
    "hipress_iteration": (ctypes.c_int, [_HANDLE, ctypes.POINTER(ctypes.c_uint64)]),
    "hipress_save_state": (ctypes.c_int, [_HANDLE, ctypes.c_char_p]),
    "hipress_release": (None, [_HANDLE]),
    "hipress_close": (None, [_HANDLE]),
    "hipress_last_error": (ctypes.c_char_p, []),
    "hipress_culprit": (ctypes.c_int, []),
}


def _candidates() -> list[pathlib.Path]:
    """Where the library may lie: HIPRESS_LIBRARY alone if it is set; else beside the package, as a wheel installs it, or in the
    library folder of the prefix that ``cmake --install`` put the package into."""
    if "HIPRESS_LIBRARY" in os.environ:
        return [pathlib.Path(os.environ["HIPRESS_LIBRARY"])]
    package = pathlib.Path(__file__).resolve().parent
    folders = [package / "lib"]
    for parent in package.parents[:5]:
        folders += [parent / "lib", parent / "lib64", *parent.glob("lib/*-linux-gnu")]
    return [folder / "libhipress.so" for folder in folders]


def load(path: typing.Optional[pathlib.Path] = None) -> ctypes.CDLL:
    """The library, with its functions' signatures. ImportError, which says where it was looked for, if it is not there, or
    is of another version than this package."""
    places = [path] if path else _candidates()
    found = next((place for place in places if place.exists()), None)
    if found is None:
        raise ImportError("libhipress.so is none of " + ", ".join(map(str, places)) +
                          "; install the package with pip, or name the file in HIPRESS_LIBRARY")
    library = ctypes.CDLL(str(found))
    try:
        for name, (result, arguments) in _SIGNATURES.items():
            function = getattr(library, name)
            function.restype, function.argtypes = result, arguments
    except AttributeError as error:
        raise ImportError(f"{found} is older than this package: {error}; install both of one version") from None
    room = ctypes.create_string_buffer(4096)  # should its structure be larger than ours
    options = ctypes.cast(room, ctypes.POINTER(_Options))
    library.hipress_options_init(options)
    if options.contents.bytes != ctypes.sizeof(_Options):
        raise ImportError(f"{found} has options of {options.contents.bytes} bytes, this package of "
                          f"{ctypes.sizeof(_Options)}; install both of one version")
    return library


_library: typing.Optional[ctypes.CDLL] = None


def library() -> ctypes.CDLL:
    """The library, loaded at the first call."""
    global _library
    if _library is None:
        _library = load()
    return _library


def _check(status: int) -> None:
    if status == OK:
        return
    text = library().hipress_last_error().decode(errors="replace")
    if status == LOST:
        raise RankLost(text, library().hipress_culprit())
    raise HipressError(text)


class Store(typing.Protocol):
    """Where ranks meet, such as PyTorch's key-value store. Both are called while an engine is opened."""

    def add(self, name: str, data: bytes) -> None:
        """Makes an entry."""

    def wait(self, name: str, seconds: float) -> typing.Optional[bytes]:
        """The entry; None if it has not come after so many seconds."""


def _foreign(store: Store) -> _Store:
    """The store as the library calls it. Exceptions cannot pass through C: what failed is in the library's error, without them."""
    def add(_, name, data, size):
        try:
            store.add(name.decode(), ctypes.string_at(data, size))
            return 1
        except Exception:
            return -1

    def wait(_, name, seconds, data, capacity):
        try:
            content = store.wait(name.decode(), seconds)
        except Exception:
            return -2
        if content is None:
            return -1
        if len(content) <= capacity:
            ctypes.memmove(data, content, len(content))
        return len(content)

    return _Store(None, _ADD(add), _WAIT(wait))


@dataclasses.dataclass(frozen=True)
class Gradient:
    """A gradient that every rank submits once per iteration."""

    name: str  #: in a plan file, the plan's name for it
    shape: tuple  #: outermost dimension first
    type: int = FLOAT32

    @property
    def elements(self) -> int:
        product = 1
        for size in self.shape:
            product *= size
        return product


class Work:
    """What has been submitted; wait() must be called once."""

    def __init__(self, handle: ctypes.c_void_p, kept: object):
        self._handle, self._kept = handle, kept

    def wait(self) -> None:
        """Returns when the tensor holds the mean over all ranks. RankLost, HipressError; a signal's handler runs meanwhile."""
        done = ctypes.c_int(0)
        while not done.value:
            status = library().hipress_wait_for(self._handle, _PATIENCE_S, ctypes.byref(done))
            if done.value:
                self._handle = None
            _check(status)
        self._kept = None

    def __del__(self):
        if self._handle is not None:
            library().hipress_release(self._handle)


class Engine:
    """Averages gradients between the ranks of a job. All ranks open it together, with equal gradients and options."""

    def __init__(self, gradients: typing.Sequence[Gradient], *, rank: int, ranks: int, store: typing.Optional[Store] = None,
                 **options):
        """`options` are those of hipress_options: plan, strategy, algorithm, transport, rendezvous, network, job, secret (bytes),
        timeout_s, seed, device, state (a file), iteration. HipressError if one is wrong, or if ranks do not fit together;
        RankLost if a rank does not come."""
        self._handle = ctypes.c_void_p()
        self._gradients = list(gradients)
        made = _Options()
        library().hipress_options_init(ctypes.byref(made))
        made.rank, made.ranks = rank, ranks
        for name, value in options.items():
            if name not in {"plan", "strategy", "algorithm", "transport", "rendezvous", "network", "job", "secret",
                            "timeout_s", "seed", "device", "state", "iteration"}:
                raise TypeError(f"Engine has no option '{name}'")
            if name == "secret":
                made.secret_bytes = len(value)
            setattr(made, name, value.encode() if isinstance(value, str) else value)
        foreign = None if store is None else _foreign(store)
        if foreign is not None:
            made.store = ctypes.pointer(foreign)
        _check(library().hipress_open(ctypes.byref(made), self._described(), len(self._gradients),
                                      ctypes.byref(self._handle)))

    def _described(self) -> ctypes.Array:
        described = (_Gradient * len(self._gradients))()
        for row, gradient in zip(described, self._gradients):
            row.name, row.elements, row.type = gradient.name.encode(), gradient.elements, gradient.type
            row.dimensions = len(gradient.shape)
            row.shape = (ctypes.c_int64 * len(gradient.shape))(*gradient.shape)
        return described

    def submit(self, number: int, address: int, *, on_device: bool = False, event: typing.Optional[int] = None,
               kept: object = None) -> Work:
        """Submits gradient `number`, whose values lie at `address` until the Work is done; `kept` lives as long. `event`: the
        cudaEvent_t, recorded already, after which they are there."""
        gradient = self._gradients[number]
        tensor = _Tensor(address, gradient.elements, gradient.type, int(on_device), event)
        work = ctypes.c_void_p()
        _check(library().hipress_submit(self._handle, number, ctypes.byref(tensor), ctypes.byref(work)))
        return Work(work, kept)

    def iteration(self) -> int:
        """How often every gradient has been submitted, by engines before this one too."""
        count = ctypes.c_uint64()
        _check(library().hipress_iteration(self._handle, ctypes.byref(count)))
        return count.value

    def save_state(self, file: typing.Union[str, os.PathLike]) -> None:
        """Writes what this rank's codecs keep between iterations."""
        _check(library().hipress_save_state(self._handle, os.fsencode(file)))

    def close(self) -> None:
        """Waits for what is under way, and leaves the job."""
        handle, self._handle = self._handle, ctypes.c_void_p()
        if handle:
            library().hipress_close(handle)

    def forget(self) -> None:
        """Leaves the engine to the end of the process, without waiting for other ranks."""
        self._handle = ctypes.c_void_p()
