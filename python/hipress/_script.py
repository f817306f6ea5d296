"""Runs a training script and captures its models, in this process and in those that it starts with multiprocessing."""

import contextlib
import functools
import multiprocessing.process
import os
import pathlib
import runpy
import sys
import tempfile
import types
import weakref

#: Script of this process. A forked child begins with its parent's.
_current = None
#: Number of calls of one module after which the search for modules ends if no optimizer has marked the end of a step.
_LOOKED_FOR = 16


def _say(text: str) -> None:
    print(f"hipress.capture: {text}", file=sys.stderr)


class _Candidate:
    """Module that the script trains as a whole: one that it called, or the smallest module with all parameters of its
    optimizers."""

    def __init__(self, module, capture):
        self.module, self.capture = module, capture
        self.called_variable = self.variable = _variable_of(module)
        self.calls = 0
        # Wanted parameters with their variables, by id: those that its optimizers have, or that got a gradient in a pass with its own.
        self.wanted = {}
        self.found = []  # parameters that got a gradient in the last backward pass and are not yet in `wanted`
        self.passes_with = {}  # number of shared backward passes, by other candidate
        self.refused = ""  # reason why it does not cover all wanted parameters

    @property
    def names(self) -> set:
        return {name for name in (self.variable, self.called_variable, type(self.module).__name__, self.capture.name) if name}

    def describe(self, index: int) -> str:
        elements = sum(parameter.numel() for parameter in self.capture.parameters.values())
        variable = f"{self.variable}, " if self.variable else ""
        return f"module {index} ({variable}{self.capture.name}, {elements} elements)"

    def parameters(self) -> set:
        return {id(parameter) for parameter in self.capture.parameters.values()}

    def missing(self) -> list:
        """Wanted parameters that the module lacks, and their variables."""
        own = self.parameters()
        return [one for number, one in self.wanted.items() if number not in own]

    def want(self, parameters: list) -> None:
        """Captures the smallest module that has these parameters and all that were wanted before."""
        from hipress import _trained
        from hipress._capture import unwrapped

        new = [parameter for parameter in parameters if id(parameter) not in self.wanted]
        self.wanted.update((id(parameter), (parameter, _variable_of(parameter))) for parameter in new)
        if not new or not self.missing():
            return
        whole = unwrapped(_trained.holder(self.capture.model, [parameter for parameter, _ in self.wanted.values()], _variable_of))
        try:
            self.capture.widen(whole)
            self.variable = _variable_of(whole)
        except ValueError as error:  # a model file cannot express the type of a parameter
            self.refused = f": {error}"

    def is_trained_with(self, other, passes: int) -> bool:
        """True if the two share a loss: all backward passes of both, `passes` in number, were shared, and optimizers stepped
        both."""
        both = (self.capture, other.capture)
        return all(one.backward_passes == passes and one.optimizers and one.seen_steps for one in both)

    def is_together(self) -> str:
        """Sentence that explains the use of a model of several modules; empty for one module."""
        from hipress._trained import Together

        return (f"It is of {self.capture.name}, which are trained as one: a plan of it is for a DistributedDataParallel of one "
                "module that has them") if isinstance(self.capture.model, Together) else ""

    def lacks(self) -> str:
        """Sentence about parameters that its optimizers also train but it lacks; empty if there are none."""
        from hipress import _trained

        missing = self.missing()
        if not missing:
            return ""
        return (f"It is not of the whole: optimizers also train {_trained.described(*zip(*missing))} that "
                f"{'are left out' + self.refused if self.refused else 'no module has: make them parameters of the module'}")


class _NoSuchModule(ValueError):
    """Error: the requested module is not one that is trained."""


