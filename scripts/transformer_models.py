#!/usr/bin/python3
"""Writes the model file of a large transformer with published shapes, for a given time of a step.

    scripts/transformer_models.py llama3_70b --step 4s --output llama3_70b.yaml
    scripts/transformer_models.py --list

The time of a step, `--step`, is distributed over matrices in proportion to their elements; look-ups of embeddings take none.
Forward takes a third of it, or a quarter with `--checkpointing`, whose backward computes forward again. `--layers 10`
reduces the number of layers. Needs only Python 3.
"""

import argparse
import sys
from typing import NamedTuple

from options import at_least
from whole_file import replacing


class Tensor(NamedTuple):
    name: str
    shape: tuple
    computes: bool = True  # true for a matrix that activations are multiplied with

    @property
    def elements(self):
        product = 1
        for size in self.shape:
            product *= size
        return product


class Shapes(NamedTuple):
    layers: int
    width: int
    source: str
    inner: int = 0       # width of the feed-forward part
    key_width: int = 0   # width of the keys in all heads together, and of the values
    words: int = 0
    attention: int = 0   # width of the queries in all heads together


SHAPES = {
    "llama3_8b": Shapes(32, 4096, "Llama 3 (arXiv 2407.21783), table 3", 14336, 1024, 128256),
    "llama3_70b": Shapes(80, 8192, "Llama 3 (arXiv 2407.21783), table 3", 28672, 1024, 128256),
    "llama3_405b": Shapes(126, 16384, "Llama 3 (arXiv 2407.21783), table 3", 53248, 1024, 128256),
    "gpt_18b": Shapes(40, 6144, "DeepSpeed's tutorial of ZeRO++ (docs/_tutorials/zeropp.md)", words=50304),
    "gpt_138b": Shapes(76, 12288, "width of GPT-3; as many layers as make 138 billion parameters", words=50304),
    "gpt_175b": Shapes(96, 12288, "GPT-3 (arXiv 2005.14165), table 2.1", words=50304),
    "t5_11b": Shapes(24, 1024, "T5-11B (arXiv 1910.10683), section 3.7: 128 heads of 128", 65536, words=32128, attention=16384),
}


def llama(shapes, layer):
    """Tensors of a layer in the order of forward."""
    name, width = f"layers.{layer}", shapes.width
    return [
        Tensor(f"{name}.attention_norm.weight", (width,), False),
        Tensor(f"{name}.attention.wq.weight", (width, width)),
        Tensor(f"{name}.attention.wk.weight", (shapes.key_width, width)),
        Tensor(f"{name}.attention.wv.weight", (shapes.key_width, width)),
        Tensor(f"{name}.attention.wo.weight", (width, width)),
        Tensor(f"{name}.ffn_norm.weight", (width,), False),
        Tensor(f"{name}.feed_forward.w1.weight", (shapes.inner, width)),
        Tensor(f"{name}.feed_forward.w3.weight", (shapes.inner, width)),
        Tensor(f"{name}.feed_forward.w2.weight", (width, shapes.inner)),
    ]


def gpt(shapes, layer):
    name, width = f"layers.{layer}", shapes.width
    return [
        Tensor(f"{name}.input_norm.weight", (2, width), False),
        Tensor(f"{name}.attention.qkv.weight", (3 * width, width)),
        Tensor(f"{name}.attention.dense.weight", (width, width)),
        Tensor(f"{name}.post_norm.weight", (2, width), False),
        Tensor(f"{name}.mlp.up.weight", (4 * width, width)),
        Tensor(f"{name}.mlp.down.weight", (width, 4 * width)),
        Tensor(f"{name}.biases", (9, width), False),
    ]


def t5(shapes, stack, layer):
    name, width = f"{stack}.{layer}", shapes.width
    attentions = ["self_attention"] + (["cross_attention"] if stack == "decoder" else [])
    tensors = []
    for attention in attentions:
        tensors += [Tensor(f"{name}.{attention}.{part}.weight", (shapes.attention, width)) for part in ("q", "k", "v")]
        tensors.append(Tensor(f"{name}.{attention}.o.weight", (width, shapes.attention)))
    return tensors + [Tensor(f"{name}.wi.weight", (shapes.inner, width)), Tensor(f"{name}.wo.weight", (width, shapes.inner))]


def tensors_of(name, layers=None):
    """Tensors of a model in the order of forward."""
    shapes = SHAPES[name]
    table = (shapes.words, shapes.width)
    count = layers or shapes.layers
    tensors = [Tensor("embeddings.weight", table, False)]
    if name.startswith("t5"):
        for stack in ("encoder", "decoder"):
            for layer in range(count):
                tensors += t5(shapes, stack, layer)
        return tensors
    for layer in range(count):
        tensors += llama(shapes, layer) if name.startswith("llama") else gpt(shapes, layer)
    tensors.append(Tensor("norm.weight", (shapes.width,), False))
    if name.startswith("llama"):
        tensors.append(Tensor("output.weight", table))
    return tensors


def elements_of(name, layers=None):
    return sum(tensor.elements for tensor in tensors_of(name, layers))


def model_yaml(name, step_s, dtype="bfloat16", checkpointing=False, layers=None):
    """Text of the model file; a step computes for `step_s` seconds."""
    tensors = tensors_of(name, layers)
    work = sum(tensor.elements for tensor in tensors if tensor.computes)
    forward_s = step_s / (4 if checkpointing else 3)
    lines = [f"name: {name}", f"source: shapes of {SHAPES[name].source}; computation as it was asked for, shared out by elements",
             f"dtype: {dtype}", f"forward: {forward_s:.9g}s", "gradients:"]
    done = 0
    for tensor in reversed(tensors):
        done += tensor.elements if tensor.computes else 0
        ready_s = (step_s - forward_s) * done / work
        lines.append(f"- {{name: {tensor.name}, shape: [{', '.join(map(str, tensor.shape))}], ready: {ready_s:.9g}s}}")
    return "\n".join(lines) + "\n"


def seconds(text):
    for unit, factor in (("ms", 1e-3), ("s", 1.0)):
        if text.endswith(unit):
            try:
                value = float(text[:-len(unit)]) * factor
            except ValueError:
                break
            if 0 < value < 1e6:
                return value
            break
    raise argparse.ArgumentTypeError(f"must be a time with unit, such as 4s or 250ms, got '{text}'")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("model", nargs="?", choices=sorted(SHAPES))
    parser.add_argument("--list", action="store_true", help="print models, their layers and parameters")
    parser.add_argument("--step", type=seconds, default=1.0, help="computation of a step (default 1s)")
    parser.add_argument("--dtype", choices=("bfloat16", "float16", "float32"), default="bfloat16")
    parser.add_argument("--checkpointing", action="store_true", help="backward computes forward again")
    parser.add_argument("--layers", type=at_least(1), help="another number of layers (of each stack)")
    parser.add_argument("--output", help="file to write (default: stdout)")
    options = parser.parse_args()
    if options.list:
        for name, shapes in SHAPES.items():
            print(f"{name:<12}{shapes.layers:>4} layers {elements_of(name) / 1e9:>6.1f} billion parameters; {shapes.source}")
        return
    if options.model is None:
        parser.error("give a model, one of " + ", ".join(sorted(SHAPES)))
    text = model_yaml(options.model, options.step, options.dtype, options.checkpointing, options.layers)
    if options.output:
        with replacing(options.output) as path:
            path.write_text(text)
    else:
        sys.stdout.write(text)


if __name__ == "__main__":
    main()
