"""Trains with gradients that are synchronised as a plan of hipress-plan says.

    import hipress
    model = torch.nn.parallel.DistributedDataParallel(model)
    hipress.attach(model, plan="plan.yaml")

Everything is in libhipress.so; this package calls it, whatever the versions of Python and torch.
"""

from hipress._engine import Error, InvalidRequest, RankLost
from hipress._library import Gradient, LibraryError, library_path

__all__ = ["Error", "Gradient", "InvalidRequest", "LibraryError", "RankLost", "attach", "capture", "library_path", "verify"]


def _require_torch() -> None:
    try:
        import torch  # noqa: F401
    except ImportError as error:
        raise ImportError("hipress.attach, hipress.verify and hipress.capture need PyTorch: install Debian's python3-torch, or "
                          f"torch from PyPI, for this interpreter ({error})") from error


def attach(ddp, plan="none", *, algorithm="onebit", topology=None, model=None, timeout=None, seed=1, rendezvous=None,
           network=None):
    """Synchronises the gradients of a DistributedDataParallel as a plan says; see hipress._ddp.attach."""
    _require_torch()
    from hipress import _ddp

    return _ddp.attach(ddp, plan, algorithm=algorithm, topology=topology, model=model, timeout=timeout, seed=seed,
                       rendezvous=rendezvous, network=network)


def verify(ddp, step=None, *, seed=0):
    """Lays one step of an attached DistributedDataParallel beside plain DDP; see hipress._verify.verify."""
    _require_torch()
    from hipress import _verify

    return _verify.verify(ddp, step, seed=seed)


def capture(model, output="model.yaml", **options):
    """Measures when a model's gradients are ready, and writes it as a model YAML; see hipress._capture.Capture."""
    _require_torch()
    from hipress import _capture

    return _capture.Capture(model, output, **options)
