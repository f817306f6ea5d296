"""Codecs of hipress.h on tensors. The caller's own collectives carry the messages."""

import ctypes
import weakref
from typing import List, Optional, Sequence

import torch

from hipress import _library, _states
from hipress._engine import check
from hipress._library import CCodecTraits, CDecode, CEncode, library

TYPES = {torch.float32: _library.FLOAT32, torch.float16: _library.FLOAT16, torch.bfloat16: _library.BFLOAT16}
_OF_NUMBERS = {number: dtype for dtype, number in TYPES.items()}
#: Alignment of messages, in bytes.
_ALIGNMENT = 16


def aligned(size: int) -> int:
    """Rounds the size of a message in bytes up to the alignment of messages."""
    return (size + _ALIGNMENT - 1) // _ALIGNMENT * _ALIGNMENT


class Draws:
    """Key of an encode's random draws and residual: role, unit, node and step."""

    __slots__ = ("node", "role", "step", "unit")

    def __init__(self, unit: int, node: int, role: int, step: int) -> None:
        self.unit, self.node, self.role, self.step = unit, node, role, step


class Codec:
    """An algorithm with the state of its encoders between steps. Tensors are contiguous and on the host."""

    def __init__(self, algorithm: str, seed: int) -> None:
        handle = ctypes.c_void_p()
        check(library().hipress_codec_open(algorithm.encode(), seed, ctypes.byref(handle)))
        self._handle = handle
        self._finalizer = weakref.finalize(self, library().hipress_codec_close, handle)
        traits = CCodecTraits()
        check(library().hipress_codec_describe(handle, ctypes.byref(traits)))
        self.varies, self.keeps = bool(traits.varies), bool(traits.keeps)
        #: Type of a message's numbers, if messages are arrays of numbers that can be added; else None.
        self.half: Optional[torch.dtype] = _OF_NUMBERS[traits.message_type] if traits.half_precision else None

    def size(self, elements: int) -> int:
        """Size of a message of that many elements, in bytes; the upper bound if sizes vary."""
        return int(library().hipress_codec_bytes(self._handle, elements))

    def encode(self, values: torch.Tensor, slots: torch.Tensor, draws: Draws, keep: bool) -> List[int]:
        """Encodes equal parts of the values, one into each row of `slots`, whose shape is (parts, bytes). With `keep`, adds and
        replaces their residuals. Returns the size of each message in bytes."""
        parts, room = slots.shape
        each = values.numel() // parts
        encodes = (CEncode * parts)()
        for place, one in enumerate(encodes):
            one.values = values.data_ptr() + place * each * values.element_size()
            one.elements, one.type = each, TYPES[values.dtype]
            one.step, one.node, one.gradient, one.role = draws.step, draws.node, draws.unit, draws.role
            one.first_element = place * each
            one.state_elements = values.numel() if keep else 0
            one.message, one.capacity = slots.data_ptr() + place * room, room
        check(library().hipress_codec_encode(self._handle, encodes, parts))
        return [one.message_bytes for one in encodes]

    def decode(self, slots: torch.Tensor, sizes: Sequence[int], values: torch.Tensor) -> None:
        """Decodes each row of `slots`, whose shape is (parts, bytes), into an equal part of the values. `sizes` are the messages'
        in bytes."""
        parts, room = slots.shape
        each = values.numel() // parts
        decodes = (CDecode * parts)()
        messages = (ctypes.c_void_p * parts)(*(slots.data_ptr() + place * room for place in range(parts)))
        lengths = (ctypes.c_int64 * parts)(*sizes)
        for place, one in enumerate(decodes):
            _point(one, messages, lengths, place, 1)
            one.values = values.data_ptr() + place * each * values.element_size()
            one.elements, one.type = each, TYPES[values.dtype]
        check(library().hipress_codec_decode(self._handle, decodes, parts))

    def add(self, messages: Sequence[torch.Tensor], values: torch.Tensor, divisor: float) -> None:
        """Writes the sum of the decoded messages, divided by the divisor, to the values. It is computed in fp32 and rounded
        once."""
        count = len(messages)
        addresses = (ctypes.c_void_p * count)(*(message.data_ptr() for message in messages))
        lengths = (ctypes.c_int64 * count)(*(message.numel() for message in messages))
        one = CDecode()
        _point(one, addresses, lengths, 0, count)
        one.values, one.elements, one.type = values.data_ptr(), values.numel(), TYPES[values.dtype]
        one.divisor = divisor
        check(library().hipress_codec_decode(self._handle, ctypes.byref(one), 1))

    def saved(self) -> torch.Tensor:
        """State of the encoders between steps, as bytes."""
        return _states.saved(lambda path: check(library().hipress_codec_save(self._handle, path.encode())))

    def restore(self, state: torch.Tensor) -> None:
        """Restores a state that saved() returned. Raises InvalidRequest for any other state, and changes nothing then."""
        _states.require_bytes("a codec", "state", state)
        _states.restore(state, lambda path: check(library().hipress_codec_load(self._handle, path.encode())))


def _point(decode: CDecode, messages: "ctypes.Array[ctypes.c_void_p]", lengths: "ctypes.Array[ctypes.c_int64]", first: int,
           count: int) -> None:
    """Points a decode to `count` messages, starting at place `first` of the lists."""
    decode.messages = ctypes.addressof(messages) + first * ctypes.sizeof(ctypes.c_void_p)
    decode.message_bytes = ctypes.addressof(lengths) + first * ctypes.sizeof(ctypes.c_int64)
    decode.count = count