class Script:
    """Trained models of a script: modules that it calls itself, in training mode, and the optimizers that hold their parameters."""

    def __init__(self, settings: dict):
        self.settings = settings
        self.handle, self.looking = None, False
        self.forget()

    def forget(self) -> None:
        """Drops all candidates and optimizers, which belong to the parent process."""
        for candidate in getattr(self, "candidates", []):
            candidate.capture.stop()
        self.optimizers = []
        self.candidates, self.refused = [], []
        self.rank = None  # rank of this process when the last model was found
        self.written = None  # candidate whose model file was written before the script's end
        self.claimed = False  # true if this process writes the file
        self.seen = weakref.WeakSet()
        if self.handle is not None:
            self.handle.remove()
            self._look()

    def install(self) -> None:
        global _current
        import torch

        _current = self
        created = torch.optim.Optimizer.__init__
        started = multiprocessing.process.BaseProcess.__init__

        def create(optimizer, *arguments, **options):
            created(optimizer, *arguments, **options)
            self.optimizers.append(weakref.ref(optimizer))
            if self.candidates:
                self._watch_optimizers()

        def start(process, *arguments, **options):
            started(process, *arguments, **options)
            if getattr(process, "_target", None) is not None:
                process._target = Child(process._target, self.settings)

        if hasattr(torch.nn.Module, "compile"):
            compiled = torch.nn.Module.compile

            def compile_module(module, *arguments, **options):
                from hipress._capture import _CompiledCall

                compiled(module, *arguments, **options)
                _CompiledCall(module, lambda *_: self._on_call(module, ()))

            torch.nn.Module.compile = compile_module
        if hasattr(torch, "compile"):
            torch.compile = self._compile_seen(torch.compile)
        torch.optim.Optimizer.__init__ = create
        multiprocessing.process.BaseProcess.__init__ = start
        self._look()

    def _compile_seen(self, compile_it):
        """Wraps torch.compile, to watch the modules of a function before it is compiled. The hooks break the function's graph."""
        import torch

        @functools.wraps(compile_it)
        def compile_seen(model=None, **options):
            if model is None:
                return lambda function: compile_seen(function, **options)
            if isinstance(model, (torch.nn.Module, type)):
                return compile_it(model, **options)
            compiled = compile_it(model, **{**options, "fullgraph": False})

            @functools.wraps(model)
            def call(*arguments, **named):
                if self.looking and not _is_compiling():
                    for module in _modules_of(model, (arguments, named)):
                        self._on_call(module, ())
                return compiled(*arguments, **named)

            return call

        return compile_seen

    def _look(self) -> None:
        from torch.nn.modules.module import register_module_forward_pre_hook

        self.looking = True
        self.handle = register_module_forward_pre_hook(self._on_call)

    def _on_call(self, module, _inputs) -> None:
        if _is_compiling():  # the compiler runs this code
            return
        import torch

        if module in self.seen:
            self._count(module)
            return
        if not torch.is_grad_enabled() or not module.training:
            return
        if not any(parameter.requires_grad for parameter in module.parameters()):
            return
        self.seen.update(module.modules())
        self._add(module)
        self._watch_optimizers()

    def _add(self, module) -> None:
        from hipress._capture import Capture

        from hipress._trained import lightning_module_of

        self.rank = rank()
        whole = lightning_module_of(module)
        own = {id(parameter) for parameter in module.parameters() if parameter.requires_grad and parameter.numel() > 0}
        for candidate in self.candidates:
            if candidate.capture.model is whole or own <= candidate.parameters():
                candidate.capture.also_called(module)
                return
        options = {key: self.settings[key] for key in ("warmup", "steps", "bucket_mb", "memory")}
        try:
            capture = Capture(module if whole is None else whole, None, called=[module], say=_say if self.rank == 0 else _nothing,
                              **options)
        except ValueError as error:
            self.refused.append(f"{type(module).__name__}: {error}")
            return
        candidate = _Candidate(module, capture)
        capture.when_complete, capture.when_passed = self._write_early, lambda: self._on_pass(candidate)
        capture.start()
        self.candidates.append(candidate)

    def _held(self) -> list:
        """Optimizers that are alive, with the parameters of each."""
        from hipress._trained import held_by

        alive = [optimizer for reference in self.optimizers if (optimizer := reference()) is not None]
        return [(optimizer, held_by([optimizer])) for optimizer in alive]

    def _on_pass(self, candidate) -> None:
        """Records parameters with gradients that optimizers hold and no called module has. Counts the passes shared with other
        candidates."""
        if self.looking:
            owned = set().union(*(one.parameters() for one in self.candidates))
            candidate.found += [one for _, held in self._held() for one in held if one.grad is not None and id(one) not in owned]
            for other in self.candidates:
                if other is not candidate and other.capture.is_in_backward:
                    candidate.passes_with[other] = candidate.passes_with.get(other, 0) + 1

    def _watch_optimizers(self) -> None:
        """Gives candidates the optimizers that hold their parameters, and grows them to all parameters of these optimizers."""
        for candidate in self.candidates:
            candidate.want(candidate.found)
            candidate.found = []
            for other, passes in candidate.passes_with.items():
                if other in self.candidates and candidate.is_trained_with(other, passes):
                    candidate.want(list(other.capture.parameters.values()))
        for optimizer, held in self._held():
            ids = {id(parameter) for parameter in held}
            for candidate in self.candidates:
                if ids & candidate.parameters():
                    if not any(optimizer is known for known in candidate.capture.optimizers):
                        candidate.capture.optimizers.append(optimizer)
                        candidate.capture.time_optimizer(optimizer)
                    candidate.want(held)
        self._merge()

    def _merge(self) -> None:
        """Removes candidates that are parts of another: they share an optimizer with it and have no parameters of their own."""
        for part in reversed(list(self.candidates)):
            for whole in self.candidates:
                if whole is not part and part.parameters() <= whole.parameters() and \
                        set(map(id, part.capture.optimizers)) & set(map(id, whole.capture.optimizers)):
                    part.capture.stop()
                    self.candidates.remove(part)
                    for module in part.capture.called:
                        whole.capture.also_called(module)
                    break

    def _count(self, module) -> None:
        """Counts a call of a module. Ends the search for modules after enough calls, since hooks of all modules take time."""
        for candidate in self.candidates:
            if any(called is module for called in candidate.capture.called):
                candidate.calls += 1
                self._watch_optimizers()
                stepped = [candidate.capture.seen_steps for candidate in self.candidates if candidate.capture.optimizers]
                if candidate.calls >= 4 * _LOOKED_FOR or not stepped and candidate.calls >= _LOOKED_FOR or \
                        stepped and min(stepped) >= 1 and max(stepped) >= 2:
                    self._end_search()
                return

    def _end_search(self) -> None:
        self.looking = False
        self.handle.remove()

    def trained(self) -> list:
        """Candidates with backward passes, except those whose parameters are a part of another's."""
        ran = [candidate for candidate in self.candidates if candidate.capture.backward_passes]
        return [candidate for candidate in ran
                if not any(other is not candidate and candidate.parameters() < other.parameters() for other in ran)]

    def finish(self) -> str:
        """Writes the model file. Returns "written", "part" (a part of the model was written), "failed", "wrong" (the request names
        no trained module), "nothing" (no model was trained) or "other" (another process writes)."""
        for candidate in self.candidates:
            candidate.capture.stop()
        self._end_search()
        if not self.candidates and not self.refused:
            return "nothing"
        if self.rank != 0 or not self._claim():
            return "other"
        trained = self.trained()
        try:
            chosen = self._chosen(trained)
            if chosen is not self.written:
                self._write(chosen, chosen.capture.text(), trained)
        except (OSError, ValueError) as error:
            _say(str(error))
            return "wrong" if isinstance(error, _NoSuchModule) else "failed"
        return "part" if chosen.lacks() else "written"

    def _write_early(self) -> None:
        """Writes the model file once the requested steps of every trained model are measured, so that a script which is killed
        afterwards keeps its capture. If it cannot be written, finish() reports the error."""
        trained = self.trained()
        if self.rank != 0 or not trained or not all(candidate.capture.is_complete for candidate in trained):
            return
        self._end_search()  # text() measures by modules of its own
        try:
            chosen = self._chosen(trained)
            text = chosen.capture.text()
        except ValueError:
            return
        if self._claim():
            with contextlib.suppress(OSError):  # finish() tries again, and reports the error
                self._write(chosen, text, trained)
                self.written = chosen

    def _write(self, chosen: _Candidate, text: str, trained: list) -> None:
        from hipress import _output

        _output.write_whole(self.settings["output"], text)
        others = [other.describe(index) for index, other in enumerate(trained) if other is not chosen]
        of = f", of {chosen.describe(trained.index(chosen))}" if others else ""
        said = [f"wrote {self.settings['output']}{of}",
                *([f"Also trained: {', '.join(others)}. --module with an index or name takes another"] if others else []),
                *([chosen.is_together()] if chosen.is_together() else []), *([chosen.lacks()] if chosen.lacks() else [])]
        _say(". ".join(said))

    def _claim(self) -> bool:
        """Claims the file for this process. Returns true for the first that claims it: processes without a group all have rank
        0."""
        with contextlib.suppress(FileExistsError):
            if not self.claimed:
                os.close(os.open(os.path.join(self.settings["reports"], "claimed"), os.O_CREAT | os.O_EXCL))
                self.claimed = True
        return self.claimed

    def _chosen(self, trained: list) -> _Candidate:
        asked = self.settings["module"]
        if not trained:
            reasons = [f"module {index} ({candidate.capture.name}): {candidate.capture.sees_nothing}"
                       for index, candidate in enumerate(self.candidates)]
            raise ValueError("no module was trained. " + "; ".join(reasons + self.refused))
        if asked is None:
            updated = [one for one in trained if one.capture.seen_steps] or trained
            return max(updated, key=lambda one: sum(parameter.numel() for parameter in one.capture.parameters.values()))
        if asked.isdigit() and int(asked) < len(trained):
            return trained[int(asked)]
        named = [candidate for candidate in trained if asked in candidate.names]
        if len(named) == 1:
            return named[0]
        listed = ", ".join(candidate.describe(index) for index, candidate in enumerate(trained))
        raise _NoSuchModule(f"--module {asked}: {len(named) or 'none'} of the trained modules {'have' if named else 'has'} that "
                            f"name; give an index: {listed}")


