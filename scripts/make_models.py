#!/usr/bin/python3
"""Writes the model files in models/: measured backward timings as they are, the others derived.

    scripts/make_models.py [--output FOLDER]

Inputs are tests/data/workloads/*.csv (name, elements, ready_us, measured on a V100) and, for
VGG19's names and sizes, examples/vgg19_gradients.txt. model_shapes.py derives the shapes. Running
it again gives the same files. To add a model, yield it in models(), and add its architecture there.
Needs nothing but Python 3.
"""

import argparse
import csv
import pathlib
import textwrap
from typing import NamedTuple

from model_shapes import shapes_of

ROOT = pathlib.Path(__file__).resolve().parent.parent
WORKLOADS = ROOT / "tests/data/workloads"


class Gradient(NamedTuple):
    name: str
    elements: int
    ready_us: float  # since backward began


class Model(NamedTuple):
    name: str
    source: str
    batch: int  # units per GPU and iteration, 0 if not known
    unit: str
    gradients: list  # of Gradient, in backward order


def backward_us(gradients):
    return max(gradient.ready_us for gradient in gradients)


def measured(workload):
    """The gradients of one measured workload, in backward order."""
    with open(WORKLOADS / f"{workload}.csv", newline="") as file:
        return [Gradient(row["name"], int(row["elements"]), float(row["ready_us"]))
                for row in csv.DictReader(file)]


def intervals(gradients):
    """How long each gradient took after the one before it: {name: us}."""
    before = [0.0] + [gradient.ready_us for gradient in gradients[:-1]]
    return {gradient.name: gradient.ready_us - start for gradient, start in zip(gradients, before)}


def from_intervals(sizes_and_intervals):
    """Gradients from (name, elements, us after the one before) in backward order."""
    gradients, now = [], 0.0
    for name, elements, interval in sizes_and_intervals:
        now += interval
        gradients.append(Gradient(name, elements, now))
    return gradients


def measured_model(name, workload, batch, unit, note):
    source = f"Sizes and ready times measured on one V100. {note}"
    return Model(name, source, batch, unit, measured(workload))


def vgg19():
    """VGG19 is VGG16 with one convolution more in each of the stages 3, 4 and 5: of the same shape
    as the inner one there, so of the same FLOPs. Every layer gets the time of VGG16's layer of the
    same shape and place."""
    elements = {}
    for line in (ROOT / "examples/vgg19_gradients.txt").read_text().split():
        name, count = line.split(",")
        elements[name] = int(count)

    # torchvision's indices of VGG16's convolutions; a stage's last one includes its pooling.
    stages16 = [(0, 2), (5, 7), (10, 12, 14), (17, 19, 21), (24, 26, 28)]
    convolutions = []  # VGG16's index for each of VGG19's 16 convolutions
    for stage in stages16:
        convolutions += stage if len(stage) == 2 else (stage[0], stage[1], stage[1], stage[2])
    layers = [(f"vgg0_conv{i}", f"features.{j}") for i, j in enumerate(convolutions)]
    layers += [(f"vgg0_dense{i}", f"classifier.{j}") for i, j in enumerate((0, 3, 6))]

    took_us = intervals(measured("vgg16"))
    rows = [(f"{ours}_{part}", elements[f"{ours}_{part}"], took_us[f"{theirs}.{part}"])
            for ours, theirs in reversed(layers) for part in ("bias", "weight")]
    source = (
        "Sizes as in MXNet's vgg19. Ready times derived, not measured: each layer takes as long as "
        "the layer of the same shape, and so of the same FLOPs, of VGG16 measured on one V100 at "
        "batch 32. Check: 1.5 times this backward is 150 ms, and the published speed of one V100 "
        "(206.5 images/s) is 155 ms for 32 images.")
    return Model("vgg19", source, 32, "images", from_intervals(rows))


