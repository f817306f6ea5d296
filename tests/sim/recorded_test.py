#!/usr/bin/env python3
"""Compares simulated times, bytes and task counts with recorded ones: a change that should not affect behaviour must not change any
of them, to the picosecond. The record has one digest per model, topology and number of nodes, over twelve cases.

usage: recorded_test.py HIPRESS-SIM RECORDED.csv [MODEL ...]           (all, without models)
       recorded_test.py HIPRESS-SIM RECORDED.csv --record              (writes the file anew)
       recorded_test.py HIPRESS-SIM RECORDED.csv --list [MODEL ...]    (prints every case: compare what two builds print)
"""
import concurrent.futures
import csv
import hashlib
import itertools
import json
import os
import pathlib
import subprocess
import sys
import tempfile

MODELS = ["bert_base", "bert_large", "gpt2", "lstm", "resnet50", "transformer", "ugatit", "ugatit_light", "vgg16",
          "vgg19", "huge", "tiny"]
#: (elements, ready time in ms). "huge": two gradients have nearly all elements, and sizes are not multiples of anything. "tiny":
#: many small gradients, some ready at the same time.
SYNTHETIC = {
    "huge": [(7, 0.1), (20000003, 1.0), (1023, 1.0), (9999991, 4.5), (1, 6.25), (65537, 9.0)],
    "tiny": [(64 + 997 * i % 4001, i // 3 * 0.07) for i in range(120)]}
TOPOLOGIES = ["ps", "ring", "allreduce"]
NODES = [1, 2, 3, 5, 16]
#: Network `port` does not support racks, so its hierarchy consists of GPUs only.
GPUS = "gpus_per_node: 4\ngpu_link: {bandwidth: 50GB/s, overhead: 5us}\n"
RACKS = "link: {bandwidth: 25Gbps, overhead: 10us, latency: 5us}\nrack: {hosts: 2, oversubscription: 3, latency: 2us}\n"
CLUSTERS = {("port", "flat"): "", ("port", "hierarchical"): GPUS,
            ("fair", "flat"): "", ("fair", "hierarchical"): GPUS + RACKS}
PLANS = {"raw": ["--plan", "none"], "mixed": ["--plan", "threshold"],
         "bulk": ["--plan", "threshold", "--bulk-threshold", "1MiB", "--bulk-wait", "2ms"]}


def cases():
    """Yields the key of each case, and its arguments of hipress-sim without those that name files."""
    for model, topology, nodes, (network, shape), plan in itertools.product(MODELS, TOPOLOGIES, NODES, CLUSTERS, PLANS):
        # A library's all-reduce sums only raw gradients and half precision.
        algorithm = "fp16" if topology == "allreduce" else "onebit"
        yield ((model, topology, str(nodes), network, shape, plan),
               ["--topology", topology, "--network", network, "--algorithm", algorithm, "--profile", "v100-100g",
                *PLANS[plan]])


def simulate(tool, folder, key, arguments):
    model, _, nodes, network, shape, _ = key
    input_ = str(folder / f"{model}.csv") if model in SYNTHETIC else model
    cluster = folder / f"{network}-{shape}-{nodes}.yaml"
    done = subprocess.run([tool, "--input", input_, "--cluster", str(cluster), "--json", *arguments], check=False,
                          stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    if done.returncode != 0:
        sys.exit(f"{' '.join(key)}: exit status {done.returncode}: {done.stderr}")
    result = json.loads(done.stdout)
    return [str(round(result["iteration_s"] * 1e12)), str(sum(result["bytes_sent_per_node"])), str(result["tasks"])]


def simulate_all(tool, models):
    with tempfile.TemporaryDirectory() as name:
        folder = pathlib.Path(name)
        for model, gradients in SYNTHETIC.items():
            lines = [f"g{index},{elements},{ready * 1000:.0f}" for index, (elements, ready) in enumerate(gradients)]
            (folder / f"{model}.csv").write_text("\n".join(["name,elements,ready_us", *lines, ""]), encoding="utf-8")
        for (network, shape), text in CLUSTERS.items():
            for nodes in NODES:
                (folder / f"{network}-{shape}-{nodes}.yaml").write_text(f"nodes: {nodes}\n{text}", encoding="utf-8")
        chosen = [case for case in cases() if case[0][0] in models]
        with concurrent.futures.ThreadPoolExecutor(os.cpu_count()) as pool:
            results = pool.map(lambda case: simulate(tool, folder, *case), chosen)
            return {key: result for (key, _), result in zip(chosen, results)}


def digests(results):
    """{(model, topology, nodes): a digest of the group's cases}."""
    groups = {}
    for key, result in results.items():
        groups.setdefault(key[:3], []).append(",".join([*key, *result]))
    return {group: hashlib.sha256("\n".join(rows).encode()).hexdigest()[:16] for group, rows in groups.items()}


def main(tool, path, *options):
    if options[:1] == ("--list",):
        for key, result in simulate_all(tool, options[1:] or MODELS).items():
            print(*key, *result, sep=",")
        return
    if options == ("--record",):
        with open(path, "w", encoding="utf-8", newline="") as file:
            writer = csv.writer(file, lineterminator="\n")
            writer.writerow(["model", "topology", "nodes", "digest"])
            writer.writerows([*group, digest] for group, digest in digests(simulate_all(tool, MODELS)).items())
        return
    models = options or MODELS
    with open(path, encoding="utf-8", newline="") as file:
        recorded = {tuple(row[:3]): row[3] for row in list(csv.reader(file))[1:] if row[0] in models}
    found = digests(simulate_all(tool, models))
    if recorded.keys() != found.keys():
        sys.exit("the recorded cases are others: record them anew with a build of which they are known to be right")
    differing = [group for group in found if found[group] != recorded[group]]
    for group in differing:
        print(f"{' '.join(group)} nodes: times, bytes or tasks are others; see what --list prints, here and before the change")
    print(f"{len(found) - len(differing)} of {len(found)} groups as recorded")
    if differing:
        sys.exit(1)


if __name__ == "__main__":
    main(*sys.argv[1:])
