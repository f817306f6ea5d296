"""Requests as functions; written by scripts/python_requests.py from the library's schemas."""

import os
from typing import Any, Callable, Mapping, Optional, Sequence, Union

from hipress._call import Progress, answer
from hipress._results import Plan, Profile, Replay, Simulation, Sweep, Trace

#: A text, or a path for one.
Text = Union[str, "os.PathLike[str]"]


def plan(input: Optional[Text] = None, *, job: Optional[Text] = None, bytes: Optional[Text] = None,
         root: Optional[int] = None, chunks: Optional[int] = None, lossless: bool = False,
         topology: Optional[Text] = None, nnodes: Optional[int] = None, machine: Optional[Text] = None,
         hosts: Union[int, Sequence[int], Text, None] = None, gpus: Optional[int] = None,
         library: Optional[Text] = None, profile: Optional[Text] = None, cluster: Optional[Text] = None,
         bandwidth: Optional[Text] = None, latency: Optional[Text] = None, overhead: Optional[Text] = None,
         gpus_per_node: Optional[int] = None, gpu_bandwidth: Optional[Text] = None, scale_kernels: Union[Text, bool,
         None] = None, assume_cost: Optional[Sequence[str]] = None, compute_time: Optional[Text] = None,
         forward: Optional[Text] = None, batch: Optional[int] = None, seq: Optional[int] = None,
         dtype: Optional[Text] = None, checkpoint: Optional[Text] = None, micro_steps: Optional[int] = None,
         mfu: Optional[Text] = None, tokens_per_s: Optional[float] = None, per_gradient: Optional[Text] = None,
         algorithm: Optional[Text] = None, pilot: Optional[Text] = None, write: Optional[Text] = None,
         coarsest: Optional[Text] = None, accuracy: Optional[Sequence[str]] = None, search: Optional[Text] = None,
         grouping: Optional[Text] = None, transfer_order: Optional[Text] = None, network: Optional[Text] = None,
         budget: Optional[float] = None, evaluations: Optional[int] = None, tolerance: Optional[float] = None,
         seed: Optional[int] = None, jobs: Optional[int] = None, schedule: Optional[Sequence[str]] = None,
         wrap: Optional[Sequence[str]] = None, shards_by: Optional[Text] = None, gpu_memory: Optional[Text] = None,
         activation_memory: Optional[Text] = None, today: Optional[Text] = None, optimizer: Optional[Text] = None,
         required_bandwidth: bool = False, utilization: Optional[Text] = None, break_even: Optional[Text] = None,
         advise: bool = False, output: Optional[Text] = None, report: Optional[Text] = None,
         trust_plan: bool = False, explain: bool = False, compare: Optional[Text] = None,
         plan: Optional[Text] = None, robust: bool = False, jitter: Optional[Text] = None,
         bandwidth_uncertainty: Optional[float] = None, replicas: Optional[int] = None,
         disable_pass: Optional[Text] = None, progress: Optional[Callable[[Progress], Any]] = None) -> Plan:
    """Decides which gradients to compress, and into how many partitions to cut them, as hipress-plan does. Answers as the tool
    prints with --json: a Plan, whose attributes are that object's keys. Arguments are the tool's long options; those that are
    None are not given.

    input                  Gradients: name,elements lines, CSV, model YAML, a model's name, or a description of one: config.json,
                           *.safetensors, *.onnx, a listing of names and shapes [input.txt]
    job                    Kind of plan: mean (gradients are averaged), or broadcast (one node's tensors go to all others:
                           parameters at the start, weights to samplers) [mean]
    bytes                  Size of the single tensor to broadcast, say 64MB
    root                   Node that broadcasts (default: 0)
    chunks                 Number of chunks of a broadcast's largest tensor (default: the best of all counts)
    lossless               Refuse algorithms that change the values of a broadcast
    topology               Topology of gradients: ps, ring, allreduce, allgather, of which allreduce carries only raw,
                           half-precision and low-rank gradients; BEST tries all of them, with all-reduce for raw gradients
                           (search timeline), and is the default with a `machine`. A broadcast takes chain, binomial,
                           scatter_allgather, or BEST, its default [PS]
    nnodes                 Number of nodes (default: the cluster's, else 16)
    machine                Hosts of GPUs: a machine's file or a shipped machine, such as p5.48xlarge; it defines cluster and
                           profile, and a library's collectives are modelled (docs/collectives.md)
    hosts                  Number of hosts of the `machine` (default: as many as `gpus` need); several numbers, 1,2,4, compare the
                           gain of each added host, without a plan
    gpus                   Number of GPUs of all hosts of the `machine` together, each a node (default: all GPUs of the hosts)
    library                Library of collectives on the `machine`: nccl, or gloo, by TCP, as PyTorch's jobs on CPUs have it
                           (default: nccl)
    profile                Costs: a profile.yaml or a shipped profile, such as h100-100g (default: published with SeCoPa)
    cluster                Cluster YAML: hosts, speeds, slow links between pairs of hosts (docs/profiles.md); the profile supplies
                           missing values
    bandwidth              Bandwidth of the links between nodes: 25Gbps (default: the cluster's, else the profile's)
    latency                Latency of these links, on the wire: 20us (default: as for bandwidth)
    overhead               Time for which each message occupies the ports at both ends, besides its bytes: 20us (default: as for
                           bandwidth)
    gpus_per_node          Number of GPUs per node, whose gradients the node sums up first (default: the cluster's, else 1)
    gpu_bandwidth          Bandwidth of the links between a node's GPUs (default: the cluster's, else 250GB/s)
    scale_kernels          Scale kernels to a memory bandwidth: 3.35TB/s (without a value: to the profile's
                           hardware.memory_bandwidth)
    assume_cost            Charge an unmeasured program the cost of another algorithm: tern.pse=int4block; may be given several
                           times
    compute_time           Time of forward and backward together, 120ms, of all micro-steps of a step. For a model without ready
                           times, or to scale those that it has (default: the model's)
    forward                Time of the forward pass and of the optimizer before it, together: 40ms; of a single pass if a model
                           has several micro-steps (default: the model's, else a third of `compute_time`)
    batch                  Number of sequences, images or samples per GPU and micro-step: computation is derived from the model's
                           work and the rates of the `machine` (docs/arithmetic.md)
    seq                    Number of tokens per sequence (default: as the model is usually trained)
    dtype                  Type of the computation: fp32, tf32, mixed (in half precision, gradients in fp32), bf16 or fp16
                           (default: fp32)
    checkpoint             Activations that backward computes again: none, selective or full (default: none)
    micro_steps            Number of micro-steps per step (default: 1)
    mfu                    Share of the peak FLOP/s that forward and backward reach, 45% (default: derived)
    tokens_per_s           Number of tokens, images or samples that one GPU computes per second (default: derived)
    per_gradient           Time that DDP itself takes for each gradient, besides the derived time: 22us (default: as derived; 0us:
                           none)
    algorithm              Algorithms that the plan may use, separated by commas (fp16 only if it is listed), or none;
                           'powersgd(rank=1|2|4)' tries several values of a parameter. All of them average gradients, except dgc
                           with a momentum, which is an optimizer of its own (default: the `pilot`'s, or else those known not to
                           slow learning: int8block,fp16, or int8block,bf16 for sharded schedules, and coarser ones as `coarsest`
                           allows; for `search` secopa onebit,fp16; for a broadcast the lossless ones)
    pilot                  File written by python -m hipress.pilot, with the steps that the job needs under each algorithm; the
                           plan is then the one that reaches DDP's loss soonest
    write                  Plan to write if the advice is not to compress: advised (the best one without compression), or fastest
                           [advised]
    coarsest               Leave out algorithms that give up more than this one: none, lossless < fp16, bf16 < int8block, fp8block
                           < tbq, terngrad, int4block, fp4block < onebit < dgc, graddrop, powersgd, acpsgd, rsketch
    accuracy               Coarseness of a program, in the order of `coarsest`: as coarse as an algorithm, tern.pse=terngrad, or
                           from 1 (fp16) to 5 (dgc), the default; may be given several times
    search                 One of: secopa, greedy, timeline (default: timeline with a profile or cluster, else secopa)
    grouping               Use of bulk groups and batches: any, none, or auto (any, unless the output is a text, which cannot hold
                           them) [auto]
    transfer_order         Order of waiting messages: ready or need (as in hipress-sim), or the better of the two (best). A given
                           plan keeps its own order unless this option is set [ready]
    network                Sharing of links by transfers: port (one message at a time) or fair (max-min) [fair]
    budget                 Seconds for search timeline and the passes after it; more may find a better plan (default: 2)
    evaluations            Simulations for search timeline, instead of seconds; every machine then finds the same plan
    tolerance              Share by which an iteration may be longer in exchange for less compression [0.005]
    seed                   Seed of the search's random moves [0]
    jobs                   Number of simulating threads (default: one per core, at most 4)
    schedule               Schedule of the synchronisation: ddp: the mean of every gradient in every step; local(steps, fragments,
                           every, pattern, overlap): several steps on each node alone, then the mean of the changes of the weights
                           (DiLoCo); fsdp(reshard, prefetch, in_flight, communicators): parameters, gradients and the optimizer's
                           state in shards over all nodes (FSDP, ZeRO-3); hsdp(shard, reshard, prefetch, in_flight,
                           communicators): parameters, gradients and the optimizer's state in shards over groups of neighbours,
                           between which gradients are averaged (HSDP). Several schedules are compared, and so are several values
                           of a parameter with | between them; BEST compares ddp, fsdp and hsdp (default: ddp)
    wrap                   Modules that a schedule handles as one layer: patterns of module names separated by commas, such as
                           transformer.h.*, or a number of elements, 100M, from which on a module is a layer. The rest of the
                           model is one layer (default: as in the model file, else by names); several are compared
    shards_by              Carrier of shards, for sharded schedules and their baselines: a library's collectives (library), or
                           messages between nodes, around a ring (ring) or straight to their owners (direct) (default: library)
    gpu_memory             Memory of each GPU, such as 80GB; schedules whose parameters, gradients and optimizer state need more
                           are not chosen (default: no limit; several `hosts`: the machine's)
    activation_memory      Part of `gpu_memory` that activations take, such as 20GB (default: the model's value)
    today                  Baseline that the job runs now, such as ddp_fp16 or fsdp2, to which the verdict compares the plan
                           (default: ddp; for sharded schedules fsdp2_mixed, or fsdp2 for a model in half precision)
    optimizer              Optimizer whose state counts as memory: adamw (two moments in fp32), adamw8bit (two moments in 8 bits),
                           momentum (SGD with momentum, in fp32), sgd (nothing) [adamw]
    required_bandwidth     Find, instead of a plan, the least bandwidth at which computation takes each share of the time in
                           `utilization`, for each `schedule` and `algorithm` (by default uncompressed)
    utilization            Computation's shares of the time, for `required_bandwidth`, separated by commas; a larger share needs
                           faster links (default: 50%,80%,90%,95%,99%)
    break_even             Quantity to vary: find the values at which compression begins or ceases to pay, with an interval and
                           the curve; plans are searched anew for every value: bandwidth, latency, nodes, compute-time
    advise                 Add advice in words: the job's bottleneck, the best bucket_cap_mb of DDP or wrapping of FSDP, the
                           effect of other machines and another schedule, and when not to compress
    output                 Plan to write: SeCoPa's text, or X.yaml with everything
    report                 Page to write, such as report.html: verdict, predicted timeline and plan in one file to share, which a
                           browser opens without a network (default: none)
    trust_plan             Compile and run all programs (x.pse) that the plan brings, not only those that `algorithm` names
    explain                Explain each gradient's decision, the cost of the second-best decision, and the plan's memory
    compare                Compare the plan with this one (a file, or none, all, fp16 …): times, bytes, and the cost of each
                           difference alone
    plan                   Explain or compare this plan (a file or a name) instead of searching one; no file is written
    robust                 Choose the plan with the best 90th percentile of the iteration time, under `jitter` and
                           `bandwidth_uncertainty`
    jitter                 Distribution of the factor by which each task's time varies: lognormal:S, uniform:W, samples:FILE (as
                           in hipress-sim)
    bandwidth_uncertainty  Uncertainty of the links' bandwidth, as a share: 0.2 for 80 to 120 % of it
    replicas               Number of draws for comparing plans; a larger number gives steadier percentiles (default: 100)
    disable_pass           Passes to leave out, separated by commas; passes improve the plan after search timeline
    progress               Called now and then with a Progress, perhaps on another thread

    InputError for a wrong request, another HipressError for any other failure; KeyboardInterrupt ends the request.
    """
    return Plan(answer({"request": "plan", "page": True, "input": input, "job": job, "bytes": bytes, "root": root,
                        "chunks": chunks, "lossless": lossless or None, "topology": topology, "nnodes": nnodes,
                        "machine": machine, "hosts": hosts, "gpus": gpus, "library": library, "profile": profile,
                        "cluster": cluster, "bandwidth": bandwidth, "latency": latency, "overhead": overhead,
                        "gpus_per_node": gpus_per_node, "gpu_bandwidth": gpu_bandwidth,
                        "scale_kernels": scale_kernels, "assume_cost": assume_cost, "compute_time": compute_time,
                        "forward": forward, "batch": batch, "seq": seq, "dtype": dtype, "checkpoint": checkpoint,
                        "micro_steps": micro_steps, "mfu": mfu, "tokens_per_s": tokens_per_s,
                        "per_gradient": per_gradient, "algorithm": algorithm, "pilot": pilot, "write": write,
                        "coarsest": coarsest, "accuracy": accuracy, "search": search, "grouping": grouping,
                        "transfer_order": transfer_order, "network": network, "budget": budget,
                        "evaluations": evaluations, "tolerance": tolerance, "seed": seed, "jobs": jobs,
                        "schedule": schedule, "wrap": wrap, "shards_by": shards_by, "gpu_memory": gpu_memory,
                        "activation_memory": activation_memory, "today": today, "optimizer": optimizer,
                        "required_bandwidth": required_bandwidth or None, "utilization": utilization,
                        "break_even": break_even, "advise": advise or None, "output": output, "report": report,
                        "trust_plan": trust_plan or None, "explain": explain or None, "compare": compare,
                        "plan": plan, "robust": robust or None, "jitter": jitter,
                        "bandwidth_uncertainty": bandwidth_uncertainty, "replicas": replicas,
                        "disable_pass": disable_pass}, progress))


