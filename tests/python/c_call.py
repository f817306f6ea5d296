"""Calls hipress_call() of the C library, for tests that compare its answers with those of Python and of the tools."""

import ctypes
import json
from typing import Any, Dict

import hipress


def of_c(request: Dict[str, Any]) -> Dict[str, Any]:
    """Calls hipress_call(), and returns its document."""
    library = ctypes.CDLL(str(hipress.library_path()))
    result = ctypes.c_void_p()
    library.hipress_call(json.dumps(request).encode(), ctypes.byref(result))
    document = json.loads(ctypes.string_at(result.value))
    library.hipress_free_result(result)
    return document
