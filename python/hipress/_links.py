"""Second engine of a job that plans itself, beside the one that averages gradients. It exchanges reports, measures the links by
bursts and short messages, and finds a lost rank within seconds."""

import dataclasses
import time
from typing import Any, Callable, List, Sequence

import torch

from hipress import _library
from hipress._control import Links, Report
from hipress._job import Job, Wish
from hipress._engine import Error, RankLost
from hipress._library import CTensor, Gradient

#: Number of values in a report.
_FIELDS = 4
#: Numbers of the engine's gradients: reports, and messages, with their elements per rank.
_REPORTS, _SMALL, _SHORT, _MEDIUM = range(4)
_ELEMENTS = {_SMALL: 64, _SHORT: 1 << 15, _MEDIUM: 1 << 17}
#: All-reduces of a short message in a measurement; the first is a warm-up.
_TIMES = {_SHORT: 3, _MEDIUM: 4}
#: Time of the medium message, in seconds, up to which it is the short message.
_SHORT_S = 0.004
#: Longest search for a lost rank, in seconds.
_FOUND_S = 10.0


class LinkEngine:
    """Engine for reports and bursts. All ranks make it together, as with Job.meet(). `wish_of` makes this rank's wish, whose
    gradients, device, plan and group size the engine replaces. Raises the errors of Job.meet()."""

    def __init__(self, group: Any, wish_of: Callable[[], Wish]) -> None:
        size = torch.distributed.get_world_size(group)
        elements = {_REPORTS: size * _FIELDS, **{one: size * count for one, count in _ELEMENTS.items()}}

        def wish() -> Wish:
            made = wish_of()
            made.gradients = [Gradient(f"link {one}", (count,)) for one, count in sorted(elements.items())]
            made.device, made.plan, made.group_bytes = -1, "none", 0
            return made

        self.job, _ = Job.meet(group, wish)
        self.engine = self.job.engine
        self._memory = [torch.zeros(count) for _, count in sorted(elements.items())]
        self._tensors = [self._tensor_of(one) for one in self._memory]
        self._posted = False

    @staticmethod
    def _tensor_of(memory: torch.Tensor) -> Any:
        tensors = (CTensor * 1)()
        tensors[0].data, tensors[0].elements, tensors[0].type = memory.data_ptr(), memory.numel(), _library.FLOAT32
        return tensors

    @property
    def is_posted(self) -> bool:
        """True if a report was posted and has not been collected."""
        return self._posted

    def post(self, report: Report) -> None:
        """Sends this rank's report without waiting. collect() completes it."""
        memory = self._memory[_REPORTS].zero_().view(self.job.ranks, _FIELDS)
        memory[self.job.rank] = torch.tensor([report.kept_s, report.tried_s, report.busy_s, report.ready])
        self.engine.begin(_REPORTS, self._tensors[_REPORTS])
        self._posted = True

    def collect(self) -> List[Report]:
        """Waits for the posted reports of all ranks, and returns them by rank. Every rank gets the same bits. Raises RankLost or
        Error if the job fails meanwhile."""
        self.engine.end(_REPORTS, 1)
        self._posted = False
        means = self._memory[_REPORTS].view(self.job.ranks, _FIELDS) * self.job.ranks
        return [Report(*row) for row in means.tolist()]

    def burst(self) -> Links:
        """Measures the links by bursts of all-reduces. All ranks call it together, and get the same result."""
        links = Links(*self.engine.measure_links())
        return dataclasses.replace(links, short_s=self.feel(links))

    def feel(self, links: Links) -> float:
        """Returns the time of an all-reduce of a short message in seconds. Its size depends on these links only, so later times are
        comparable to links.short_s. All ranks call it together, and get the same result."""
        hops = 2 * (self.job.ranks - 1)
        medium_s = hops * (links.latency_s + 4 * _ELEMENTS[_MEDIUM] / links.bandwidth)
        return self._shared([self._time(_MEDIUM if medium_s <= _SHORT_S else _SHORT)])[0]

    def _shared(self, values: Sequence[float]) -> List[float]:
        """Returns the mean over all ranks of values[0], the only value, as a list of one. It travels as kept_s of a report."""
        self.post(Report(values[0], 0.0, 0.0, 0.0))
        reports = self.collect()
        return [sum(report.kept_s for report in reports) / len(reports)]

    def _time(self, which: int) -> float:
        """Returns the shortest time of an all-reduce of gradient number `which` in seconds, without the warm-up."""
        seconds = []
        for _ in range(_TIMES[which]):
            began = time.perf_counter()
            self.engine.begin(which, self._tensors[which])
            self.engine.end(which, 1)
            seconds.append(time.perf_counter() - began)
        return min(seconds[1:])

    def lost(self, error: BaseException) -> BaseException:
        """Returns RankLost if a rank is found lost within _FOUND_S. Otherwise ends the job on all ranks, and returns `error`."""
        try:
            self.engine.begin(_SMALL, self._tensors[_SMALL])
            self.engine.within(_SMALL, 1, _FOUND_S)
        except RankLost as lost:
            return lost
        except Error:
            pass
        self.engine.abort_for(error)
        return error

    def close(self) -> None:
        self.engine.close()


__all__ = ["LinkEngine"]
