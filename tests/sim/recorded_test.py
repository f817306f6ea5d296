#!/usr/bin/env python3
"""Simulated times, bytes and task counts beside recorded ones: a change that is meant to leave behaviour alone leaves
all of them alone, to the picosecond.

usage: recorded_test.py HIPRESS-SIM RECORDED.csv [MODEL ...]     (all, without models)
       recorded_test.py HIPRESS-SIM RECORDED.csv --record        (writes the file anew)
"""
import concurrent.futures
import csv
import itertools
import json
import os
import pathlib
import subprocess
import sys
import tempfile

MODELS = ["bert_base", "bert_large", "gpt2", "lstm", "resnet50", "transformer", "ugatit", "ugatit_light", "vgg16",
          "vgg19", "huge", "tiny"]
#: (elements, ready in ms): few gradients that hold nearly all, of sizes that nothing divides; many small ones, some
#: ready at the same time.
SYNTHETIC = {
    "huge": [(7, 0.1), (20000003, 1.0), (1023, 1.0), (9999991, 4.5), (1, 6.25), (65537, 9.0)],
    "tiny": [(64 + 997 * i % 4001, i // 3 * 0.07) for i in range(120)]}
TOPOLOGIES = ["ps", "ring", "allreduce"]
NODES = [1, 2, 3, 5, 16]
#: `port` knows no racks, so that its hierarchy is one of GPUs alone.
GPUS = "gpus_per_node: 4\ngpu_link: {bandwidth: 50GB/s, overhead: 5us}\n"
RACKS = "link: {bandwidth: 25Gbps, overhead: 10us, latency: 5us}\nrack: {hosts: 2, oversubscription: 3, latency: 2us}\n"
CLUSTERS = {("port", "flat"): "", ("port", "hierarchical"): GPUS,
            ("fair", "flat"): "", ("fair", "hierarchical"): GPUS + RACKS}
PLANS = {"raw": ["--plan", "none"], "mixed": ["--plan", "threshold"],
         "bulk": ["--plan", "threshold", "--bulk-threshold", "1MiB", "--bulk-wait", "2ms"]}
COLUMNS = ["iteration_ps", "bytes", "tasks"]


def cases():
    """Each with its key and hipress-sim's arguments, but the files'."""
    for model, topology, nodes, (network, shape), plan in itertools.product(MODELS, TOPOLOGIES, NODES, CLUSTERS, PLANS):
        # A library's all-reduce sums nothing but raw gradients and half precision.
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


def main(tool, path, *options):
    if options == ("--record",):
        results = simulate_all(tool, MODELS)
        with open(path, "w", encoding="utf-8", newline="") as file:
            writer = csv.writer(file, lineterminator="\n")
            writer.writerow(["model", "topology", "nodes", "network", "cluster", "plan", *COLUMNS])
            writer.writerows([*key, *result] for key, result in results.items())
        return
    with open(path, encoding="utf-8", newline="") as file:
        recorded = {tuple(row[:-len(COLUMNS)]): row[-len(COLUMNS):] for row in list(csv.reader(file))[1:]}
    models = options or MODELS
    recorded = {key: result for key, result in recorded.items() if key[0] in models}
    results = simulate_all(tool, models)
    if recorded.keys() != results.keys():
        sys.exit("the recorded cases are others: record them anew with a build of which they are known to be right")
    differing = [key for key in results if results[key] != recorded[key]]
    for key in differing[:20]:
        changes = ", ".join(f"{name} {was} -> {now}" for name, was, now in zip(COLUMNS, recorded[key], results[key])
                            if was != now)
        print(f"{' '.join(key)}: {changes}")
    print(f"{len(results) - len(differing)} of {len(results)} as recorded")
    if differing:
        sys.exit(1)


if __name__ == "__main__":
    main(*sys.argv[1:])
