"""Compares `powersgd` of hipress-exec with PyTorch's powerSGD_hook, for the same gradients, the same first Q and the same steps.

Both run on this machine's CPUs. After the last step, it compares the decoded gradients (P·Qᵀ, since P and Q themselves are not
unique) and each rank's error: the Frobenius norm of the difference, relative to that of PyTorch's result. With ef=2, the error is
PyTorch's residual: the local gradient minus the decoded mean. With ef=1, it is the local gradient minus the decoding of the rank's
own Q. PyTorch has no hook for that, so the reference is the same steps in double precision here. Tensors that PowerSGD leaves out
are sent raw. Without torch (Debian package python3-torch), it prints "skipped: …" and exits with status 0. The exit status is 1 if
a difference is above LIMIT.
"""

import argparse
import os
import pathlib
import struct
import subprocess
import sys
import tempfile

#: Matrices, two of them of one shape, a convolution, and a vector. The vector is not compressed; all others are, even at rank 32.
SHAPES = [(256, 192), (160, 2, 16, 10), (100,), (256, 192), (192, 160)]
LIMIT = 1e-5  #: largest difference
FIRST_STEP = 2  # DDP's first iterations, which the hook leaves alone


def matrix_of(shape):
    rows = shape[0]
    elements = 1
    for size in shape:
        elements *= size
    return rows, elements // rows


def compressed(shape, rank):
    rows, columns = matrix_of(shape)
    return (rows + columns) * min(rows, columns, rank) * 2 < rows * columns


def make_gradients(numpy, nodes, matrix_rank):
    """Makes gradients by node and tensor. They have full rank, but `matrix_rank` directions stand out, with singular values that
    differ between nodes. Without such directions, a power iteration would enlarge any difference in rounding."""
    random = numpy.random.default_rng(1)
    gradients = [[] for _ in range(nodes)]
    for shape in SHAPES:
        left, _, right = numpy.linalg.svd(random.standard_normal(matrix_of(shape)), full_matrices=False)
        scale = numpy.where(numpy.arange(right.shape[0]) < matrix_rank, 1, 0.02)
        for mine in gradients:
            values = scale * random.uniform(1, 1.5, right.shape[0])
            mine.append(((left * values) @ right).reshape(shape).astype("float32"))
    return gradients


# ---- PyTorch's side: one process per node -----------------------------------------------------


def rank_of_torch(folder, rank, nodes, matrix_rank, steps):
    import numpy
    import torch
    import torch.distributed
    from torch.distributed.algorithms.ddp_comm_hooks import powerSGD_hook

    torch.set_num_threads(1)
    torch.distributed.init_process_group("gloo", init_method=f"file://{folder}/store", rank=rank, world_size=nodes)
    gradients = [torch.from_numpy(numpy.load(folder / f"gradient{rank}_{i}.npy")) for i in range(len(SHAPES))]

    class Model(torch.nn.Module):
        """Model whose gradients are the given ones, whatever its parameters are."""

        def __init__(self):
            super().__init__()
            self.weights = torch.nn.ParameterList(torch.nn.Parameter(torch.zeros(shape)) for shape in SHAPES)

        def forward(self):
            return sum((weight * gradient).sum() for weight, gradient in zip(self.weights, gradients))

    model = Model()
    index_of = {id(weight): index for index, weight in enumerate(model.weights)}
    parallel = torch.nn.parallel.DistributedDataParallel(model)
    state = powerSGD_hook.PowerSGDState(None, matrix_approximation_rank=matrix_rank, start_powerSGD_iter=FIRST_STEP)
    order, drawn = [], []

    def hook(state, bucket):
        order[:] = [index_of[id(parameter)] for parameter in bucket.parameters()]
        if not drawn and state.iter >= FIRST_STEP:
            randn = torch.randn

            def noting(*arguments, **options):
                drawn.append(randn(*arguments, **options))
                return drawn[-1].clone()

            torch.randn = noting
            try:
                return powerSGD_hook.powerSGD_hook(state, bucket)
            finally:
                torch.randn = randn
        return powerSGD_hook.powerSGD_hook(state, bucket)

    parallel.register_comm_hook(state, hook)
    for _ in range(FIRST_STEP + steps):
        parallel.zero_grad()
        parallel().backward()
    if len(state.error_dict) != 1 or sorted(order) != list(range(len(SHAPES))):
        raise SystemExit("DDP has made several buckets of these gradients")
    for index, weight in enumerate(model.weights):
        numpy.save(folder / f"mean{rank}_{index}.npy", weight.grad.numpy())
    error = next(iter(state.error_dict.values())).numpy()
    first = 0
    for index in order:
        size = model.weights[index].numel()
        numpy.save(folder / f"error{rank}_{index}.npy", error[first:first + size])
        first += size
    # PyTorch draws Q for all tensors of a shape together, in the order in which shapes first occur in the bucket.
    grouped = {}
    for index in order:
        if compressed(SHAPES[index], matrix_rank):
            grouped.setdefault(matrix_of(SHAPES[index]), []).append(index)
    for index, q in zip([index for group in grouped.values() for index in group], drawn):
        numpy.save(folder / f"q{rank}_{index}.npy", q.reshape(q.shape[-2:]).numpy())
    torch.distributed.barrier()
    os._exit(0)  # otherwise gloo's threads sometimes crash the process


