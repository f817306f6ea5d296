#!/usr/bin/env python3
"""Steps of scripts/gpu_check.sh that need PyTorch: print the versions, and train with DDP and the planned hook in two processes.

usage: gpu_steps.py versions
       gpu_steps.py ddp [--device cuda|cpu] [--output DIR]

`ddp` trains with DistributedDataParallel and with hipress.attach() in turn, from the same weights on the same data, and prints lines
`metric NAME NUMBER` and one `detail TEXT`. It writes DIR/trace.json, a torch.profiler trace of rank 0. Exit status 1 if values
differ or a rank fails, 77 without PyTorch, or without the requested GPU.
"""

import argparse
import os
import pathlib
import platform
import statistics
import subprocess
import sys
import tempfile
import time

RANKS = 2
STEPS = 3
SKIPPED = 77
#: Number of gradients of many(), the model that shows the hook's overhead per gradient.
SMALL_GRADIENTS = 160


def versions() -> int:
    said = f" python {platform.python_version()}"
    try:
        import torch
    except ImportError:
        print(f"{said}, no torch")
        return 0
    nccl = ""
    if torch.cuda.is_available():
        nccl = f", NCCL {'.'.join(map(str, torch.cuda.nccl.version()))}"
    print(f"{said}, torch {torch.__version__} (CUDA {torch.version.cuda or 'none'}{nccl})")
    return 0


def dense(torch):
    """Makes a model with gradients of up to 4 MB and the work of a small step."""
    torch.manual_seed(0)
    layers = []
    for inputs, outputs in ((512, 1024), (1024, 1024), (1024, 256), (256, 10)):
        layers += [torch.nn.Linear(inputs, outputs), torch.nn.ReLU()]
    return torch.nn.Sequential(*layers[:-1])


def many(torch):
    """Makes a model with SMALL_GRADIENTS gradients of 256 elements each and hardly any computation."""
    torch.manual_seed(0)
    return torch.nn.Sequential(*(torch.nn.Linear(16, 16, bias=False) for _ in range(SMALL_GRADIENTS)))


def train(torch, ddp, device, steps, rank, width) -> list:
    """Trains, and returns the seconds of each step. A rank's data do not depend on how gradients are averaged."""
    generator = torch.Generator().manual_seed(1 + rank)
    optimizer = torch.optim.SGD(ddp.parameters(), lr=0.01)
    loss_of = torch.nn.MSELoss()
    seconds = []
    for _ in range(steps):
        inputs = torch.randn(64, width, generator=generator).to(device)
        began = time.perf_counter()
        optimizer.zero_grad()
        outputs = ddp(inputs)
        loss_of(outputs, torch.zeros_like(outputs)).backward()
        optimizer.step()
        if device.type == "cuda":
            torch.cuda.synchronize()
        seconds.append(time.perf_counter() - began)
    return seconds


def compare_values(torch, hipress, wrap, device, rank) -> dict:
    """Largest absolute difference of a weight from DDP's after a few steps, by plan."""
    plain = wrap(dense(torch).to(device))
    train(torch, plain, device, STEPS, rank, 512)
    found = {}
    for plan in ("none", "fp16", "onebit"):
        planned = wrap(dense(torch).to(device))
        hook = hipress.attach(planned, "none" if plan == "none" else plan, topology="ring")
        train(torch, planned, device, STEPS, rank, 512)
        hipress.verify(planned)
        found[plan] = max((a - b).abs().max().item() for a, b in zip(plain.parameters(), planned.parameters()))
        hook.close()
    return found


def compare_times(torch, hipress, wrap, device, rank) -> dict:
    """Median time of a step with many small gradients, in ms, under DDP, PyTorch's all-reduce hook and hipress's, in turns."""
    from torch.distributed.algorithms.ddp_comm_hooks.default_hooks import allreduce_hook

    models = {"ddp": wrap(many(torch).to(device)), "allreduce_hook": wrap(many(torch).to(device)),
              "hipress": wrap(many(torch).to(device))}
    models["allreduce_hook"].register_comm_hook(None, allreduce_hook)
    hook = hipress.attach(models["hipress"], "none", topology="ring")
    times = {name: [] for name in models}
    for _ in range(5):
        for name, ddp in models.items():
            times[name] += train(torch, ddp, device, 10, rank, 16)[2:]
    hook.close()
    return {name: 1e3 * statistics.median(values) for name, values in times.items()}