def simulate(input: Optional[Text] = None, *, plan: Text, evaluations: Optional[int] = None,
             topology: Optional[Text] = None, nnodes: Optional[int] = None, algorithm: Optional[Text] = None,
             machine: Optional[Text] = None, hosts: Optional[int] = None, gpus: Optional[int] = None,
             library: Optional[Text] = None, profile: Optional[Text] = None, cluster: Optional[Text] = None,
             bandwidth: Optional[Text] = None, latency: Optional[Text] = None,
             overhead: Optional[Text] = None, gpus_per_node: Optional[int] = None,
             gpu_bandwidth: Optional[Text] = None, scale_kernels: Union[Text, bool, None] = None,
             assume_cost: Optional[Sequence[str]] = None, compute_time: Optional[Text] = None,
             forward: Optional[Text] = None, batch: Optional[int] = None, seq: Optional[int] = None,
             dtype: Optional[Text] = None, checkpoint: Optional[Text] = None,
             micro_steps: Optional[int] = None, mfu: Optional[Text] = None,
             tokens_per_s: Optional[float] = None, per_gradient: Optional[Text] = None,
             network: Optional[Text] = None, fold: Optional[Text] = None,
             transfer_order: Optional[Text] = None, jitter: Optional[Text] = None, seed: Optional[int] = None,
             replicas: Optional[int] = None, jobs: Optional[int] = None, trace: Optional[Text] = None,
             export_chakra: Optional[Text] = None, bulk_threshold: Optional[Text] = None,
             bulk_wait: Optional[Text] = None, bulk_limit: Optional[Text] = None,
             batch_threshold: Optional[Text] = None, batch_wait: Optional[Text] = None,
             batch_limit: Optional[Text] = None, density: Optional[float] = None,
             shards_by: Optional[Text] = None, raw_allreduce: bool = False, no_pipelining: bool = False,
             no_bulk: bool = False, no_selection: bool = False, trust_plan: bool = False,
             schedule: Optional[Text] = None, wrap: Optional[Text] = None, steady: Union[int, bool,
             None] = None, sensitivity: bool = False, explain_interval: bool = False) -> Simulation:
    """Predicts one iteration of a plan: the time at which each gradient is synchronised, and the critical path, as hipress-sim
    does. Answers as the tool prints with --json: a Simulation, whose attributes are that object's keys. Arguments are the tool's
    long options; those that are None are not given.

    input             Gradients: name,elements lines, CSV, model YAML or a shipped model; not needed with the plan YAML of a
                      broadcast
    plan              Plan file, none, all, threshold[:ELEMENTS], an algorithm's name, or one that is made for these machines:
                      best, best_uncompressed, threshold_262144, secopa, greedy, ddp, ddp_fp16, ddp_powersgd, none_grouped,
                      fp16_grouped, all_grouped, secopa_grouped, fsdp2, fsdp2_bf16, fsdp2_mixed, fsdp1, fsdp1_post, hsdp,
                      hsdp_bf16, hsdp_mixed, zeropp
    evaluations       Number of plans that a search for `plan` simulates; a larger number takes longer and may find a better plan
                      [300]
    topology          Topology of gradients: ps, ring, allreduce, allgather, BEST for a plan that is made, or of a broadcast
                      chain, binomial, scatter_allgather (default: the plan YAML's, else ps)
    nnodes            Number of nodes (default: the cluster's, else the plan YAML's, else 16)
    algorithm         Codec of compressed plan entries that name none [onebit]
    machine           Hosts of GPUs: a machine's file or a shipped machine, such as p5.48xlarge; it defines cluster and profile,
                      and a library's collectives are modelled (docs/collectives.md)
    hosts             Number of hosts of the `machine` (default: as many as `gpus` need)
    gpus              Number of GPUs of all hosts of the `machine` together, each a node (default: all GPUs of the hosts)
    library           Library of collectives on the `machine`: nccl, or gloo, by TCP, as PyTorch's jobs on CPUs have it (default:
                      nccl)
    profile           Costs: a profile.yaml or a shipped profile, such as h100-100g (default: sosp21, published for V100s)
    cluster           Cluster YAML: hosts, speeds, slow links between pairs of hosts (docs/profiles.md); the profile supplies
                      missing values
    bandwidth         Bandwidth of the links between nodes: 25Gbps (default: the cluster's, else the profile's)
    latency           Latency of these links, on the wire: 20us (default: as for bandwidth)
    overhead          Time for which each message occupies the ports at both ends, besides its bytes: 20us (default: as for
                      bandwidth)
    gpus_per_node     Number of GPUs per node, whose gradients the node sums up first (default: the cluster's, else 1)
    gpu_bandwidth     Bandwidth of the links between a node's GPUs (default: the cluster's, else 250GB/s)
    scale_kernels     Scale kernels to a memory bandwidth: 3.35TB/s (without a value: to the profile's hardware.memory_bandwidth)
    assume_cost       Charge an unmeasured program the cost of another algorithm: tern.pse=int4block; may be given several times
    compute_time      Time of forward and backward together, 120ms, of all micro-steps of a step. For a model without ready times,
                      or to scale those that it has (default: the model's)
    forward           Time of the forward pass and of the optimizer before it, together: 40ms; of a single pass if a model has
                      several micro-steps (default: the model's, else a third of `compute_time`)
    batch             Number of sequences, images or samples per GPU and micro-step: computation is derived from the model's work
                      and the rates of the `machine` (docs/arithmetic.md)
    seq               Number of tokens per sequence (default: as the model is usually trained)
    dtype             Type of the computation: fp32, tf32, mixed (in half precision, gradients in fp32), bf16 or fp16 (default:
                      fp32)
    checkpoint        Activations that backward computes again: none, selective or full (default: none)
    micro_steps       Number of micro-steps per step (default: 1)
    mfu               Share of the peak FLOP/s that forward and backward reach, 45% (default: derived)
    tokens_per_s      Number of tokens, images or samples that one GPU computes per second (default: derived)
    per_gradient      Time that DDP itself takes for each gradient, besides the derived time: 22us (default: as derived; 0us:
                      none)
    network           Sharing of links by transfers: port (one message at a time) or fair (max-min) [fair]
    fold              Simulation of one node for all that behave alike: auto (if that is exact), never, or always (with bounds if
                      slices are unequal) [auto]
    transfer_order    Order of waiting messages: ready (first come, first served) or need (of the next forward pass) (default: the
                      plan's, else ready)
    jitter            Distribution of the factor by which each task's time varies: lognormal:S, uniform:W, samples:FILE
    seed              Seed of the jitter's draws [0]
    replicas          Number of draws of the jitter to simulate; their percentiles are printed [1]
    jobs              Number of replicas at a time (default: one per core)
    trace             Write the timeline as Chrome/Perfetto JSON
    export_chakra     Write the simulated graph as Chakra execution traces, one per node, into a folder
    bulk_threshold    Synchronise gradients smaller than this together, in bulk groups: 64KiB; a larger threshold groups more
                      gradients (default: the plan's; 0B: each alone)
    bulk_wait         Wait of a bulk group after its first gradient, 1ms; gradients that are ready later stay out of it
    bulk_limit        Size limit of a bulk group: 4MiB
    batch_threshold   Encode, decode and add slices smaller than this in one launch, as a batch: 64KiB; a larger threshold batches
                      more slices (default: the plan's; 0B: each alone)
    batch_wait        Wait of a batch after its first slice, 1ms; slices that are ready later stay out of it
    batch_limit       Size limit of a batch: 4MiB
    density           Send sparse gradients at this density (above 0, at most 1) instead of the plan's; above the plan's
                      break-even, send them dense
    shards_by         Carrier of a sharded schedule's shards: a library's collectives (library), or messages between nodes, around
                      a ring (ring) or straight to their owners (direct) (default: the plan's, else library)
    raw_allreduce     Use the library's all-reduce for gradients that are not compressed
    no_pipelining     Synchronise gradients one after the other, each in phases that do not overlap on a node
    no_bulk           Make neither bulk groups nor batches, even if the plan has them
    no_selection      Compress every gradient with the plan's algorithm, K = N
    trust_plan        Compile and run all programs (x.pse) that the plan brings, not only those that `algorithm` names
    schedule          Schedule of the synchronisation: ddp: the mean of every gradient in every step; local(steps, fragments,
                      every, pattern, overlap): several steps on each node alone, then the mean of the changes of the weights
                      (DiLoCo); fsdp(reshard, prefetch, in_flight, communicators): parameters, gradients and the optimizer's state
                      in shards over all nodes (FSDP, ZeRO-3); hsdp(shard, reshard, prefetch, in_flight, communicators):
                      parameters, gradients and the optimizer's state in shards over groups of neighbours, between which gradients
                      are averaged (HSDP) (default: the plan YAML's, else ddp)
    wrap              Modules that a schedule handles as one layer: patterns of module names separated by commas, such as
                      transformer.h.*, or a number of elements, 100M, from which on a module is a layer. The rest of the model is
                      one layer (default: as in the model file, else by names)
    steady            Number of consecutive iterations (8) to simulate, without a barrier; their settled period is reported
    sensitivity       Simulate also with bandwidth, latency, codecs, compute … each 10 % better
    explain_interval  Print the shares of kernels, links, computation and the simulator's own error in the interval

    InputError for a wrong request, another HipressError for any other failure; KeyboardInterrupt ends the request.
    """
    return Simulation(answer({"request": "simulate", "input": input, "plan": plan, "evaluations": evaluations,
                              "topology": topology, "nnodes": nnodes, "algorithm": algorithm, "machine": machine,
                              "hosts": hosts, "gpus": gpus, "library": library, "profile": profile,
                              "cluster": cluster, "bandwidth": bandwidth, "latency": latency, "overhead": overhead,
                              "gpus_per_node": gpus_per_node, "gpu_bandwidth": gpu_bandwidth,
                              "scale_kernels": scale_kernels, "assume_cost": assume_cost,
                              "compute_time": compute_time, "forward": forward, "batch": batch, "seq": seq,
                              "dtype": dtype, "checkpoint": checkpoint, "micro_steps": micro_steps, "mfu": mfu,
                              "tokens_per_s": tokens_per_s, "per_gradient": per_gradient, "network": network,
                              "fold": fold, "transfer_order": transfer_order, "jitter": jitter, "seed": seed,
                              "replicas": replicas, "jobs": jobs, "trace": trace, "export_chakra": export_chakra,
                              "bulk_threshold": bulk_threshold, "bulk_wait": bulk_wait, "bulk_limit": bulk_limit,
                              "batch_threshold": batch_threshold, "batch_wait": batch_wait,
                              "batch_limit": batch_limit, "density": density, "shards_by": shards_by,
                              "raw_allreduce": raw_allreduce or None, "no_pipelining": no_pipelining or None,
                              "no_bulk": no_bulk or None, "no_selection": no_selection or None,
                              "trust_plan": trust_plan or None, "schedule": schedule, "wrap": wrap,
                              "steady": steady, "sensitivity": sensitivity or None,
                              "explain_interval": explain_interval or None}))


