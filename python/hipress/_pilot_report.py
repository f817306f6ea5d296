"""hipress.pilot: trains a script under several plans, and takes the losses that such a script reports."""

import os
from typing import Any, Callable, Dict, List, Optional, Sequence, Union

#: Takes a loss, and whether it is of held-out data, where a pilot runs this script.
receiver: Optional[Callable[[float, bool], None]] = None


class PilotFunction:
    """Trains a script as it is, once under each plan and seed, and tells how many steps each plan needs for the loss of plain
    DDP, as `python -m hipress.pilot` does. Returns what the output has (docs/learning.md).

    script     the script, or a list of it and its arguments, of which {seed} becomes the seed
    ranks      ranks that average their gradients, at least 2
    steps      steps of the optimizer in each run
    plans      plan files and algorithms; none is always among them
    seeds      runs of each plan
    output     file to write, and to go on from
    jobs       runs at a time
    is_module  the script is the name of a module
    say        takes lines about the runs and the time that is left; default: nobody

    InvalidRequest for a wrong argument and for a script that cannot be piloted, Error for a run that failed; finished runs are
    kept in the output."""

    def __call__(self, script: Union[str, Sequence[str]], *, ranks: int, steps: int, plans: Sequence[str], seeds: int = 1,
                 output: Union[str, "os.PathLike[str]"] = "pilot.yaml", jobs: int = 1, is_module: bool = False,
                 say: Optional[Callable[[str], object]] = None) -> Dict[str, Any]:
        from hipress import _pilot

        words: List[str] = [script] if isinstance(script, str) else list(map(str, script))
        request = _pilot.Request(words, is_module, ranks, steps, seeds, _pilot.plans_of(",".join(plans)), os.fspath(output),
                                 jobs)
        return _pilot.Pilot(request, say or (lambda _: None)).run()

    def report(self, loss: Any, held_out: bool = False) -> None:
        """Tells the pilot a loss, once per step of the script: a number, or a tensor of one. Without it, the loss of a step is
        the mean of what backward() was called for. `held_out` marks a loss of data that is not trained on, at any time. Outside
        a pilot it does nothing."""
        if receiver is not None:
            receiver(float(loss), held_out)


pilot = PilotFunction()

__all__ = ["PilotFunction", "pilot"]
