"""Reads kernels that nvdisasm printed: instructions, control flow, and the most bytes that a thread moves on any path."""

import collections
import dataclasses
import functools
import re

INSTRUCTION = re.compile(r"^\s*/\*[0-9a-f]{4,}\*/\s+(?:@(!?U?P\w+)\s+)?([A-Z][\w.]*)\s*(.*?)\s*;")
LABEL = re.compile(r"^([.$\w]+):$")
TARGET = re.compile(r"`\(([.$\w]+)\)")
REGISTER = re.compile(r"^U?R\d+$")
PREDICATE = re.compile(r"^!?U?P[\dT]$")
NUMBER = re.compile(r"^-?(?:0x[0-9a-f]+|\d+)$")
#: Instructions that may set predicates, as first or second operand.
SETS_PREDICATES = re.compile(r"^U?(?:[IFDH]SETP|HSETP2|PSETP|PLOP3|LOP3|FCHK|VOTE|IADD3|R2P|SHFL|MATCH|ISCADD|LEA|UISETP|IADD)")
LOADS, STORES = ("LDG", "LD"), ("STG", "ST")
ENDS = ("EXIT", "RET", "BRA", "BRX", "JMP", "JMX")


@dataclasses.dataclass(frozen=True)
class Instruction:
    """One instruction; `target` is the label of a branch."""
    guard: str
    opcode: str
    operands: tuple[str, ...]
    targets: tuple[str, ...]

    @property
    def name(self) -> str:
        return self.opcode.partition(".")[0]

    @property
    def jumps(self) -> bool:
        """True for a branch. A call of a label within the same function counts as a branch: it does not return."""
        return self.name in ("BRA", "BRX") or self.name == "CALL" and any(each.startswith(".L") for each in self.targets)

    @property
    def bits(self) -> int:
        """Width in bits of a memory access of one thread."""
        width = re.findall(r"\.(?:[US]?(8|16)|(32|64|128|256))(?=\.|$)", self.opcode)
        return int("".join(width[-1])) if width else 32


@dataclasses.dataclass(frozen=True)
class Moved:
    """Bytes that a thread reads and writes in global memory."""
    read: float = 0
    written: float = 0

    def __add__(self, other: "Moved") -> "Moved":
        return Moved(self.read + other.read, self.written + other.written)

    def times(self, count: float) -> "Moved":
        return Moved(self.read * count, self.written * count)

    @property
    def all(self) -> float:
        return self.read + self.written


@dataclasses.dataclass(frozen=True)
class Loop:
    """A natural loop. `trips` is its number of rounds; None if it depends on data."""
    header: int
    latches: tuple[int, ...]
    blocks: frozenset[int]
    trips: int | None


def _value(operand: str) -> int | None:
    """Value of a constant operand, as a signed number of 32 bits; None for other operands."""
    if operand in ("RZ", "URZ"):
        return 0
    return (int(operand, 0) + (1 << 31)) % (1 << 32) - (1 << 31) if NUMBER.match(operand) else None