class Child:
    """Function of a child process whose training is captured, too."""

    def __init__(self, function, settings: dict):
        self.function, self.settings = function, settings

    def __call__(self, *arguments, **options):
        script = _current
        if script is None:  # another interpreter
            script = Script(self.settings)
            script.install()
        else:
            script.forget()
        result = self.function(*arguments, **options)
        came = script.finish()
        if came != "nothing":
            pathlib.Path(self.settings["reports"], f"{os.getpid()}.{came}").touch()
        return result


def execute(name: str, arguments: list, is_module: bool) -> None:
    """Runs a script, or the module of that name, as python does. Raises SystemExit if its exit status is not 0."""
    sys.argv = [name, *arguments]
    if not getattr(sys.flags, "safe_path", False):
        sys.path[0] = os.getcwd() if is_module else os.path.dirname(os.path.realpath(name))
    try:
        if is_module:
            runpy.run_module(name, run_name="__main__", alter_sys=True)
        else:
            runpy.run_path(name, run_name="__main__")
    except SystemExit as ended:
        if ended.code not in (None, 0):
            raise


def run(name: str, arguments: list, is_module: bool, settings: dict) -> int:
    """Captures the model that a script, or the module of that name, trains. Returns the exit status: 0 if the model was written, 2
    for a wrong request, 1 for any other failure."""
    with tempfile.TemporaryDirectory(prefix="hipress-capture-") as reports:
        script = Script({**settings, "reports": reports})
        script.install()
        execute(name, arguments, is_module)
        came = {script.finish(), *(entry.suffix[1:] for entry in pathlib.Path(reports).iterdir())}
    if came & {"failed", "wrong", "part"}:
        return 2 if "wrong" in came else 1
    if came & {"written", "other"}:
        return 0
    _say(f"{name} trained no model: no module with parameters was called in training mode, in its process or in one that it "
         "started with multiprocessing. Of ranks that are started in another way, each must be run by hipress.capture; or call "
         "hipress.capture(model) where they train")
    return 1


