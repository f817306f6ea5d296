"""Experiments of scripts/validate.py: each is a row here and a module that defines EXPERIMENT."""

EXPERIMENTS = {
    "networks": "plans of four models on shaped networks, or over loopback: predicted and measured iterations",
    "plans": "the plan that hipress-plan finds, compared with plans that it should beat",
    "break_even": "replays on both sides of the bandwidths where the verdict of hipress-plan turns",
    "link": "the share of a link that a raw ring uses, compared with gloo's streams",
    "ddp": "--plan ddp, compared with PyTorch's DistributedDataParallel",
    "buckets": "the bucket_cap_mb that hipress-plan --advise names, compared with the fastest one of PyTorch's DDP",
    "lowrank": "plans with PowerSGD, compared with PyTorch's powerSGD_hook",
    "broadcast": "planned broadcasts, compared with gloo's",
    "sparse": "the density above which a sparse all-gather is slower than a dense ring",
    "schedules": "replays of local updates and of sharded training",
    "local": "training by local updates, compared with computing alone",
    "training": "training with a plan, compared with DDP and its hooks",
    "sharded": "FSDP2 with a plan, compared with FSDP2 alone (PyTorch 2)",
    "auto": "attach() without a plan, compared with DDP and fixed plans, while the bandwidth changes",
    "learning": "steps ratios and times to a loss, predicted and measured",
}