def sweep(spec: Union[Text, Mapping[str, Any]], *, output: Optional[Text] = None, jobs: Optional[int] = None,
          shard: Optional[Text] = None, cache: Optional[Text] = None, no_intervals: bool = False,
          algorithm: Optional[Text] = None, evaluations: Optional[int] = None, trust_plan: bool = False,
          progress: Optional[Callable[[Progress], Any]] = None) -> Sweep:
    """Predicts every combination of the values that a spec lists, one row each, as hipress-sim sweep does. Answers as the tool
    prints with --json: a Sweep, whose attributes are that object's keys. Arguments are the tool's long options; those that are
    None are not given.

    spec          YAML that lists the values of each axis: a file, or the text itself in braces
    output        CSV to write: one row per point, whole or not at all
    jobs          Number of threads; the output does not depend on it (default: one per core)
    shard         I/M: the I-th of M contiguous parts. Only the first has the header, so that the concatenated files of all parts
                  are the whole file [1/1]
    cache         Folder that keeps simulated points, so that the same sweep after an interruption, and any other with equal
                  points, need not simulate them again; none: keep nothing (default: OUTPUT.cache)
    no_intervals  Leave the columns of 10-90 % intervals empty, which needs only a third of the simulations
    algorithm     Programs (x.pse,y.pse) that the spec and its plans may bring
    evaluations   Number of plans that the search for plan 'best' simulates at each point; a larger number takes longer and may
                  find a better plan [300]
    trust_plan    Compile and run all programs (x.pse) that the plan brings, not only those that `algorithm` names
    progress      Called now and then with a Progress, perhaps on another thread

    InputError for a wrong request, another HipressError for any other failure; KeyboardInterrupt ends the request.
    """
    return Sweep(answer({"request": "sweep", "spec": spec, "output": output, "jobs": jobs, "shard": shard,
                         "cache": cache, "no_intervals": no_intervals or None, "algorithm": algorithm,
                         "evaluations": evaluations, "trust_plan": trust_plan or None}, progress))