#: Depth of nested calls to which functions are searched for modules.
_CALLS = 4


def _modules_of(function, arguments, depth: int = _CALLS):
    """Yields the modules in a function's arguments, its closure, the globals that it names and the object of which it is a method.
    Functions that are found there are searched in turn."""
    import torch

    code = getattr(function, "__code__", None)
    cells = []
    for cell in getattr(function, "__closure__", None) or ():
        with contextlib.suppress(ValueError):  # the cell is still empty
            cells.append(cell.cell_contents)
    names = getattr(function, "__globals__", {})
    held = [names[name] for name in code.co_names if name in names] if code else []
    owner = getattr(function, "__self__", None)
    for value in [*arguments[0], *arguments[1].values(), *cells, *held, owner, *getattr(owner, "__dict__", {}).values()]:
        if isinstance(value, torch.nn.Module):
            yield value
        elif isinstance(value, (types.FunctionType, types.MethodType)) and depth > 0:
            yield from _modules_of(value, ((), {}), depth - 1)


def _is_compiling() -> bool:
    import torch

    return hasattr(torch, "compiler") and torch.compiler.is_compiling()


def rank() -> int:
    """Rank in the process group; without one, the launcher's RANK, or 0."""
    import torch.distributed as dist

    if dist.is_available() and dist.is_initialized():
        return dist.get_rank()
    return int(os.environ.get("RANK", "0"))


def _nothing(_text: str) -> None:
    pass


def _variable_of(value):
    """Name of a module or parameter in the calling code; None if it has none."""
    frame = sys._getframe(1)
    while frame is not None:
        if not frame.f_globals.get("__name__", "").startswith(("torch.", "hipress.")):
            for name, one in [*frame.f_locals.items(), *frame.f_globals.items()]:
                if one is value and name != "self":
                    return name
            for name, one in [*getattr(frame.f_locals.get("self"), "__dict__", {}).items()]:
                if one is value:
                    return f"self.{name}"
        frame = frame.f_back
    return None