def run_torch(folder, nodes, matrix_rank, steps):
    (folder / "store").unlink(missing_ok=True)
    ranks = [subprocess.Popen([sys.executable, "-B", __file__, "", "--torch-rank", str(rank), "--folder", str(folder), "--nnodes",
                               str(nodes), "--ranks", str(matrix_rank), "--steps", str(steps)],
                              env={**os.environ, "OMP_NUM_THREADS": "1"}) for rank in range(nodes)]
    if any([rank.wait() for rank in ranks]):
        raise SystemExit("a rank of PyTorch has failed")


# ---- our side ---------------------------------------------------------------------------------


def write_state(path, arrays):
    """Writes a file that kernels::StateStore reads: {name: values} of role 0, with one array each."""
    with open(path, "wb") as out:
        out.write(b"HPSTATE1" + struct.pack("=IQ", 0x01020304, len(arrays)))
        for name, values in arrays.items():
            text = name.encode()
            out.write(struct.pack("=I", len(text)) + text + struct.pack("=IIq", 0, 1, values.size))
            out.write(values.astype("<f4").tobytes())
        out.write(b"HPSTATE.")


def read_state(numpy, path):
    data = path.read_bytes()
    (count,) = struct.unpack_from("=Q", data, 12)
    at, arrays = 20, {}
    for _ in range(count):
        (length,) = struct.unpack_from("=I", data, at)
        name = data[at + 4:at + 4 + length].decode()
        _, parts, elements = struct.unpack_from("=IIq", data, at + 4 + length)
        at += 4 + length + 16
        arrays[name] = numpy.frombuffer(data, "<f4", parts * elements, at)
        at += 4 * parts * elements
    return arrays


def run_ours(numpy, options, folder, gradients, first_q, matrix_rank, ef, steps):
    """Runs hipress-exec. Returns the ranks' final values, and their states."""
    nodes = len(gradients)
    given, loaded, saved, means = (folder / name for name in ("given", "loaded", f"saved{ef}", f"means{ef}"))
    for made in (given, loaded):
        made.mkdir(exist_ok=True)
    model = folder / "model.csv"
    rows = [f"g{i},{int(numpy.prod(shape))},0,{'x'.join(map(str, shape))}" for i, shape in enumerate(SHAPES)]
    model.write_text("name,elements,ready_us,shape\n" + "\n".join(rows) + "\n")
    for rank in range(nodes):
        (given / f"rank{rank}").mkdir(exist_ok=True)
        for index, values in enumerate(gradients[rank]):
            (given / f"rank{rank}" / f"{index}.f32").write_bytes(values.astype("<f4").tobytes())
        # Values are stored column by column.
        write_state(loaded / f"rank{rank}.state", {f"g{i} q": numpy.asfortranarray(q).ravel("F") for i, q in first_q.items()})
    command = [options.exec, "--input", str(model), "--topology", "RING", "--nnodes", str(nodes),
               "--plan", f"powersgd(rank={matrix_rank},ef={ef})", "--gradients", str(given), "--means", str(means),
               "--load-state", str(loaded), "--save-state", str(saved), "--warmup", "0", "--iterations", str(steps),
               "--transport", "memory"]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode != 0:
        raise SystemExit(f"hipress-exec has failed: {done.stderr}")
    decoded = [[numpy.fromfile(means / f"rank{rank}" / f"{i}.f32", "<f4").reshape(shape) for i, shape in enumerate(SHAPES)]
               for rank in range(nodes)]
    return decoded, [read_state(numpy, saved / f"rank{rank}.state") for rank in range(nodes)]


# ---- the same steps in double precision -------------------------------------------------------


def run_exact(numpy, gradients, first_q, ef, steps):
    """Computes the steps in double precision. Returns each compressed tensor's final decoding, and its error by node."""
    results = {}
    for index, q in first_q.items():
        shape = matrix_of(SHAPES[index])
        own = [values[index].astype(float).reshape(shape) for values in gradients]
        errors = [numpy.zeros(shape) for _ in own]
        q = q.astype(float)
        for _ in range(steps):
            q, _ = numpy.linalg.qr(q)
            v = [mine + error for mine, error in zip(own, errors)]
            p, _ = numpy.linalg.qr(sum(one @ q for one in v) / len(v))
            qs = [one.T @ p for one in v]
            q = sum(qs) / len(qs)
            decoded = p @ q.T
            errors = [one - (p @ mine.T if ef == 1 else decoded) for one, mine in zip(v, qs)]
        results[index] = decoded, errors
    return results


