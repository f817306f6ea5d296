"""Plans compressed gradient synchronisation, predicts it, and trains with it.

    import hipress
    print(hipress.plan("vgg19", profile="v100-100g", nnodes=8, output="plan.yaml"))
    model = torch.nn.parallel.DistributedDataParallel(model)
    hipress.attach(model, plan="plan.yaml")

plan(), simulate(), sweep(), replay(), profile() and import_trace() return the answers of the command-line tools. They run in this
process and need no torch. The implementation is libhipress.so, which this package calls. The library does not depend on the
versions of Python and torch.
"""

import importlib
from typing import TYPE_CHECKING, Any, List

from hipress._call import Progress, answer
from hipress._engine import Error, InvalidRequest, RankLost
from hipress._errors import EnvironmentFailure, HipressError, HipressWarning, InputError, Interrupted, UnmetError
from hipress._library import Gradient, LibraryError, library_path
from hipress._pilot_report import pilot
from hipress._requests import import_trace, plan, profile, replay, simulate, sweep
from hipress._results import Plan, Profile, Replay, Result, Simulation, Sweep, Trace

if TYPE_CHECKING:
    __version__: str
    from hipress._attach import attach as attach
    from hipress._capture import Capture as Capture
    from hipress._ddp import Hook as Hook
    from hipress._ddp import synchronise as synchronise
    from hipress._fsdp import ShardedHook as ShardedHook
    from hipress._local import LocalUpdates as LocalUpdates
    from hipress._verify import Verification as Verification
    from hipress._verify import verify as verify

__all__ = ["Capture", "EnvironmentFailure", "Error", "Gradient", "HipressError", "HipressWarning", "Hook", "InputError",
           "Interrupted", "InvalidRequest", "LibraryError", "LocalUpdates", "Plan", "Profile", "Progress", "RankLost",
           "Replay", "Result", "ShardedHook", "Simulation", "Sweep", "Trace", "UnmetError", "Verification", "answer", "attach",
           "capture", "import_trace", "library_path", "pilot", "plan", "profile", "replay", "simulate", "sweep", "synchronise", "verify"]

#: Names that need torch, and the modules that define them.
_NEED_TORCH = {"Capture": "_capture", "Hook": "_ddp", "LocalUpdates": "_local", "ShardedHook": "_fsdp", "Verification": "_verify",
               "attach": "_attach", "synchronise": "_ddp", "verify": "_verify"}


def __getattr__(name: str) -> Any:
    """Imports a name that needs torch, or finds the version, when it is first used. Raises AttributeError for an unknown name, and
    ImportError without torch."""
    if name == "__version__":
        globals()[name] = importlib.import_module("hipress._version").version()
        return globals()[name]
    if name not in _NEED_TORCH:
        raise AttributeError(f"module 'hipress' has no attribute '{name}'")
    _require_torch()
    found = getattr(importlib.import_module(f"hipress.{_NEED_TORCH[name]}"), name)
    globals()[name] = found
    return found


def __dir__() -> List[str]:
    return sorted({*globals(), *_NEED_TORCH, "__version__"})


def _require_torch() -> None:
    try:
        import torch  # noqa: F401
    except ImportError as error:
        raise ImportError("hipress.attach, LocalUpdates, verify and capture need PyTorch: install Debian's python3-torch, or torch "
                          f"from PyPI, for this interpreter ({error})") from error


def capture(model: Any, output: Any = "model.yaml", **options: Any) -> "Capture":
    """Measures the ready times of a model's gradients, and writes them as a model YAML. Use it as `with hipress.capture(model):`
    around some steps of training.

    model    the torch.nn.Module that is trained, wrapped or not
    output   file to write; None: no file
    options  keyword arguments of hipress.Capture, which documents the measurement

    Raises ImportError if this interpreter has no torch. Other errors are those of hipress.Capture."""
    _require_torch()
    from hipress import _capture

    return _capture.Capture(model, output, **options)
