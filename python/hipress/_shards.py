"""Collectives that gather and reduce shards as encoded messages, by means of a process group's own collectives."""

import contextlib
from typing import Any, Callable, Dict, Iterator, List, Mapping, Optional, Tuple

import torch
import torch.distributed as dist
from torch._C._distributed_c10d import Work

from hipress import _states
from hipress._codec import TYPES, Codec, Draws, aligned
from hipress._engine import Error, InvalidRequest

#: Roles of encoders, as in task graphs: for a rank's own gradient, for a partial sum, and for a gathered shard.
_OWN, _PARTIAL, _GATHERED = range(3)


class Unit:
    """Parameters of a parameter group, which are sent as one message, with the algorithms of their gather and reduction (None: raw,
    by PyTorch)."""

    def __init__(self, number: int, name: str, parameters: List[Tuple[str, int]]) -> None:
        self.number, self.name, self.parameters = number, name, parameters
        self.gather: Optional[str] = None
        self.reduction: Optional[str] = None
        self.gathers = self.reductions = 0  #: numbers of encoded gathers and reductions so far
        self.reduced: Optional[int] = None  #: elements of a reduction that has all trained parameters; None: all reductions do
        self.missing: List[str] = []  #: trained parameters without a gradient in this step, if this torch reports them

    def described(self) -> List[Any]:
        """Description that must be the same on all ranks, and in a state that is loaded."""
        return [self.name, [list(parameter) for parameter in self.parameters], self.gather, self.reduction]