def difference(numpy, got, expected):
    got, expected = numpy.asarray(got, float).ravel(), numpy.asarray(expected, float).ravel()
    return float(numpy.linalg.norm(got - expected) / numpy.linalg.norm(expected))


def compare(numpy, options, nodes, matrix_rank):
    """Returns rows of {nodes, rank, ef, mean, error, ours_off, theirs_off}. `mean` and `error` are the largest differences of our
    means and errors from the reference's. The last two are those of our and of PyTorch's means from the exact ones."""
    gradients = make_gradients(numpy, nodes, matrix_rank)
    with tempfile.TemporaryDirectory() as name:
        folder = pathlib.Path(name)
        for rank in range(nodes):
            for index, values in enumerate(gradients[rank]):
                numpy.save(folder / f"gradient{rank}_{index}.npy", values)
        run_torch(folder, nodes, matrix_rank, options.steps)
        matrices = [i for i, shape in enumerate(SHAPES) if compressed(shape, matrix_rank)]
        first_q = {i: numpy.load(folder / f"q0_{i}.npy") for i in matrices}
        rows = []
        for ef in (2, 1):
            decoded, states = run_ours(numpy, options, folder, gradients, first_q, matrix_rank, ef, options.steps)
            exact = run_exact(numpy, gradients, first_q, ef, options.steps)
            mean, error, ours_off, theirs_off = 0.0, 0.0, 0.0, 0.0 if ef == 2 else None
            for rank in range(nodes):
                for index in range(len(SHAPES)):
                    theirs = numpy.load(folder / f"mean{rank}_{index}.npy")
                    if index in exact:
                        ours_off = max(ours_off, difference(numpy, decoded[rank][index], exact[index][0]))
                        if ef == 1:
                            theirs = exact[index][0]
                        else:
                            theirs_off = max(theirs_off, difference(numpy, theirs, exact[index][0]))
                    mean = max(mean, difference(numpy, decoded[rank][index], theirs))
                    if index not in exact:
                        continue
                    kept = exact[index][1][rank] if ef == 1 else numpy.load(folder / f"error{rank}_{index}.npy")
                    error = max(error, difference(numpy, states[rank][f"g{index} residual"], kept))
            rows.append({"nodes": nodes, "rank": matrix_rank, "ef": ef, "mean": mean, "error": error,
                         "ours_off": ours_off, "theirs_off": theirs_off})
    return rows


def numbers(text):
    return [int(part) for part in text.split(",")]


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("exec", help="hipress-exec")
    parser.add_argument("--nnodes", type=numbers, default=[2, 3, 4, 8], help="numbers of nodes (default: 2,3,4,8)")
    parser.add_argument("--ranks", type=numbers, default=[1, 2, 4, 32], help="ranks of the factors (default: 1,2,4,32)")
    parser.add_argument("--steps", type=int, default=20, help="steps that are compressed (default: %(default)s)")
    parser.add_argument("--torch-rank", type=int, help=argparse.SUPPRESS)
    parser.add_argument("--folder", type=pathlib.Path, help=argparse.SUPPRESS)
    options = parser.parse_args()
    try:
        import numpy
        import torch.distributed
    except ImportError as error:
        print(f"skipped: {error} (Debian packages python3-numpy, python3-torch)")
        return 0
    if not torch.distributed.is_gloo_available():
        print("skipped: this torch has no gloo")
        return 0
    if options.torch_rank is not None:
        rank_of_torch(options.folder, options.torch_rank, options.nnodes[0], options.ranks[0], options.steps)
        return 0
    print(f"{'N':>2} {'rank':>4} {'ef':>2} {'mean':>9} {'error':>9} {'ours':>9} {'PyTorch':>9}   {options.steps} steps: differences between "
          "the two, and of either's mean from the same steps in double precision")
    rows = []
    for nodes in options.nnodes:
        for matrix_rank in options.ranks:
            for row in compare(numpy, options, nodes, matrix_rank):
                theirs_off = "-" if row["theirs_off"] is None else f"{row['theirs_off']:.2e}"
                print(f"{row['nodes']:>2} {row['rank']:>4} {row['ef']:>2} {row['mean']:>9.2e} {row['error']:>9.2e} "
                      f"{row['ours_off']:>9.2e} {theirs_off:>9}", flush=True)
                rows.append(row)
    worst = max(max(row["mean"], row["error"]) for row in rows)
    print(f"largest difference {worst:.2e}, limit {LIMIT:.0e}")
    return 0 if worst <= LIMIT else 1


if __name__ == "__main__":
    sys.exit(main())
