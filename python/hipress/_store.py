"""PyTorch's key-value store as the place where the ranks of an engine meet (hipress_store of hipress.h)."""

import ctypes
import datetime
import time

import torch.distributed as dist

from hipress._library import CStore, StoreAdd, StoreWait

FAILED, MISSING = -2, -1
#: Of the time that a wait has, from which on an error is the end of that time: stores count in milliseconds.
_NEARLY = 0.9


class TorchStore:
    """The store that init_process_group() made, under a prefix that is this engine's alone. An exception cannot pass through C:
    the engine says that the store failed, and `error` is why."""

    def __init__(self, prefix: str) -> None:
        self.error = None
        self._store = dist.PrefixStore(prefix, dist.distributed_c10d._get_default_store())
        # Held here: the library calls them as long as the engine is opened.
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
        patience = max(seconds, 1e-3)  # 0 is no limit to some stores
        begun = time.monotonic()
        try:
            self._store.wait([name.decode()], datetime.timedelta(seconds=patience))
            content = bytes.fromhex(self._store.get(name.decode()).decode())
        except Exception as error:
            # Versions of torch raise several kinds of exception, in several words; a store that has failed says so at once.
            if time.monotonic() - begun >= _NEARLY * patience:
                return MISSING
            self.error = error
            return FAILED
        if len(content) <= capacity:
            ctypes.memmove(data, content, len(content))
        return len(content)
