"""Experiments of scripts/validate.py: each is a row here and a module that defines EXPERIMENT."""

EXPERIMENTS = {
    "networks": "plans of four models on shaped networks, or over loopback: predicted and measured iterations",
    "plans": "the plan that hipress-plan finds beside those that it should beat",
    "break_even": "replays on both sides of the bandwidths where the verdict of hipress-plan turns",
    "link": "what a raw ring makes of a link, beside gloo's streams",
    "ddp": "--plan ddp beside PyTorch's DistributedDataParallel",
    "buckets": "the bucket_cap_mb that hipress-plan --advise names beside the fastest one of PyTorch's DDP",
    "lowrank": "plans with PowerSGD beside PyTorch's powerSGD_hook",
    "broadcast": "planned broadcasts beside gloo's",
    "sparse": "the density from which on a sparse all-gather is slower than a dense ring",
    "schedules": "replays of local updates and of sharded training",
    "local": "training by local updates beside computing alone",
    "training": "training with a plan beside DDP and its hooks",
    "sharded": "FSDP2 with a plan beside FSDP2 alone (PyTorch 2)",
    "auto": "attach() without a plan beside DDP and plans that stay, while the bandwidth changes",
    "learning": "steps ratios and times to a loss, predicted and measured",
}
