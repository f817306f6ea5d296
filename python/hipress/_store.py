"""PyTorch's key-value store as the rendezvous of an engine's ranks (hipress_store of hipress.h)."""

import ctypes
import datetime
import time

import torch.distributed as dist

from hipress._library import CStore, StoreAdd, StoreWait

FAILED, MISSING = -2, -1
#: Share of a wait's timeout after which an error counts as the timeout: stores count in milliseconds.
_NEARLY = 0.9


class TorchStore:
    """Store of init_process_group(), under a prefix of this engine's own. An exception cannot pass through C: the engine reports
    that the store failed, and `error` has the reason."""

    def __init__(self, prefix: str) -> None:
        self.error = None
        self._store = dist.PrefixStore(prefix, dist.distributed_c10d._get_default_store())
        # References that keep the callbacks alive while the library opens the engine.
        self._add, self._wait = StoreAdd(self._make_entry), StoreWait(self._copy_entry)
        self.c = CStore(None, self._add, self._wait)

    def _make_entry(self, _context, name, data, size):
        try:
            self._store.set(name.decode(), ctypes.string_at(data, size).hex())
            return 1
        except Exception as error:
            self.error = error
            return -1

    def _copy_entry(self, _context, name, seconds, data, capacity):
        patience = max(seconds, 1e-3)  # some stores take 0 for no limit
        begun = time.monotonic()
        try:
            self._store.wait([name.decode()], datetime.timedelta(seconds=patience))
            content = bytes.fromhex(self._store.get(name.decode()).decode())
        except Exception as error:
            # Versions of torch raise different exceptions with different texts; a failed store raises one at once.
            if time.monotonic() - begun >= _NEARLY * patience:
                return MISSING
            self.error = error
            return FAILED
        if len(content) <= capacity:
            ctypes.memmove(data, content, len(content))
        return len(content)