def replay(input: Optional[Text] = None, *, compute_time: Optional[Text] = None, forward: Optional[Text] = None,
           gradients: Optional[Text] = None, load_state: Optional[Text] = None, plan: Optional[Text] = None,
           auto: bool = False, topology: Optional[Text] = None, algorithm: Optional[Text] = None,
           schedule: Optional[Text] = None, bulk_threshold: Optional[Text] = None,
           bulk_wait: Optional[Text] = None, bulk_limit: Optional[Text] = None,
           batch_threshold: Optional[Text] = None, batch_wait: Optional[Text] = None,
           batch_limit: Optional[Text] = None, density: Optional[float] = None, shards_by: Optional[Text] = None,
           raw_allreduce: bool = False, no_pipelining: bool = False, no_bulk: bool = False,
           no_selection: bool = False, trust_plan: bool = False, nnodes: Optional[int] = None,
           machine: Optional[Text] = None, hosts: Optional[int] = None, gpus: Optional[int] = None,
           library: Optional[Text] = None, profile: Optional[Text] = None, cluster: Optional[Text] = None,
           bandwidth: Optional[Text] = None, latency: Optional[Text] = None, overhead: Optional[Text] = None,
           gpus_per_node: Optional[int] = None, gpu_bandwidth: Optional[Text] = None, scale_kernels: Union[Text,
           bool, None] = None, assume_cost: Optional[Sequence[str]] = None, network: Optional[Text] = None,
           reprobe: bool = False, iterations: Optional[int] = None, warmup: Optional[int] = None,
           backward: Optional[Text] = None, seed: Optional[int] = None, again: Optional[int] = None,
           timeout: Optional[float] = None, device: Optional[Text] = None, transport: Optional[Text] = None,
           rendezvous: Optional[Text] = None, interface: Optional[Text] = None, job: Optional[Text] = None,
           secret_file: Optional[Text] = None, silence: Optional[float] = None, insecure: bool = False,
           trace: Optional[Text] = None, means: Optional[Text] = None, save_state: Optional[Text] = None,
           progress: Optional[Callable[[Progress], Any]] = None) -> Replay:
    """Synchronises a model's gradients between real ranks by a plan, verifies every value, and compares measured with predicted
    times, as hipress-exec does. Answers as the tool prints with --json: a Replay, whose attributes are that object's keys.
    Arguments are the tool's long options; those that are None are not given.

    input            Gradients: name,elements lines, CSV, model YAML or a shipped model; not needed with the plan YAML of a
                     broadcast
    compute_time     Time of forward and backward together, 120ms, of all micro-steps of a step. For a model without ready times,
                     or to scale those that it has (default: the model's)
    forward          Time of the forward pass and of the optimizer before it, together: 40ms; of a single pass if a model has
                     several micro-steps (default: the model's, else a third of `compute_time`)
    gradients        Folder with the gradients of all ranks, the same in every iteration, instead of made-up ones:
                     rank{r}/{index}.f32 holds those of rank r, index from 0 in the order of `input`, as raw little-endian fp32
                     regardless of the model's dtype. Each rank verifies a part of all ranks' results, so all must be able to read
                     the whole folder; give processes a shared one
    load_state       Folder with the encoders' initial states of all ranks: rank{r}.state, as written by `save_state`. Only for
                     plans that compress in stages alone (powersgd, acpsgd, rsketch), since only these verify from a state on
    plan             Plan file, none, all, an algorithm's name, threshold[:ELEMENTS], or a baseline's of hipress-plan: ddp,
                     none_grouped …; required without `auto`
    auto             Choose the plan here: measure the links, plan, replay the plan and the fastest one without compression in
                     turns, and tell what was predicted, measured and would be chosen. `algorithm` lists what the plan may use
                     (default: int8block,fp16), `topology` limits it, and `profile` gives the costs of kernels (default: those of
                     this machine, measured once and kept in the cache folder). Without `input`, the gradients are those of
                     resnet50
    topology         Topology of gradients: ps, ring, allreduce, allgather, or of a broadcast chain, binomial, scatter_allgather
                     (default: the plan YAML's, else ps)
    algorithm        Codec of compressed plan entries that name none [onebit]
    schedule         Schedule of the synchronisation: ddp: the mean of every gradient in every step; local(steps, fragments,
                     every, pattern, overlap): several steps on each node alone, then the mean of the changes of the weights
                     (DiLoCo); fsdp(reshard, prefetch, in_flight, communicators): parameters, gradients and the optimizer's state
                     in shards over all nodes (FSDP, ZeRO-3); hsdp(shard, reshard, prefetch, in_flight, communicators):
                     parameters, gradients and the optimizer's state in shards over groups of neighbours, between which gradients
                     are averaged (HSDP) (default: the plan YAML's, else ddp). An iteration is then a period, whose steps are
                     computed by a timer
    bulk_threshold   Synchronise gradients smaller than this together, in bulk groups: 64KiB; a larger threshold groups more
                     gradients (default: the plan's; 0B: each alone)
    bulk_wait        Wait of a bulk group after its first gradient, 1ms; gradients that are ready later stay out of it
    bulk_limit       Size limit of a bulk group: 4MiB
    batch_threshold  Encode, decode and add slices smaller than this in one launch, as a batch: 64KiB; a larger threshold batches
                     more slices (default: the plan's; 0B: each alone)
    batch_wait       Wait of a batch after its first slice, 1ms; slices that are ready later stay out of it
    batch_limit      Size limit of a batch: 4MiB
    density          Send sparse gradients at this density (above 0, at most 1) instead of the plan's; above the plan's
                     break-even, send them dense
    shards_by        Carrier of a sharded schedule's shards: a library's collectives (library), or messages between nodes, around
                     a ring (ring) or straight to their owners (direct) (default: the plan's, else library)
    raw_allreduce    Use the library's all-reduce for gradients that are not compressed
    no_pipelining    Synchronise gradients one after the other, each in phases that do not overlap on a node
    no_bulk          Make neither bulk groups nor batches, even if the plan has them
    no_selection     Compress every gradient with the plan's algorithm, K = N
    trust_plan       Compile and run all programs (x.pse) that the plan brings, not only those that `algorithm` names
    nnodes           Number of ranks (default: the launcher's, else the plan YAML's, else the cluster's)
    machine          Hosts of GPUs: a machine's file or a shipped machine, such as p5.48xlarge; it defines cluster and profile,
                     and a library's collectives are modelled (docs/collectives.md)
    hosts            Number of hosts of the `machine` (default: as many as `gpus` need)
    gpus             Number of GPUs of all hosts of the `machine` together, each a node (default: all GPUs of the hosts)
    library          Library of collectives on the `machine`: nccl, or gloo, by TCP, as PyTorch's jobs on CPUs have it (default:
                     nccl)
    profile          Costs: a profile.yaml or a shipped profile, such as h100-100g (default: none, without a prediction)
    cluster          Cluster YAML: hosts, speeds, slow links between pairs of hosts (docs/profiles.md); the profile supplies
                     missing values
    bandwidth        Bandwidth of the links between nodes: 25Gbps (default: the cluster's, else the profile's)
    latency          Latency of these links, on the wire: 20us (default: as for bandwidth)
    overhead         Time for which each message occupies the ports at both ends, besides its bytes: 20us (default: as for
                     bandwidth)
    gpus_per_node    Number of GPUs per node, whose gradients the node sums up first (default: the cluster's, else 1)
    gpu_bandwidth    Bandwidth of the links between a node's GPUs (default: the cluster's, else 250GB/s)
    scale_kernels    Scale kernels to a memory bandwidth: 3.35TB/s (without a value: to the profile's hardware.memory_bandwidth)
    assume_cost      Charge an unmeasured program the cost of another algorithm: tern.pse=int4block; may be given several times
    network          Sharing of links by predicted transfers: port (one message at a time) or fair (max-min) [fair]
    reprobe          Add a prediction for the speeds that the machine's probes reach now, if it is slower than when it was
                     profiled
    iterations       Number of measured iterations; a larger number gives a steadier median [3]
    warmup           Number of warm-up iterations, verified but not reported [1]
    backward         Producer of gradients: a timer (idle) or a busy core (spin) [idle]
    seed             Seed of made-up gradients and random draws [1]
    again            Largest number of repetitions; the replay is repeated if probes before and after it show that the machine's
                     speed changed [3]
    timeout          Seconds without progress after which the job ends. If given, it also limits the C++ compiler's time for a
                     program (x.pse), which is otherwise 120 seconds [30.0]
    device           Device of gradients and codecs: cpu, or cuda [cpu]
    transport        Transport of messages: tcp (TCP; connections authenticate each other by the job's secret); gloo (TCP through
                     gloo; without authentication); memory (copies between threads of one process); nccl (between GPUs; its ranks
                     meet over tcp). With `device` cuda, all others go through pinned host memory [tcp]
    rendezvous       Rendezvous of a job's processes: file:///shared/folder, redis://host:port or, with TLS, rediss://host:port
    interface        Network interface or address to use (default: loopback)
    job              Name of the job; jobs with different names may share a rendezvous [hipress]
    secret_file      File with a secret of at least 16 bytes (mode 0600), the same for every rank (default: rank 0 leaves a secret
                     at the rendezvous)
    silence          Seconds of silence after which a process counts as dead; living processes send heartbeats while they compute
                     [300.0]
    insecure         Let `transport` gloo, which does not authenticate, listen beyond loopback; only for networks that no one else
                     can reach
    trace            Write the timelines as Chrome/Perfetto JSON
    means            Folder to write each rank's values to after the last iteration, in the file format of `gradients`. It is made
                     if missing, and refused if it holds a file
    save_state       Folder to write the encoders' states to after the last iteration: residuals and factors. It is made if
                     missing; files in it are replaced
    progress         Called now and then with a Progress, perhaps on another thread

    InputError for a wrong request, another HipressError for any other failure; KeyboardInterrupt ends the request.
    """
    return Replay(answer({"request": "replay", "input": input, "compute_time": compute_time, "forward": forward,
                          "gradients": gradients, "load_state": load_state, "plan": plan, "auto": auto or None,
                          "topology": topology, "algorithm": algorithm, "schedule": schedule,
                          "bulk_threshold": bulk_threshold, "bulk_wait": bulk_wait, "bulk_limit": bulk_limit,
                          "batch_threshold": batch_threshold, "batch_wait": batch_wait, "batch_limit": batch_limit,
                          "density": density, "shards_by": shards_by, "raw_allreduce": raw_allreduce or None,
                          "no_pipelining": no_pipelining or None, "no_bulk": no_bulk or None,
                          "no_selection": no_selection or None, "trust_plan": trust_plan or None, "nnodes": nnodes,
                          "machine": machine, "hosts": hosts, "gpus": gpus, "library": library, "profile": profile,
                          "cluster": cluster, "bandwidth": bandwidth, "latency": latency, "overhead": overhead,
                          "gpus_per_node": gpus_per_node, "gpu_bandwidth": gpu_bandwidth,
                          "scale_kernels": scale_kernels, "assume_cost": assume_cost, "network": network,
                          "reprobe": reprobe or None, "iterations": iterations, "warmup": warmup,
                          "backward": backward, "seed": seed, "again": again, "timeout": timeout, "device": device,
                          "transport": transport, "rendezvous": rendezvous, "interface": interface, "job": job,
                          "secret_file": secret_file, "silence": silence, "insecure": insecure or None,
                          "trace": trace, "means": means, "save_state": save_state}, progress))