def transformer():
    """The base Transformer with one matrix shared by both embeddings and the logits. Backward costs
    4 FLOPs per weight element and token (2 for the gradient of the weights, 2 for that of the
    inputs); attention scores, layer norms and look-ups are neglected."""
    width, inner, words, depth = 512, 2048, 33708, 6
    tokens, tokens_per_s = 2048, 139131 / 8  # published: 8 V100, linear scaling

    def attention(prefix):
        return [(f"{prefix}.{part}.weight", width * width)
                for part in ("output", "value", "key", "query")]

    def feed_forward(prefix):
        return [(f"{prefix}.outer.bias", width), (f"{prefix}.outer.weight", inner * width),
                (f"{prefix}.inner.bias", inner), (f"{prefix}.inner.weight", inner * width)]

    def norm(prefix):
        return [(f"{prefix}.bias", width), (f"{prefix}.scale", width)]

    def layer(prefix, attentions):
        blocks = norm(f"{prefix}.ffn_norm") + feed_forward(f"{prefix}.ffn")
        for name in attentions:
            blocks += norm(f"{prefix}.{name}_norm") + attention(f"{prefix}.{name}")
        return blocks

    backward = norm("decoder.final_norm")
    for i in reversed(range(depth)):
        backward += layer(f"decoder.layer.{i}", ("cross_attention", "self_attention"))
    backward += norm("encoder.final_norm")
    for i in reversed(range(depth)):
        backward += layer(f"encoder.layer.{i}", ("self_attention",))

    def is_matrix(name):
        return name.endswith(".weight")

    # Backward begins with the logits, but the shared matrix waits for the embeddings at its end.
    logits = width * words
    work = logits + sum(count for name, count in backward if is_matrix(name))
    us_per_element = 2 / 3 * tokens / tokens_per_s * 1e6 / work
    rows = [(name, count, us_per_element * count if is_matrix(name) else 0.0)
            for name, count in backward]
    rows[0] = (rows[0][0], rows[0][1], us_per_element * logits)
    rows.append(("shared_embedding.weight", logits, 0.0))
    source = (
        "Base Transformer, 33708 words, embeddings and logits shared. Ready times derived, not "
        "measured: proportional to the layers' FLOPs, scaled so that backward is two thirds of the "
        "time that one V100 takes for 2048 tokens at its published speed (17391 tokens/s).")
    return Model("transformer", source, tokens, "tokens", from_intervals(rows))


def ugatit_light():
    """U-GAT-IT's light variant pools before its generators' first fully connected layer, which then
    is 256 x 256 instead of (64 * 64 * 256) x 256; all else is equal."""
    took_us = intervals(measured("ugatit"))
    light = 256 * 256
    rows = []
    for name, elements, _ in measured("ugatit"):
        share = light / elements if name.endswith(".FC.0.weight") else 1.0
        rows.append((name, round(elements * share), took_us[name] * share))
    source = (
        "Sizes of the light variant. Ready times derived, not measured: those of UGATIT measured on "
        "one V100, the time of each generator's first fully connected layer scaled by its FLOPs "
        "(256 instead of 1048576 inputs).")
    return Model("ugatit_light", source, 2, "images", from_intervals(rows))


def measured_models():
    duration = "Batch {} inferred from the duration."
    question = "Question-answering head; batch not recorded."
    yield measured_model("vgg16", "vgg16", 32, "images", duration.format(32))
    yield measured_model("resnet50", "resnet50", 32, "images", duration.format(32))
    yield measured_model("lstm", "lstm", 80, "sequences", "2 layers of 1500, tied embedding, "
                         "33278 words. " + duration.format(80))
    yield measured_model("ugatit", "ugatit", 2, "images", "One image of each domain; the "
                         "discriminators' backward is first, then the generators' whole pass.")
    yield measured_model("bert_base", "bert", 0, "tokens", question)
    yield measured_model("bert_large", "bert_large", 0, "tokens", question)
    yield measured_model("gpt2", "gpt2", 0, "tokens", "GPT-2 small; batch not recorded.")


def models():
    """Every shipped model; to add one, yield it here."""
    yield from measured_models()
    yield vgg19()
    yield transformer()
    yield ugatit_light()


def entry(gradient, shape):
    """Without a shape, a gradient has one dimension."""
    ending = f", shape: [{', '.join(map(str, shape))}]" if shape else ""
    return (f"- {{name: {gradient.name}, elements: {gradient.elements}, "
            f"ready: {gradient.ready_us:.0f}us{ending}}}")


def write(model, folder):
    # A forward pass has half of backward's FLOPs, and no forward was timed.
    forward_ms = backward_us(model.gradients) / 2 / 1000
    source = textwrap.fill(model.source + " Forward is estimated as half of backward.", width=100,
                           initial_indent="  ", subsequent_indent="  ")
    lines = ["# Written by scripts/make_models.py.", f"name: {model.name}", "source: >-", source]
    if model.batch:
        lines.append(f"batch: {model.batch}")
    lines += [f"unit: {model.unit}", "dtype: float32", f"forward: {forward_ms:.3f}ms",
              "gradients:  # in backward order, ready since backward began"]
    shapes = shapes_of(model.name, {g.name: g.elements for g in model.gradients})
    lines += [entry(gradient, shapes.get(gradient.name)) for gradient in model.gradients]
    (folder / f"{model.name}.yaml").write_text("\n".join(lines) + "\n")


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description="Writes the shipped models.")
    parser.add_argument("--output", type=pathlib.Path, default=ROOT / "models",
                        help="folder to write into (default: models/)")
    output = parser.parse_args().output
    for model in models():
        write(model, output)