class Messages:
    """State that the collectives of all units of a job share: codecs, the seed of random draws, the process groups of an exchange
    in two steps, and the failure, if any. `shard` is the number of ranks that hold all shards together."""

    def __init__(self, seed: int, shard: int) -> None:
        self.seed, self.shard = seed, shard
        self._codecs: Dict[str, Codec] = {}
        self.node = dist.get_rank()
        self.failure: Optional[Error] = None
        self.within: Any = None  #: group of neighbours that exchange first; None: all ranks of a group exchange at once
        self.between: Any = None  #: group that then exchanges the neighbours' sums

    def codec(self, algorithm: str) -> Codec:
        """Returns the codec of an algorithm, one for all units."""
        if algorithm not in self._codecs:
            self._codecs[algorithm] = Codec(algorithm, self.seed)
        return self._codecs[algorithm]

    def restore(self, states: Mapping[str, torch.Tensor]) -> None:
        """Restores the states that Codec.saved() returned, by algorithm. Raises InvalidRequest unless they are states of the codecs
        in use, and changes nothing then."""
        if states.keys() != self._codecs.keys():
            _states.refuse(f"the state is of the algorithms {sorted(map(str, states))}, and here are {sorted(self._codecs)}")
        restored = {algorithm: Codec(algorithm, self.seed) for algorithm in states}
        for algorithm, saved in states.items():
            restored[algorithm].restore(saved)
        self._codecs = restored

    @property
    def codecs(self) -> Dict[str, Codec]:
        """Codecs in use, by algorithm."""
        return self._codecs

    @contextlib.contextmanager
    def ending(self) -> Iterator[None]:
        """Keeps the first exception within the block as the failure, which every later call raises again."""
        if self.failure is not None:
            raise self.failure
        try:
            yield
        except BaseException as error:
            self.failure = error if isinstance(error, Error) else Error(f"the job was ended by {type(error).__name__}: {error}")
            raise

    def encode(self, algorithm: str, values: torch.Tensor, parts: int, draws: Draws, keep: bool) -> Tuple[torch.Tensor, List[int]]:
        """Encodes equal parts of the values. Returns a tensor on the host, of shape (parts, bytes), with a message in each row, and
        the messages' sizes in bytes."""
        _require_type(values)
        codec = self.codec(algorithm)
        slots = torch.empty((parts, aligned(codec.size(values.numel() // parts))), dtype=torch.uint8)
        return slots, codec.encode(values.detach().cpu().contiguous(), slots, draws, keep)


def _require_type(values: torch.Tensor) -> None:
    if values.dtype not in TYPES:
        raise InvalidRequest(f"a group has parameters of several types, or of one that is not compressed ({values.dtype}): "
                             "give fully_shard() modules of float32, float16 or bfloat16 alone, or plan these raw")


@contextlib.contextmanager
def _on_host(output: torch.Tensor) -> Iterator[torch.Tensor]:
    """Yields a contiguous tensor on the host to write the output's values to: the output itself, or one that is then copied to
    it."""
    if output.device.type == "cpu" and output.is_contiguous():
        yield output
        return
    values = torch.empty(output.shape, dtype=output.dtype)
    yield values
    output.copy_(values)


class DecodingWork(Work):
    """Collective in progress, with the tensor that it sends and a function to call at its end."""

    def __init__(self, messages: Messages, work: Any, sent: torch.Tensor, then: Callable[[], None]) -> None:
        super().__init__()
        self._messages, self._work, self._sent = messages, work, sent
        self._then: Optional[Callable[[], None]] = then

    def wait(self, *timeout: Any) -> bool:
        """Waits until the output is complete."""
        with self._messages.ending():
            ended = bool(self._work.wait(*timeout))
            if self._then is not None:
                self._then()
            self._then = None
            return ended


class _Collective:
    """Replacement of a module's own collective. It uses the module's own to allocate memory and for raw messages."""

    def __init__(self, messages: Messages, unit: Unit, plain: Any) -> None:
        self._messages, self._unit, self.plain = messages, unit, plain

    def allocate(self, *size: Any, **named: Any) -> torch.Tensor:
        """Allocates by the module's own collective."""
        found: torch.Tensor = self.plain.allocate(*size, **named)
        return found


class Gather(_Collective):
    """All-gathers a unit's shards as encoded messages."""

    def __call__(self, output_tensor: torch.Tensor, input_tensor: torch.Tensor, group: Any, async_op: bool = False) -> Any:
        algorithm = self._unit.gather
        # A second gather, among neighbours that keep parts between forward and backward, sends decoded values.
        again = group.size() != self._messages.shard
        half = self._messages.codec(algorithm).half if algorithm is not None else None
        if algorithm is None or input_tensor.dtype == half or (again and half is None):
            return self.plain(output_tensor=output_tensor, input_tensor=input_tensor, group=group, async_op=async_op)
        with self._messages.ending():
            if half is not None:
                work = self._cast(self._messages, output_tensor, input_tensor, group, half)
            else:
                work = self._encoded(algorithm, output_tensor, input_tensor, group)
            if async_op:
                return work
            work.wait()
            return None

    @staticmethod
    def _cast(messages: Messages, output: torch.Tensor, shard: torch.Tensor, group: Any, half: torch.dtype) -> DecodingWork:
        sent = shard.to(half)
        arrived = torch.empty(output.shape, dtype=half, device=output.device)

        def widen() -> None:
            output.copy_(arrived)

        return DecodingWork(messages, dist.all_gather_into_tensor(arrived, sent, group=group, async_op=True), sent, widen)

    def _encoded(self, algorithm: str, output: torch.Tensor, shard: torch.Tensor, group: Any) -> DecodingWork:
        unit, messages = self._unit, self._messages
        slots, sizes = messages.encode(algorithm, shard, 1, Draws(unit.number, messages.node, _GATHERED, unit.gathers), False)
        unit.gathers += 1
        codec, ranks = messages.codec(algorithm), group.size()
        lengths = _all_lengths(sizes[0], output.device, group) if codec.varies else sizes * ranks
        room = aligned(max(lengths))
        sent = slots[0, :room].to(output.device)
        arrived = torch.empty(ranks * room, dtype=torch.uint8, device=output.device)

        def decode() -> None:
            with _on_host(output) as values:
                codec.decode(arrived.cpu().view(ranks, room), lengths, values)

        return DecodingWork(messages, dist.all_gather_into_tensor(arrived, sent, group=group, async_op=True), sent, decode)


class Reduction(_Collective):
    """Reduce-scatters a unit's gradients: sends an encoded message to each rank, which adds in fp32."""

    def __call__(self, output_tensor: torch.Tensor, input_tensor: torch.Tensor, group: Any, op: Any, async_op: bool = False) -> Any:
        algorithm = self._unit.reduction
        half = self._messages.codec(algorithm).half if algorithm is not None else None
        if algorithm is None or input_tensor.dtype == half or group.size() == 1:
            return self.plain(output_tensor=output_tensor, input_tensor=input_tensor, group=group, op=op, async_op=async_op)
        with self._messages.ending():
            divisor = _divisor_of(op, group.size())
            if half is not None:
                self._cast(output_tensor, input_tensor, group, half, divisor)
            else:
                self._encoded(algorithm, output_tensor, input_tensor, group, divisor)
            return None

    @staticmethod
    def _cast(output: torch.Tensor, gradient: torch.Tensor, group: Any, half: torch.dtype, divisor: float) -> None:
        """Reduces in half precision. Values are divided before they are added, so that sums stay in range."""
        mean = torch.empty(output.shape, dtype=half, device=output.device)
        dist.reduce_scatter_tensor(mean, gradient.div(divisor).to(half), op=dist.ReduceOp.SUM, group=group)
        output.copy_(mean)

    def _encoded(self, algorithm: str, output: torch.Tensor, gradient: torch.Tensor, group: Any, divisor: float) -> None:
        messages, step = self._messages, self._unit.reductions
        self._require_all(algorithm, gradient)
        self._unit.reductions += 1
        if messages.within is None:
            return self._exchange(algorithm, output, gradient, group, divisor, _OWN, step)
        # Neighbours first add the shards of all ranks with the same place in their neighbourhoods. Then each sends its sums to
        # these ranks.
        size, shard = messages.within.size(), output.numel()
        ordered = gradient.view(-1, size, shard).transpose(0, 1).reshape(-1)
        partial = torch.empty(gradient.numel() // size, dtype=torch.float32, device=output.device)
        self._exchange(algorithm, partial, ordered, messages.within, 1, _OWN, step)
        return self._exchange(algorithm, output, partial, messages.between, divisor, _PARTIAL, step)

    def _require_all(self, algorithm: str, gradient: torch.Tensor) -> None:
        """Raises InvalidRequest if a parameter without a gradient is missing from the message. Later parameters then take its place
        there, and the codec would add other parameters' residuals to them."""
        whole = self._unit.reduced
        if whole is None or gradient.numel() == whole or not self._messages.codec(algorithm).keeps:
            return
        raise InvalidRequest(f"{algorithm} keeps residuals of all parameters of group '{self._unit.name}', and "
                             f"{_named(self._unit.missing)} had no gradient in this step: "
                             "call set_reduce_scatter_unused_params(True) of the model, "
                             "freeze before hipress.attach what never has one, "
                             "or reduce by a codec that keeps none, such as int4block")

    def _exchange(self, algorithm: str, output: torch.Tensor, gradient: torch.Tensor, group: Any, divisor: float, role: int,
                  step: int) -> None:
        """Sends each rank of the group its part of the gradient, and writes the sum of the parts that arrive, divided by the
        divisor, to the output."""
        messages, ranks = self._messages, group.size()
        codec = messages.codec(algorithm)
        draws = Draws(self._unit.number, messages.node, role, step)
        slots, sizes = messages.encode(algorithm, gradient, ranks, draws, codec.keeps)
        arrived = _exchanged(slots, sizes, output.device, group, codec.varies)
        with _on_host(output) as values:
            codec.add(arrived, values, divisor)


def _named(names: List[str]) -> str:
    """Formats the first name and the number of the others; "some" without names."""
    if not names:
        return "some"
    return f"'{names[0]}'" + (f" and {len(names) - 1} more" if names[1:] else "")


def _all_lengths(length: int, device: torch.device, group: Any) -> List[int]:
    """Length of every rank's message in bytes, by rank."""
    found = torch.empty(group.size(), dtype=torch.int64, device=device)
    dist.all_gather_into_tensor(found, torch.tensor([length], device=device), group=group)
    return [int(one) for one in found.tolist()]


def _exchanged(slots: torch.Tensor, sizes: List[int], device: torch.device, group: Any, varies: bool) -> List[torch.Tensor]:
    """Sends row r of bytes to rank r of the group. Returns the messages that arrive, by rank."""
    if not varies:
        arrived = torch.empty(slots.shape, dtype=torch.uint8, device=device)
        dist.all_to_all_single(arrived, slots.to(device), group=group)
        return [row[:size] for row, size in zip(arrived.cpu(), sizes)]
    lengths = torch.empty(len(sizes), dtype=torch.int64, device=device)
    dist.all_to_all_single(lengths, torch.tensor(sizes, device=device), group=group)
    theirs = [int(one) for one in lengths.tolist()]
    sent, rooms = [aligned(size) for size in sizes], [aligned(size) for size in theirs]
    packed = torch.cat([row[:size] for row, size in zip(slots, sent)]).to(device)
    flat = torch.empty(sum(rooms), dtype=torch.uint8, device=device)
    dist.all_to_all_single(flat, packed, rooms, sent, group=group)
    return [part[:size] for part, size in zip(torch.split(flat.cpu(), rooms), theirs)]


def _divisor_of(op: Any, ranks: int) -> float:
    """Divisor of a sum. FSDP requests means, sums, and sums of products with a factor (set_gradient_divide_factor). Raises
    InvalidRequest for any other operation."""
    if op == dist.ReduceOp.AVG:
        return float(ranks)
    if op == dist.ReduceOp.SUM:
        return 1.0
    state = op.__getstate__() if isinstance(op, dist.ReduceOp) else None  # operation and factor, for a sum of products
    if isinstance(state, tuple) and state[0] == dist.ReduceOp.PREMUL_SUM and state[1] is not None:
        return 1.0 / float(state[1])
    raise InvalidRequest(f"gradients are reduced by {op}, and a plan averages or sums: leave it to fully_shard()")


__all__ = ["Gather", "Messages", "Reduction", "Unit"]
