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
         hosts: Optional[int] = None, gpus: Optional[int] = None, profile: Optional[Text] = None,
         cluster: Optional[Text] = None, bandwidth: Optional[Text] = None, latency: Optional[Text] = None,
         overhead: Optional[Text] = None, gpus_per_node: Optional[int] = None, gpu_bandwidth: Optional[Text] = None,
         scale_kernels: Union[Text, bool, None] = None, assume_cost: Optional[Sequence[str]] = None,
         compute_time: Optional[Text] = None, forward: Optional[Text] = None, batch: Optional[int] = None,
         seq: Optional[int] = None, dtype: Optional[Text] = None, checkpoint: Optional[Text] = None,
         micro_steps: Optional[int] = None, mfu: Optional[Text] = None, tokens_per_s: Optional[float] = None,
         per_gradient: Optional[Text] = None, algorithm: Optional[Text] = None, pilot: Optional[Text] = None,
         write: Optional[Text] = None, coarsest: Optional[Text] = None, accuracy: Optional[Sequence[str]] = None,
         search: Optional[Text] = None, grouping: Optional[Text] = None, transfer_order: Optional[Text] = None,
         network: Optional[Text] = None, budget: Optional[float] = None, evaluations: Optional[int] = None,
         tolerance: Optional[float] = None, seed: Optional[int] = None, jobs: Optional[int] = None,
         schedule: Optional[Sequence[str]] = None, wrap: Optional[Sequence[str]] = None,
         shards_by: Optional[Text] = None, gpu_memory: Optional[Text] = None,
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

    input                  Gradients: name,elements lines, CSV, model YAML or a shipped model [input.txt]
    job                    What is planned: mean (gradients are averaged), or broadcast (one node's tensors go to all others:
                           parameters at the start, weights to samplers) [mean]
    bytes                  Size of the one tensor that is broadcast, say 64MB
    root                   Node that broadcasts (default: 0)
    chunks                 Chunks of the largest tensor of a broadcast (default: the best of all counts)
    lossless               Refuse algorithms that change what is broadcast
    topology               How gradients travel: ps, ring, allreduce, allgather, of which allreduce carries only raw,
                           half-precision and low-rank gradients; BEST tries all of them, with all-reduce for what stays raw
                           (search timeline), and is the default with a `machine`. A broadcast takes chain, binomial,
                           scatter_allgather, chain_p2p, which encodes anew on every node, for comparison, or BEST, its default
                           [PS]
    nnodes                 Number of nodes (default: the cluster's, else 16)
    machine                Hosts of GPUs: a machine's file or a shipped machine, such as p5.48xlarge; it makes cluster and
                           profile, and a library's collectives are modelled (docs/collectives.md)
    hosts                  Hosts of the `machine` (default: as many as `gpus` need)
    gpus                   GPUs of all hosts of the `machine` together, each a node (default: all that they have)
    profile                Costs: a profile.yaml or a shipped profile, such as h100-100g (default: published with SeCoPa)
    cluster                Cluster YAML: hosts, speeds, slow links between pairs of hosts (docs/profiles.md); what it leaves out
                           is the profile's
    bandwidth              Bandwidth of the links between nodes: 25Gbps (default: the cluster's, else the profile's)
    latency                Latency of these links, on the wire: 20us (default: as for bandwidth)
    overhead               Time for which each message occupies the ports at both ends, besides its bytes: 20us (default: as for
                           bandwidth)
    gpus_per_node          GPUs that sum up gradients in a node first (default: the cluster's, else 1)
    gpu_bandwidth          Bandwidth of the links between a node's GPUs (default: the cluster's, else 250GB/s)
    scale_kernels          Scale kernels to a memory bandwidth: 3.35TB/s (without a value: to the profile's
                           hardware.memory_bandwidth)
    assume_cost            Charge a program that is not measured yet what another algorithm costs: tern.pse=int4block; may be
                           given several times
    compute_time           Time of forward and backward together, 120ms: for a model without ready times, or to scale those that
                           it has; of all micro-steps together, where a model has several (default: the model's)
    forward                Time of the forward pass and of the optimizer before it, together: 40ms; of one pass alone, where a
                           model has several micro-steps (default: the model's, else a third of `compute_time`)
    batch                  Sequences, images or samples of a GPU and micro-step: computation is derived from the model's work and
                           the rates of the `machine` (docs/arithmetic.md)
    seq                    Tokens of a sequence (default: as the model is usually trained)
    dtype                  Type that is computed with: fp32, tf32, mixed (in half precision, gradients in fp32), bf16 or fp16
                           (default: fp32)
    checkpoint             What backward computes again: none, selective or full (default: none)
    micro_steps            Micro-steps of a step (default: 1)
    mfu                    Share of the peak that forward and backward reach, 45% (default: derived)
    tokens_per_s           Tokens, images or samples that one GPU computes in a second (default: derived)
    per_gradient           Time that DDP itself takes for each gradient, besides what is derived: 22us (default: that; 0us: none)
    algorithm              Algorithms that the plan may use, separated by commas (fp16 only if it is listed), or none;
                           'powersgd(rank=1|2|4)' tries several values of a parameter. All of them average gradients, except dgc
                           with a momentum, which is an optimizer of its own (default: the `pilot`'s, else those that are known
                           not to slow learning, int8block,fp16 (int8block,bf16 of sharded schedules), and coarser ones that
                           `coarsest` asks for; of `search` secopa onebit,fp16; of a broadcast those that lose nothing)
    pilot                  File of python -m hipress.pilot, which has measured how many more steps the job needs with each
                           algorithm: the plan is then the one that reaches DDP's loss soonest
    write                  Which plan is written when the advice is not to compress: advised (the best one without compression),
                           or fastest [advised]
    coarsest               Leave out algorithms that give up more than this one: none, lossless < fp16, bf16 < int8block, fp8block
                           < tbq, terngrad, int4block, fp4block < onebit < dgc, graddrop, powersgd, acpsgd, rsketch
    accuracy               How coarse a program is, in the order of `coarsest`: as coarse as an algorithm, tern.pse=terngrad, or
                           from 1 (fp16) to 4 (dgc), the default; may be given several times
    search                 One of: secopa, greedy, timeline, exhaustive (default: timeline with a profile or cluster, else secopa)
    grouping               Whether the search also forms bulk groups and batches: any, none, or auto (any, unless the output is a
                           text, which cannot hold them) [auto]
    transfer_order         Which waiting message goes first: ready or need (as in hipress-sim), or the better of the two (best). A
                           given plan keeps its own order unless this option is set [ready]
    network                How transfers share links: port (one message at a time) or fair (max-min) [fair]
    budget                 Seconds for search timeline and the passes after it; more may find a better plan (default: 2)
    evaluations            Simulations for search timeline, instead of seconds; every machine then finds the same plan
    tolerance              How much longer an iteration may take, as a share, in exchange for compressing less [0.005]
    seed                   Seed of the search's random moves [0]
    jobs                   Threads that simulate (default: one per core, at most 4)
    schedule               When gradients are synchronised: ddp: the mean of every gradient in every step; local(steps, fragments,
                           every, pattern, overlap): several steps on each node alone, then the mean of how far the weights have
                           moved (DiLoCo); fsdp(reshard, prefetch, in_flight, communicators): parameters, gradients and the
                           optimizer's state in shards over all nodes (FSDP, ZeRO-3); hsdp(shard, reshard, prefetch, in_flight,
                           communicators): parameters, gradients and the optimizer's state in shards over groups of neighbours,
                           between which gradients are averaged (HSDP). Several schedules are compared, and so are several values
                           of a parameter with | between them; BEST compares ddp, fsdp and hsdp (default: ddp)
    wrap                   Which modules a schedule handles as one layer: patterns of module names separated by commas, such as
                           transformer.h.*, or a number of elements, 100M, from which on a module is a layer. The rest of the
                           model is one layer (default: what the model file says, else by names); several are compared
    shards_by              What carries the shards of sharded schedules and of their baselines: a library's collectives (library),
                           or messages between nodes, around a ring (ring) or straight to their owners (direct) (default: library)
    gpu_memory             Memory of each GPU, such as 80GB; schedules whose parameters, gradients and optimizer state take more
                           are not chosen (default: whatever is needed)
    activation_memory      Of `gpu_memory`, what activations take, such as 20GB (default: what the model says)
    today                  What the job runs today, of which the verdict says what a plan saves: a baseline such as ddp_fp16 or
                           fsdp2 (default: ddp, and of sharded schedules fsdp2_mixed, or fsdp2 of a model in half precision)
    optimizer              Optimizer whose state is counted as memory: adamw (two moments in fp32), adamw8bit (two moments in 8
                           bits), momentum (SGD with momentum, in fp32), sgd (nothing) [adamw]
    required_bandwidth     Instead of a plan, find the least bandwidth at which computation takes each share of the time in
                           `utilization`, for each `schedule` and `algorithm` (by default uncompressed)
    utilization            Shares of the time that computation is to take, for `required_bandwidth`, separated by commas; a larger
                           share needs faster links (default: 50%,80%,90%,95%,99%)
    break_even             Also say at which value of this quantity compressing begins or ceases to pay, with an interval and the
                           curve; plans are searched anew for every value: bandwidth, latency, nodes, compute-time
    advise                 Also say in words what bounds the job, what other machines and another schedule would bring, and when
                           not to compress
    output                 Plan to write: SeCoPa's text, or X.yaml with everything
    report                 Page to write, such as report.html: verdict, predicted timeline and plan in one file to share, which a
                           browser opens without a network (default: none)
    trust_plan             Compile and run whatever programs (x.pse) the plan brings, not only those that `algorithm` names
    explain                Say for every gradient why the plan treats it as it does, what the next best option would cost, and how
                           much memory the plan takes
    compare                Compare the plan with this one (a file, or none, all, fp16 …): times, bytes, and what each difference
                           alone is worth
    plan                   Explain or compare this plan (a file or a name) instead of searching one; nothing is written
    robust                 Choose the plan with the best 90th percentile of the iteration time, under `jitter` and
                           `bandwidth_uncertainty`
    jitter                 Distribution of the factor by which each task's time varies: lognormal:S, uniform:W, samples:FILE (as
                           in hipress-sim)
    bandwidth_uncertainty  How uncertain the links' bandwidth is: 0.2 for 80 to 120 % of it
    replicas               Draws that plans are compared on; more: steadier percentiles (default: 100)
    disable_pass           Passes to leave out, which polish the plan after search timeline, separated by commas
    progress               Called now and then with a Progress, perhaps on another thread

    InputError for a request that is wrong, other kinds of HipressError for what went wrong; KeyboardInterrupt ends it.
    """
    return Plan(answer({"request": "plan", "page": True, "input": input, "job": job, "bytes": bytes, "root": root,
                        "chunks": chunks, "lossless": lossless or None, "topology": topology, "nnodes": nnodes,
                        "machine": machine, "hosts": hosts, "gpus": gpus, "profile": profile, "cluster": cluster,
                        "bandwidth": bandwidth, "latency": latency, "overhead": overhead,
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
             profile: Optional[Text] = None, cluster: Optional[Text] = None, bandwidth: Optional[Text] = None,
             latency: Optional[Text] = None, overhead: Optional[Text] = None,
             gpus_per_node: Optional[int] = None, gpu_bandwidth: Optional[Text] = None,
             scale_kernels: Union[Text, bool, None] = None, assume_cost: Optional[Sequence[str]] = None,
             compute_time: Optional[Text] = None, forward: Optional[Text] = None, batch: Optional[int] = None,
             seq: Optional[int] = None, dtype: Optional[Text] = None, checkpoint: Optional[Text] = None,
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
    """Predicts one iteration of a plan: when every gradient is synchronised, and what that waits for, as hipress-sim does. Answers
    as the tool prints with --json: a Simulation, whose attributes are that object's keys. Arguments are the tool's long options;
    those that are None are not given.

    input             Gradients: name,elements lines, CSV, model YAML or a shipped model; not needed with the plan YAML of a
                      broadcast
    plan              Plan file, none, all, threshold[:ELEMENTS], an algorithm's name, or one that is made for these machines:
                      best, best_uncompressed, threshold_262144, secopa, greedy, ddp, ddp_fp16, ddp_powersgd, none_grouped,
                      fp16_grouped, all_grouped, secopa_grouped, fsdp2, fsdp2_bf16, fsdp2_mixed, fsdp1, fsdp1_post, hsdp,
                      hsdp_bf16, hsdp_mixed, zeropp
    evaluations       Plans that a search for `plan` simulates; more: a better plan, later [300]
    topology          One of ps, ring, allreduce, allgather, BEST for a plan that is made, or of a broadcast chain, binomial,
                      scatter_allgather, chain_p2p (default: what a plan YAML says, else ps)
    nnodes            Number of nodes (default: the cluster's, else what a plan YAML says, else 16)
    algorithm         Codec of plan entries that are compressed but name none [onebit]
    machine           Hosts of GPUs: a machine's file or a shipped machine, such as p5.48xlarge; it makes cluster and profile, and
                      a library's collectives are modelled (docs/collectives.md)
    hosts             Hosts of the `machine` (default: as many as `gpus` need)
    gpus              GPUs of all hosts of the `machine` together, each a node (default: all that they have)
    profile           Costs: a profile.yaml or a shipped profile, such as h100-100g (default: sosp21, published for V100s)
    cluster           Cluster YAML: hosts, speeds, slow links between pairs of hosts (docs/profiles.md); what it leaves out is the
                      profile's
    bandwidth         Bandwidth of the links between nodes: 25Gbps (default: the cluster's, else the profile's)
    latency           Latency of these links, on the wire: 20us (default: as for bandwidth)
    overhead          Time for which each message occupies the ports at both ends, besides its bytes: 20us (default: as for
                      bandwidth)
    gpus_per_node     GPUs that sum up gradients in a node first (default: the cluster's, else 1)
    gpu_bandwidth     Bandwidth of the links between a node's GPUs (default: the cluster's, else 250GB/s)
    scale_kernels     Scale kernels to a memory bandwidth: 3.35TB/s (without a value: to the profile's hardware.memory_bandwidth)
    assume_cost       Charge a program that is not measured yet what another algorithm costs: tern.pse=int4block; may be given
                      several times
    compute_time      Time of forward and backward together, 120ms: for a model without ready times, or to scale those that it
                      has; of all micro-steps together, where a model has several (default: the model's)
    forward           Time of the forward pass and of the optimizer before it, together: 40ms; of one pass alone, where a model
                      has several micro-steps (default: the model's, else a third of `compute_time`)
    batch             Sequences, images or samples of a GPU and micro-step: computation is derived from the model's work and the
                      rates of the `machine` (docs/arithmetic.md)
    seq               Tokens of a sequence (default: as the model is usually trained)
    dtype             Type that is computed with: fp32, tf32, mixed (in half precision, gradients in fp32), bf16 or fp16 (default:
                      fp32)
    checkpoint        What backward computes again: none, selective or full (default: none)
    micro_steps       Micro-steps of a step (default: 1)
    mfu               Share of the peak that forward and backward reach, 45% (default: derived)
    tokens_per_s      Tokens, images or samples that one GPU computes in a second (default: derived)
    per_gradient      Time that DDP itself takes for each gradient, besides what is derived: 22us (default: that; 0us: none)
    network           How transfers share links: port (one message at a time) or fair (max-min) [fair]
    fold              Simulate one node for all where they do the same: auto (where that is exact), never, or always (with bounds
                      where slices are unequal) [auto]
    transfer_order    Which waiting message goes first: ready (first come, first served) or need (of the next forward pass)
                      (default: what the plan says, else ready)
    jitter            Distribution of the factor by which each task's time varies: lognormal:S, uniform:W, samples:FILE
    seed              Seed of the jitter's draws [0]
    replicas          Simulate so many draws of the jitter, and print the percentiles [1]
    jobs              Replicas at a time (default: one per core)
    trace             Write the timeline as Chrome/Perfetto JSON
    export_chakra     Write the simulated graph as Chakra execution traces, one per node, into a folder
    bulk_threshold    Synchronise gradients smaller than this together, in bulk groups: 64KiB; a larger threshold groups more
                      gradients (default: the plan's; 0B: each alone)
    bulk_wait         How long a bulk group waits after its first gradient, 1ms; gradients that are ready later stay out of it
    bulk_limit        Make no bulk group larger than this: 4MiB
    batch_threshold   Encode, decode and add slices smaller than this in one launch, as a batch: 64KiB; a larger threshold batches
                      more slices (default: the plan's; 0B: each alone)
    batch_wait        How long a batch waits after its first slice, 1ms; slices that are ready later stay out of it
    batch_limit       Make no batch larger than this: 4MiB
    density           Send sparse gradients at this density (above 0, at most 1) instead of the plan's; above the plan's
                      break-even, send them dense
    shards_by         What carries the shards of a sharded schedule: a library's collectives (library), or messages between nodes,
                      around a ring (ring) or straight to their owners (direct) (default: the plan's, else library)
    raw_allreduce     Use the library's all-reduce for gradients that are not compressed
    no_pipelining     Synchronise gradients one after the other, each in phases that do not overlap on a node
    no_bulk           Make neither bulk groups nor batches, whatever the plan says
    no_selection      Compress every gradient with the plan's algorithm, K = N
    trust_plan        Compile and run whatever programs (x.pse) the plan brings, not only those that `algorithm` names
    schedule          When gradients are synchronised: ddp: the mean of every gradient in every step; local(steps, fragments,
                      every, pattern, overlap): several steps on each node alone, then the mean of how far the weights have moved
                      (DiLoCo); fsdp(reshard, prefetch, in_flight, communicators): parameters, gradients and the optimizer's state
                      in shards over all nodes (FSDP, ZeRO-3); hsdp(shard, reshard, prefetch, in_flight, communicators):
                      parameters, gradients and the optimizer's state in shards over groups of neighbours, between which gradients
                      are averaged (HSDP) (default: what a plan YAML says, else ddp)
    wrap              Which modules a schedule handles as one layer: patterns of module names separated by commas, such as
                      transformer.h.*, or a number of elements, 100M, from which on a module is a layer. The rest of the model is
                      one layer (default: what the model file says, else by names)
    steady            Simulate so many iterations (8) one after the other, without a barrier, and report the period that they
                      settle to
    sensitivity       Also simulate with bandwidth, latency, codecs, compute … each 10 % better
    explain_interval  Say how much of the interval is due to kernels, links, computation and the simulator's own error

    InputError for a request that is wrong, other kinds of HipressError for what went wrong; KeyboardInterrupt ends it.
    """
    return Simulation(answer({"request": "simulate", "input": input, "plan": plan, "evaluations": evaluations,
                              "topology": topology, "nnodes": nnodes, "algorithm": algorithm, "machine": machine,
                              "hosts": hosts, "gpus": gpus, "profile": profile, "cluster": cluster,
                              "bandwidth": bandwidth, "latency": latency, "overhead": overhead,
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
    jobs          Threads; the output does not depend on it (default: one per core)
    shard         I/M: the I-th of M contiguous parts. Only the first has the header, so that the parts' files one after the other
                  are the whole file [1/1]
    cache         Folder that keeps what was simulated, so that the same sweep after an interruption, and any other with equal
                  points, does not simulate it again; none: keep nothing (default: OUTPUT.cache)
    no_intervals  Leave the columns of 10-90 % intervals empty: a third of the simulations
    algorithm     Programs (x.pse,y.pse) that the spec and its plans may bring
    evaluations   Plans that the search for plan 'best' simulates at each point; more: a better plan, later [300]
    trust_plan    Compile and run whatever programs (x.pse) the plan brings, not only those that `algorithm` names
    progress      Called now and then with a Progress, perhaps on another thread

    InputError for a request that is wrong, other kinds of HipressError for what went wrong; KeyboardInterrupt ends it.
    """
    return Sweep(answer({"request": "sweep", "spec": spec, "output": output, "jobs": jobs, "shard": shard,
                         "cache": cache, "no_intervals": no_intervals or None, "algorithm": algorithm,
                         "evaluations": evaluations, "trust_plan": trust_plan or None}, progress))


def replay(input: Optional[Text] = None, *, compute_time: Optional[Text] = None, forward: Optional[Text] = None,
           gradients: Optional[Text] = None, load_state: Optional[Text] = None, plan: Text,
           topology: Optional[Text] = None, algorithm: Optional[Text] = None, schedule: Optional[Text] = None,
           bulk_threshold: Optional[Text] = None, bulk_wait: Optional[Text] = None,
           bulk_limit: Optional[Text] = None, batch_threshold: Optional[Text] = None,
           batch_wait: Optional[Text] = None, batch_limit: Optional[Text] = None, density: Optional[float] = None,
           shards_by: Optional[Text] = None, raw_allreduce: bool = False, no_pipelining: bool = False,
           no_bulk: bool = False, no_selection: bool = False, trust_plan: bool = False,
           nnodes: Optional[int] = None, machine: Optional[Text] = None, hosts: Optional[int] = None,
           gpus: Optional[int] = None, profile: Optional[Text] = None, cluster: Optional[Text] = None,
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
    """Really synchronises a model's gradients between ranks as a plan says, verifies every value, and lays the measured times
    beside the predicted ones, as hipress-exec does. Answers as the tool prints with --json: a Replay, whose attributes are that
    object's keys. Arguments are the tool's long options; those that are None are not given.

    input            Gradients: name,elements lines, CSV, model YAML or a shipped model; not needed with the plan YAML of a
                     broadcast
    compute_time     Time of forward and backward together, 120ms: for a model without ready times, or to scale those that it has;
                     of all micro-steps together, where a model has several (default: the model's)
    forward          Time of the forward pass and of the optimizer before it, together: 40ms; of one pass alone, where a model has
                     several micro-steps (default: the model's, else a third of `compute_time`)
    gradients        Folder with the gradients of all ranks, the same in every iteration, instead of made-up ones:
                     rank{r}/{index}.f32 has those of rank r, index from 0 in the order of `input`, as raw little-endian fp32
                     whatever the model's dtype. Each rank verifies a part of all ranks' results, so all must be able to read the
                     whole folder; give processes a shared one
    load_state       Folder with what the encoders of all ranks keep between iterations, to begin with: rank{r}.state, as
                     `save_state` writes it. For plans that compress in stages alone (powersgd, acpsgd, rsketch), since only these
                     verify from a state on
    plan             Plan file, none, all, an algorithm's name, threshold[:ELEMENTS], or a baseline's of hipress-plan: ddp,
                     none_grouped …
    topology         One of ps, ring, allreduce, allgather, or of a broadcast chain, binomial, scatter_allgather, chain_p2p
                     (default: what a plan YAML says, else ps)
    algorithm        Codec of plan entries that are compressed but name none [onebit]
    schedule         When gradients are synchronised: ddp: the mean of every gradient in every step; local(steps, fragments,
                     every, pattern, overlap): several steps on each node alone, then the mean of how far the weights have moved
                     (DiLoCo); fsdp(reshard, prefetch, in_flight, communicators): parameters, gradients and the optimizer's state
                     in shards over all nodes (FSDP, ZeRO-3); hsdp(shard, reshard, prefetch, in_flight, communicators):
                     parameters, gradients and the optimizer's state in shards over groups of neighbours, between which gradients
                     are averaged (HSDP) (default: what a plan YAML says, else ddp). An iteration is then a period, whose steps
                     are computed by a timer
    bulk_threshold   Synchronise gradients smaller than this together, in bulk groups: 64KiB; a larger threshold groups more
                     gradients (default: the plan's; 0B: each alone)
    bulk_wait        How long a bulk group waits after its first gradient, 1ms; gradients that are ready later stay out of it
    bulk_limit       Make no bulk group larger than this: 4MiB
    batch_threshold  Encode, decode and add slices smaller than this in one launch, as a batch: 64KiB; a larger threshold batches
                     more slices (default: the plan's; 0B: each alone)
    batch_wait       How long a batch waits after its first slice, 1ms; slices that are ready later stay out of it
    batch_limit      Make no batch larger than this: 4MiB
    density          Send sparse gradients at this density (above 0, at most 1) instead of the plan's; above the plan's
                     break-even, send them dense
    shards_by        What carries the shards of a sharded schedule: a library's collectives (library), or messages between nodes,
                     around a ring (ring) or straight to their owners (direct) (default: the plan's, else library)
    raw_allreduce    Use the library's all-reduce for gradients that are not compressed
    no_pipelining    Synchronise gradients one after the other, each in phases that do not overlap on a node
    no_bulk          Make neither bulk groups nor batches, whatever the plan says
    no_selection     Compress every gradient with the plan's algorithm, K = N
    trust_plan       Compile and run whatever programs (x.pse) the plan brings, not only those that `algorithm` names
    nnodes           Ranks (default: the launcher's, else what a plan YAML says, else the cluster's)
    machine          Hosts of GPUs: a machine's file or a shipped machine, such as p5.48xlarge; it makes cluster and profile, and
                     a library's collectives are modelled (docs/collectives.md)
    hosts            Hosts of the `machine` (default: as many as `gpus` need)
    gpus             GPUs of all hosts of the `machine` together, each a node (default: all that they have)
    profile          Costs: a profile.yaml or a shipped profile, such as h100-100g (default: none, and nothing is predicted)
    cluster          Cluster YAML: hosts, speeds, slow links between pairs of hosts (docs/profiles.md); what it leaves out is the
                     profile's
    bandwidth        Bandwidth of the links between nodes: 25Gbps (default: the cluster's, else the profile's)
    latency          Latency of these links, on the wire: 20us (default: as for bandwidth)
    overhead         Time for which each message occupies the ports at both ends, besides its bytes: 20us (default: as for
                     bandwidth)
    gpus_per_node    GPUs that sum up gradients in a node first (default: the cluster's, else 1)
    gpu_bandwidth    Bandwidth of the links between a node's GPUs (default: the cluster's, else 250GB/s)
    scale_kernels    Scale kernels to a memory bandwidth: 3.35TB/s (without a value: to the profile's hardware.memory_bandwidth)
    assume_cost      Charge a program that is not measured yet what another algorithm costs: tern.pse=int4block; may be given
                     several times
    network          How predicted transfers share links: port (one message at a time) or fair (max-min) [fair]
    reprobe          Also predict by what the machine's probes reach now, where it is not as fast as when it was profiled
    iterations       Measured iterations; more: a steadier median [3]
    warmup           Iterations before them, verified but not reported [1]
    backward         What produces gradients: a timer (idle) or a busy core (spin) [idle]
    seed             Seed of made-up gradients and random draws [1]
    again            Replay again, so many times at most, where probes before and after say that the machine's speed changed
                     meanwhile [3]
    timeout          Seconds without progress after which the job ends. If given, it also limits how long the C++ compiler may
                     take for a program (x.pse), which is else 120 seconds [30.0]
    device           Where gradients lie and codecs run: cpu, or cuda [cpu]
    transport        What moves messages: tcp (TCP; connections authenticate each other by the job's secret); gloo (TCP through
                     gloo; authenticates nobody); memory (copies between threads of one process); nccl (between GPUs; its ranks
                     meet over tcp). With `device` cuda, all others go through pinned host memory [tcp]
    rendezvous       Where the processes of a job meet: file:///shared/folder, redis://host:port or, with TLS, rediss://host:port
    interface        Network interface or address to use (default: loopback)
    job              Name that tells jobs apart that meet in one place [hipress]
    secret_file      File with a secret of at least 16 bytes (mode 0600), the same for every rank (default: rank 0 leaves a secret
                     at the rendezvous)
    silence          Seconds after which a process that sends nothing, not even the beats that it sends while it computes, counts
                     as dead [300.0]
    insecure         Let `transport` gloo, which authenticates nobody, listen beyond loopback; only for networks that nobody else
                     can reach
    trace            Write the timelines as Chrome/Perfetto JSON
    means            Folder to write what each rank ends with after the last iteration, in files as `gradients` has them. Is made
                     if it is missing, and refused if it holds a file
    save_state       Folder to write what the encoders keep after the last iteration: residuals and factors. Is made if it is
                     missing; files in it are replaced
    progress         Called now and then with a Progress, perhaps on another thread

    InputError for a request that is wrong, other kinds of HipressError for what went wrong; KeyboardInterrupt ends it.
    """
    return Replay(answer({"request": "replay", "input": input, "compute_time": compute_time, "forward": forward,
                          "gradients": gradients, "load_state": load_state, "plan": plan, "topology": topology,
                          "algorithm": algorithm, "schedule": schedule, "bulk_threshold": bulk_threshold,
                          "bulk_wait": bulk_wait, "bulk_limit": bulk_limit, "batch_threshold": batch_threshold,
                          "batch_wait": batch_wait, "batch_limit": batch_limit, "density": density,
                          "shards_by": shards_by, "raw_allreduce": raw_allreduce or None,
                          "no_pipelining": no_pipelining or None, "no_bulk": no_bulk or None,
                          "no_selection": no_selection or None, "trust_plan": trust_plan or None, "nnodes": nnodes,
                          "machine": machine, "hosts": hosts, "gpus": gpus, "profile": profile, "cluster": cluster,
                          "bandwidth": bandwidth, "latency": latency, "overhead": overhead,
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

    algorithm    What to measure, separated by commas; staged ones at several ranks, whichever is given (default:
                 onebit,tbq,terngrad,dgc,graddrop,int8block,int4block,fp8block,fp4block,fp16,bf16,powersgd,acpsgd,rsketch,lossless)
    quick        Fewer sizes and repetitions: a quarter of a minute for two algorithms on an idle machine
    base         Profile of which but a part is measured anew (`anew`); the rest holds here too
    anew         What `base` is measured anew for: links, for a network too slow to show what a transfer costs the CPU, or
                 kernels, for a machine whose memory is not always as fast, or cores, what transfers cost these on links that are
                 known, for such a machine, too (default: links)
    sample       File of fp32 numbers (one of your tensors, as it lies in memory): what messages of algorithms come to whose
                 length varies with the data; with `base` and without `anew`, nothing else is measured
    nnodes       Ranks between which links are measured (default: the launcher's, else 4 that share this machine)
    device       Where codecs run: cpu, or cuda [cpu]
    transport    What links are measured of: tcp (TCP; connections authenticate each other by the job's secret); gloo (TCP through
                 gloo; authenticates nobody); memory (copies between threads of one process); nccl (between GPUs). gloo's and
                 nccl's all-gather, reduce-scatter and all-to-all are measured, too [tcp]
    passes       How often a CPU's kernels are measured, seconds apart; more where a machine is shared (default: 2)
    again        Measure again, so many times at most, where probes before and after say that the machine's speed changed
                 meanwhile (default: 3, with `quick` 1)
    timeout      Seconds without progress after which the job ends [60.0]
    rendezvous   Where the processes of a job meet that a launcher started, to measure the links between them:
                 file:///shared/folder, redis://host:port or, with TLS, rediss://host:port
    interface    Network interface or address of this process in a job (default: loopback)
    job          Name that tells jobs apart that meet in one place [hipress-profile]
    secret_file  File with a secret of at least 16 bytes (mode 0600), the same for every rank (default: rank 0 leaves a secret at
                 the rendezvous)
    silence      Seconds after which a process that sends nothing, not even the beats that it sends while it computes, counts as
                 dead [300.0]
    insecure     Let `transport` gloo, which authenticates nobody, listen beyond loopback; only for networks that nobody else can
                 reach
    output       Profile to write

    InputError for a request that is wrong, other kinds of HipressError for what went wrong; KeyboardInterrupt ends it.
    """
    return Profile(answer({"request": "profile", "algorithm": algorithm, "quick": quick or None, "base": base,
                           "anew": anew, "sample": sample, "nnodes": nnodes, "device": device,
                           "transport": transport, "passes": passes, "again": again, "timeout": timeout,
                           "rendezvous": rendezvous, "interface": interface, "job": job, "secret_file": secret_file,
                           "silence": silence, "insecure": insecure or None, "output": output}))


def import_trace(trace: Text, *, output: Optional[Text] = None, every_all_reduce: bool = False) -> Trace:
    """Reads a trace of a training job: how much of a step is communication that nothing hides, and the model that the job trains,
    as hipress-import does. Answers as the tool prints with --json: a Trace, whose attributes are that object's keys. Arguments
    are the tool's long options; those that are None are not given.

    trace             One rank's trace: PyTorch's profiler or execution trace (JSON), or a Chakra execution trace; plain or
                      gzipped. Or what describes a model: config.json, model.safetensors.index.json, *.safetensors, or a listing
                      of names and shapes
    output            Write the model YAML that the other tools read
    every_all_reduce  Every all-reduce carries gradients: where the trace does not tell which do

    InputError for a request that is wrong, other kinds of HipressError for what went wrong; KeyboardInterrupt ends it.
    """
    return Trace(answer({"request": "import_trace", "trace": trace, "output": output,
                         "every_all_reduce": every_all_reduce or None}))