class Kernel:
    """Instructions of one kernel as a graph of basic blocks."""

    def __init__(self, name: str, lines: list[str]):
        self.name = name
        self.blocks: list[list[Instruction]] = []
        starts: dict[str, int] = {}
        waiting, block = [], []
        for line in lines:
            if label := LABEL.match(line):
                if block:
                    self.blocks.append(block)
                    block = []
                waiting.append(label[1])
                continue
            if not (found := INSTRUCTION.match(line)):
                continue
            starts.update(dict.fromkeys(waiting, len(self.blocks)))
            waiting = []
            guard, opcode, operands = found.groups()
            made = Instruction(guard or "", opcode, tuple(re.split(r",\s*", operands)), tuple(TARGET.findall(operands)))
            block.append(made)
            if made.name in ENDS or made.jumps:
                self.blocks.append(block)
                block = []
        if block:
            self.blocks.append(block)
        self.after = [self._after(number, starts) for number in range(len(self.blocks))]

    def _after(self, number: int, starts: dict[str, int]) -> list[int]:
        """Blocks that may follow a block. A call is followed by the next block: functions that nvcc calls, such as divisions, move
        no bytes."""
        last = self.blocks[number][-1]
        found = [starts[target] for target in last.targets if target in starts] if last.jumps else []
        conditional = last.guard or last.name == "BRA" and len(last.operands) > 1
        if number + 1 < len(self.blocks) and (last.name not in ENDS and not last.jumps or conditional):
            found.append(number + 1)
        return found

    @property
    def instructions(self) -> list[Instruction]:
        return [instruction for block in self.blocks for instruction in block]

    def count(self, *names: str) -> int:
        return sum(instruction.name in names for instruction in self.instructions)

    def widest(self, names: tuple[str, ...]) -> int:
        """Bits of the widest access; 0 without one."""
        return max((each.bits for each in self.instructions if each.name in names), default=0)

    @property
    def barriers(self) -> int:
        """Number of different barriers of the thread block."""
        return len({each.operands[0] for each in self.instructions if each.name in ("BAR", "UBAR")})

    @functools.cached_property
    def _order(self) -> list[int]:
        """Reachable blocks in topological order, without the edges back to loop headers."""
        seen, finished, stack = {0}, [], [(0, iter(self.after[0]))]
        while stack:
            block, rest = stack[-1]
            following = next((each for each in rest if each not in seen), None)
            if following is None:
                finished.append(block)
                stack.pop()
            else:
                seen.add(following)
                stack.append((following, iter(self.after[following])))
        return finished[::-1]

    @functools.cached_property
    def loops(self) -> list[Loop]:
        """Loops, inner ones first."""
        place = {block: index for index, block in enumerate(self._order)}
        before: dict[int, list[int]] = collections.defaultdict(list)
        latches: dict[int, list[int]] = collections.defaultdict(list)
        for block in self._order:
            for following in self.after[block]:
                before[following].append(block)
                if place[following] <= place[block]:
                    latches[following].append(block)
        found = []
        for header, of_loop in latches.items():
            inside, waiting = {header}, list(of_loop)
            while waiting:
                block = waiting.pop()
                if block not in inside:
                    inside.add(block)
                    waiting += before[block]
            found.append(Loop(header, tuple(of_loop), frozenset(inside), self._trips(header, of_loop, inside, place)))
        return sorted(found, key=lambda loop: len(loop.blocks))

    def _trips(self, header: int, latches: list[int], inside: set[int], place: dict[int, int]) -> int | None:
        """Number of rounds of a loop that counts from one constant to another; None for any other loop."""
        if len(latches) != 1:
            return None
        # The test is in the branch back, or in the branch out of the loop just before it.
        last = self.blocks[latches[0]][-1]
        before = [block for block in inside if latches[0] in self.after[block]]
        if not last.guard and len(last.operands) == 1 and len(before) == 1:
            last = self.blocks[before[0]][-1]
        guard = (last.guard or last.operands[0]).lstrip("!")
        body = [each for block in sorted(inside, key=place.__getitem__) for each in self.blocks[block]]
        copies = [each.operands[4] for each in body if each.name == "PLOP3" and guard == each.operands[0]
                  and each.operands[1:4] == ("PT", "PT", "PT")]
        guard = copies[-1] if copies else guard  # a copy of a uniform predicate
        tests = [index for index, each in enumerate(body) if each.name in ("ISETP", "UISETP") and guard in each.operands[:2]]
        if not tests:
            return None
        test = body[tests[-1]]
        sides = [operand.removesuffix(".reuse") for operand in test.operands[2:4]]
        counters = [side for side in sides if REGISTER.match(side)]
        limits = [_value(side) for side in sides if _value(side) is not None]
        if len(counters) != 1 or len(limits) != 1 or not re.match(r"U?ISETP\.(NE|LT|GE)\b", test.opcode):
            return None
        counter, limit, read_at = counters[0], limits[0], tests[-1]

        def sums_of(register: str) -> list[tuple[int, str, int]]:
            """Instructions in the loop that set this register to the sum of a register and a constant."""
            return [(index, terms[0].removesuffix(".reuse"), value) for index, each in enumerate(body)
                    if each.operands[0] == register and each.name in ("IADD3", "VIADD", "UIADD3", "IADD")
                    and len(terms := [term for term in each.operands[1:] if not PREDICATE.match(term)]) > 1
                    and (value := _value(terms[1]))]

        steps = sums_of(counter)
        if len(steps) == 1 and steps[0][1] != counter:  # the tested register is the counter plus a constant
            read_at, counter, apart = steps[0]
            limit, steps = limit - apart, sums_of(counter)
        first = self._constant(counter, header, place)
        if len(steps) != 1 or steps[0][1] != counter or first is None:
            return None
        at, _, step = steps[0]
        rounds = -(-(limit - first) // step) + (at > read_at)
        return rounds if 0 < rounds <= 1 << 16 else None

    def _constant(self, register: str, header: int, place: dict[int, int]) -> int | None:
        """Constant that a register has before a loop: the last one moved to it in the order of the program."""
        for block in sorted((each for each in place if place[each] < place[header]), key=place.__getitem__, reverse=True):
            for each in reversed(self.blocks[block]):
                pair = re.match(r"^(U?R)(\d+)$", each.operands[0])
                if each.opcode.startswith("CS2R") and pair and register in (each.operands[0], f"{pair[1]}{int(pair[2]) + 1}"):
                    return 0
                if each.operands[0] != register:
                    continue
                if each.opcode.startswith("HFMA2") and each.operands[1:] == ("-RZ", "RZ", "0", "0"):
                    return 0
                return _value(each.operands[-1]) if each.opcode.startswith(("MOV", "UMOV", "IMAD.MOV")) else None
        return None

    def _moved_by(self, block: int, first: int = 0) -> Moved:
        """Bytes that a block moves from its instruction `first` on. If some accesses have a predicate and others have its opposite,
        only the group that moves more counts."""
        version: collections.Counter[str] = collections.Counter()
        sums: dict[tuple[str, int], dict[bool, Moved]] = collections.defaultdict(lambda: {True: Moved(), False: Moved()})
        for each in self.blocks[block][first:]:
            if each.name in LOADS + STORES:
                size = each.bits / 8
                predicate = each.guard.lstrip("!")
                of_predicate = sums[predicate, version[predicate]]
                moved = Moved(read=size) if each.name in LOADS else Moved(written=size)
                of_predicate[each.guard.startswith("!")] += moved
            elif SETS_PREDICATES.match(each.name):
                version.update(operand for operand in each.operands[:2] if re.match(r"^U?P\d$", operand))
        return sum((max(both.values(), key=lambda moved: moved.all) for both in sums.values()), Moved())

    def moved(self, avoided: tuple[str, ...] = (), rounds: int = 1, prepares: bool = False) -> Moved | None:
        """Bytes that a thread moves on the path that moves most; None if no path is left.

        A loop between constants counts all its rounds; any other loop counts `rounds`. Paths through an instruction of `avoided` do
        not count. With `prepares`, nothing counts before the thread block's first barrier."""
        order = [block for block in self._order if not any(each.name in avoided for each in self.blocks[block])]
        place = {block: index for index, block in enumerate(order)}
        weight = {block: self._moved_by(block) for block in order}
        if prepares:
            met: set[int] = set()
            for block in order:
                names = [each.name for each in self.blocks[block]]
                if block not in met:
                    first = names.index("BAR") if "BAR" in names else len(names)
                    weight[block] = self._moved_by(block, first)
                if block in met or "BAR" in names:
                    met.update(self.after[block])

        def longest(start: int, inside: set[int]) -> dict[int, Moved]:
            best = {start: weight[start]}
            for block in order[place[start]:]:
                if block not in best:
                    continue
                for following in self.after[block]:
                    if following in inside and place[following] > place[block]:
                        moved = best[block] + weight[following]
                        if following not in best or moved.all > best[following].all:
                            best[following] = moved
            return best

        if not order or order[0] != 0:
            return None
        for loop in self.loops:
            if loop.header not in weight:
                continue
            best = longest(loop.header, set(loop.blocks) & set(order))
            round_of = max((best[latch] for latch in loop.latches if latch in best), key=lambda moved: moved.all, default=Moved())
            weight[loop.header] += round_of.times((loop.trips or rounds) - 1)
        best = longest(0, set(order))
        ends = [best[block] for block in best if not self.after[block] or self.blocks[block][-1].name in ("EXIT", "RET")]
        return max(ends, key=lambda moved: moved.all, default=None)


def kernels(text: str) -> list[Kernel]:
    """Kernels that nvdisasm printed, by their mangled names."""
    found = []
    for part in re.split(r"^\s*\.section\s+\.text\.", text, flags=re.MULTILINE)[1:]:
        name, _, rest = part.partition(",")
        found.append(Kernel(name, rest.splitlines()))
    return found