def profile(*, algorithm: Optional[Sequence[str]] = None, quick: bool = False, base: Optional[Text] = None,
            anew: Optional[Text] = None, sample: Optional[Text] = None, nnodes: Optional[int] = None,
            device: Optional[Text] = None, transport: Optional[Text] = None, passes: Optional[int] = None,
            again: Optional[int] = None, timeout: Optional[float] = None, rendezvous: Optional[Text] = None,
            interface: Optional[Text] = None, job: Optional[Text] = None, secret_file: Optional[Text] = None,
            silence: Optional[float] = None, insecure: bool = False, output: Optional[Text] = None) -> Profile:
    """Measures compression kernels and links of this machine, as hipress-profile does. Answers as the tool prints with --json: a
    Profile, whose attributes are that object's keys. Arguments are the tool's long options; those that are None are not given.

    algorithm    Algorithms to measure, separated by commas; staged ones are measured at several ranks, regardless of the given
                 one (default:
                 onebit,tbq,terngrad,dgc,graddrop,int8block,int4block,fp8block,fp4block,fp16,bf16,powersgd,acpsgd,rsketch,lossless)
    quick        Take fewer sizes and repetitions: 15 seconds for two algorithms on an idle machine
    base         Profile of which only a part is measured anew (`anew`); its other values are kept
    anew         Part of `base` to measure anew: links, if the network is too slow to show the CPU time of a transfer; kernels, if
                 the speed of the machine's memory varies; or cores, the CPU time of transfers over known links, for such a
                 machine, too (default: links)
    sample       File of fp32 numbers (one of your tensors, as it lies in memory) for measuring the messages of algorithms whose
                 length varies with the data; with `base` and without `anew`, nothing else is measured
    nnodes       Number of ranks between which links are measured (default: the launcher's, else 4 that share this machine)
    device       Device of the codecs: cpu, or cuda [cpu]
    transport    Transport whose links are measured: tcp (TCP; connections authenticate each other by the job's secret); gloo (TCP
                 through gloo; without authentication); memory (copies between threads of one process); nccl (between GPUs).
                 gloo's and nccl's all-gather, reduce-scatter and all-to-all are measured, too [tcp]
    passes       Seconds between measurements of a CPU's kernels; take more on a shared machine (default: 2)
    again        Largest number of repetitions; a measurement is repeated if probes before and after it show that the machine's
                 speed changed (default: 3, with `quick` 1)
    timeout      Seconds without progress after which the job ends [60.0]
    rendezvous   Rendezvous of the processes of a job that a launcher started, to measure the links between them:
                 file:///shared/folder, redis://host:port or, with TLS, rediss://host:port
    interface    Network interface or address of this process in a job (default: loopback)
    job          Name of the job; jobs with different names may share a rendezvous [hipress-profile]
    secret_file  File with a secret of at least 16 bytes (mode 0600), the same for every rank (default: rank 0 leaves a secret at
                 the rendezvous)
    silence      Seconds of silence after which a process counts as dead; living processes send heartbeats while they compute
                 [300.0]
    insecure     Let `transport` gloo, which does not authenticate, listen beyond loopback; only for networks that no one else can
                 reach
    output       Profile to write

    InputError for a wrong request, another HipressError for any other failure; KeyboardInterrupt ends the request.
    """
    return Profile(answer({"request": "profile", "algorithm": algorithm, "quick": quick or None, "base": base,
                           "anew": anew, "sample": sample, "nnodes": nnodes, "device": device,
                           "transport": transport, "passes": passes, "again": again, "timeout": timeout,
                           "rendezvous": rendezvous, "interface": interface, "job": job, "secret_file": secret_file,
                           "silence": silence, "insecure": insecure or None, "output": output}))


def import_trace(trace: Text, *, output: Optional[Text] = None, every_all_reduce: bool = False) -> Trace:
    """Reads a trace of a training job: the exposed communication of a step, and the model that the job trains, as hipress-import
    does. Answers as the tool prints with --json: a Trace, whose attributes are that object's keys. Arguments are the tool's long
    options; those that are None are not given.

    trace             Trace of one rank: PyTorch's profiler or execution trace (JSON), or a Chakra execution trace; plain or
                      gzipped. Or a description of a model: config.json, model.safetensors.index.json, *.safetensors, *.onnx, a
                      table of layers, a listing of names and shapes, or the name of a model (llama3_8b)
    output            Write the model YAML that the other tools read
    every_all_reduce  Take every all-reduce to carry gradients, for traces that do not tell which ones do

    InputError for a wrong request, another HipressError for any other failure; KeyboardInterrupt ends the request.
    """
    return Trace(answer({"request": "import_trace", "trace": trace, "output": output,
                         "every_all_reduce": every_all_reduce or None}))
