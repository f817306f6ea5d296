"""hipress.pilot: trains a script under several plans, and receives the losses that the script reports."""

import os
from typing import Any, Callable, Dict, List, Optional, Sequence, Union

#: Receiver of losses while a pilot runs this script; its second argument is true for held-out data. None outside a pilot.
receiver: Optional[Callable[[float, bool], None]] = None


class PilotFunction:
    """Trains an unmodified script once under each plan and seed, and estimates the steps that each plan needs for the loss of
    plain DDP, as `python -m hipress.pilot` does. Returns the document of the output file (docs/learning.md).

    script     path of the script, or a list of path and arguments; {seed} in an argument is replaced by the seed
    ranks      ranks that average their gradients, at least 2
    steps      steps of the optimizer in each run
    plans      plan files and algorithms; none is always among them
    seeds      runs of each plan
    output     file to write; its finished runs are not repeated
    jobs       number of concurrent runs
    is_module  true if the script is the name of a module
    say        function that receives lines about the runs and the remaining time; default: no lines

    Raises InvalidRequest for a wrong argument and for a script that cannot be piloted, and Error for a run that failed; finished
    runs are kept in the output."""

    def __call__(self, script: Union[str, Sequence[str]], *, ranks: int, steps: int, plans: Sequence[str], seeds: int = 1,
                 output: Union[str, "os.PathLike[str]"] = "pilot.yaml", jobs: int = 1, is_module: bool = False,
                 say: Optional[Callable[[str], object]] = None) -> Dict[str, Any]:
        from hipress import _pilot

        words: List[str] = [script] if isinstance(script, str) else list(map(str, script))
        request = _pilot.Request(words, is_module, ranks, steps, seeds, _pilot.plans_of(",".join(plans)), os.fspath(output),
                                 jobs)
        return _pilot.Pilot(request, say or (lambda _: None)).run()

    def report(self, loss: Any, held_out: bool = False) -> None:
        """Reports a loss, a number or a tensor of one, to the pilot, once per step of the script. Without reports, the loss of a
        step is the mean of the tensors that backward() was called for. `held_out` marks a loss of data that is not trained on;
        it may come at any time. Does nothing outside a pilot."""
        if receiver is not None:
            receiver(float(loss), held_out)


pilot = PilotFunction()

__all__ = ["PilotFunction", "pilot"]