def write_trace(torch, hipress, wrap, device, rank, path) -> None:
    """Writes a torch.profiler trace of three training steps under a plan."""
    from torch.profiler import ProfilerActivity, profile, schedule

    ddp = wrap(dense(torch).to(device))
    train(torch, ddp, device, 2, rank, 512)
    activities = [ProfilerActivity.CPU] + ([ProfilerActivity.CUDA] if device.type == "cuda" else [])
    optimizer = torch.optim.SGD(ddp.parameters(), lr=0.01)
    inputs = torch.randn(64, 512, device=device)

    def keep(profiler):
        if rank == 0:
            profiler.export_chrome_trace(str(path))

    with profile(activities=activities, record_shapes=True, schedule=schedule(wait=0, warmup=1, active=3, repeat=1),
                 on_trace_ready=keep) as profiler:
        for _ in range(4):
            optimizer.zero_grad()
            ddp(inputs).square().mean().backward()
            optimizer.step()
            if device.type == "cuda":
                torch.cuda.synchronize()
            profiler.step()


def run_rank(options: argparse.Namespace) -> int:
    import torch
    import torch.distributed as dist
    from torch.nn.parallel import DistributedDataParallel

    import hipress

    device = torch.device("cuda:0" if options.device == "cuda" else "cpu")
    torch.set_num_threads(1)
    # Gloo averages tensors of GPUs, too, and takes two ranks on one GPU; NCCL does not.
    dist.init_process_group("gloo", init_method=f"file://{options.meeting}", rank=options.rank, world_size=RANKS)

    def wrap(model):
        return DistributedDataParallel(model, device_ids=[0] if options.device == "cuda" else None, bucket_cap_mb=1)

    differences = compare_values(torch, hipress, wrap, device, options.rank)
    if options.rank == 0:
        for plan, difference in differences.items():
            print(f"metric difference.{plan} {difference:.6g}", flush=True)
    times = compare_times(torch, hipress, wrap, device, options.rank)
    cost_us = 1e3 * (times["hipress"] - times["allreduce_hook"]) / SMALL_GRADIENTS
    if options.rank == 0:
        for name, milliseconds in times.items():
            print(f"metric step_ms.{name} {milliseconds:.6g}")
        print(f"metric hook_us_per_gradient {cost_us:.6g}", flush=True)
    write_trace(torch, hipress, wrap, device, options.rank, options.output / "trace.json")
    # The mean of two gradients does not depend on the order of summation.
    equal = differences["none"] == 0
    if options.rank == 0:
        print(f"detail torch {torch.__version__}: plan none {'equals' if equal else 'DIFFERS from'} DDP after {STEPS} steps "
              f"(at most {differences['none']:.3g}); a step of {SMALL_GRADIENTS} small gradients {times['hipress']:.2f} ms, "
              f"all-reduce hook {times['allreduce_hook']:.2f}, DDP {times['ddp']:.2f}", flush=True)
    dist.destroy_process_group()
    return 0 if equal else 1


def ddp(options: argparse.Namespace) -> int:
    try:
        import torch
    except ImportError as error:
        print(f"detail no PyTorch for {sys.executable}: {error}")
        return SKIPPED
    if options.device == "cuda" and not torch.cuda.is_available():
        print(f"detail torch {torch.__version__} sees no GPU")
        return SKIPPED
    options.output.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory() as folder:
        command = [sys.executable, "-B", __file__, "rank", "--device", options.device, "--output", options.output,
                   "--meeting", os.path.join(folder, "meeting"), "--rank"]
        ranks = [subprocess.Popen([*command, str(rank)]) for rank in range(RANKS)]
        statuses = [rank.wait() for rank in ranks]
    if any(statuses):
        print(f"detail ranks ended with {statuses}", flush=True)
    return 1 if any(statuses) else 0


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("step", choices=("versions", "ddp", "rank"))
    parser.add_argument("--device", choices=("cuda", "cpu"), default="cuda")
    parser.add_argument("--output", type=pathlib.Path, default=pathlib.Path("."), help="where the trace goes")
    parser.add_argument("--meeting", help=argparse.SUPPRESS)
    parser.add_argument("--rank", type=int, help=argparse.SUPPRESS)
    options = parser.parse_args()
    return {"versions": lambda _: versions(), "ddp": ddp, "rank": run_rank}[options.step](options)


if __name__ == "__main__":
    sys.exit(main())
