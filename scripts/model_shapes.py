"""The shapes of the shipped models' gradients, from the published architectures: for make_models.py.

Dimensions are in the framework's order, outermost first: a convolution is [out, in, height, width],
a linear layer [out, in], an embedding [words, width]; GPT-2's Conv1D, as Hugging Face writes it, is
[in, out]. A bias or norm has one dimension, but U-GAT-IT's norms are [1, channels, 1, 1]. An
architecture is a function that returns {gradient: shape}; to add one, add it to ARCHITECTURES.
"""

import math

#: Channels of the convolutions of VGG's five stages, each followed by pooling.
VGG16 = ((64, 64), (128, 128), (256,) * 3, (512,) * 3, (512,) * 3)
VGG19 = ((64, 64), (128, 128), (256,) * 4, (512,) * 4, (512,) * 4)
VGG_CLASSIFIER = ((4096, 512 * 7 * 7), (4096, 4096), (1000, 4096))


def layer(name, *shape, separator="."):
    """A weight of that shape, and a bias for each of its outputs."""
    return {f"{name}{separator}weight": shape, f"{name}{separator}bias": shape[:1]}


def vgg_convolutions(stages):
    """(index in torchvision's `features`, shape) of each convolution: a ReLU follows each of them, a
    pooling each stage."""
    index, channels = 0, 3
    for stage in stages:
        for out in stage:
            yield index, (out, channels, 3, 3)
            index, channels = index + 2, out
        index += 1


def vgg16():
    """torchvision's vgg16."""
    shapes = {}
    for index, shape in vgg_convolutions(VGG16):
        shapes |= layer(f"features.{index}", *shape)
    for index, shape in zip((0, 3, 6), VGG_CLASSIFIER):
        shapes |= layer(f"classifier.{index}", *shape)
    return shapes


def vgg19():
    """MXNet's vgg19, which numbers layers of a kind."""
    shapes = {}
    for number, (_, shape) in enumerate(vgg_convolutions(VGG19)):
        shapes |= layer(f"vgg0_conv{number}", *shape, separator="_")
    for number, shape in enumerate(VGG_CLASSIFIER):
        shapes |= layer(f"vgg0_dense{number}", *shape, separator="_")
    return shapes


def resnet50():
    """torchvision's resnet50: bottlenecks of 1x1, 3x3 and 1x1, the last of four times the width."""
    shapes = {"conv1.weight": (64, 3, 7, 7), **layer("bn1", 64), **layer("fc", 1000, 2048)}
    channels = 64
    for stage, blocks in enumerate((3, 4, 6, 3)):
        width = 64 << stage
        for block in range(blocks):
            name = f"layer{stage + 1}.{block}"
            convolutions = ((width, channels, 1, 1), (width, width, 3, 3), (4 * width, width, 1, 1))
            for number, shape in enumerate(convolutions, 1):
                shapes[f"{name}.conv{number}.weight"] = shape
                shapes |= layer(f"{name}.bn{number}", shape[0])
            if block == 0:
                shapes[f"{name}.downsample.0.weight"] = (4 * width, channels, 1, 1)
                shapes |= layer(f"{name}.downsample.1", 4 * width)
            channels = 4 * width
    return shapes


def lstm():
    """Two layers of nn.LSTM, whose four gates lie in one matrix; the decoder's weight is the
    encoder's."""
    words, width = 33278, 1500
    shapes = {"encoder.weight": (words, width), "decoder.bias": (words,)}
    for number in range(2):
        for part in ("ih", "hh"):
            shapes[f"rnns.{number}.weight_{part}_l0"] = (4 * width, width)
            shapes[f"rnns.{number}.bias_{part}_l0"] = (4 * width,)
    return shapes


def bert(width, depth):
    """BERT for question answering, of words padded to 30528, a multiple of 8."""
    inner = 4 * width
    shapes = {f"bert.embeddings.{table}_embeddings.weight": (rows, width)
              for table, rows in (("word", 30528), ("position", 512), ("token_type", 2))}
    shapes |= layer("bert.embeddings.LayerNorm", width) | layer("qa_outputs", 2, width)
    for number in range(depth):
        name = f"bert.encoder.layer.{number}"
        for part in ("self.query", "self.key", "self.value", "output.dense"):
            shapes |= layer(f"{name}.attention.{part}", width, width)
        shapes |= layer(f"{name}.attention.output.LayerNorm", width)
        shapes |= layer(f"{name}.intermediate.dense_act", inner, width)
        shapes |= layer(f"{name}.output.dense", width, inner)
        shapes |= layer(f"{name}.output.LayerNorm", width)
    return shapes


def gpt2():
    """Hugging Face's GPT-2 small."""
    width = 768
    shapes = {"transformer.wte.weight": (50257, width), "transformer.wpe.weight": (1024, width),
              **layer("transformer.ln_f", width)}
    for number in range(12):
        name = f"transformer.h.{number}"
        shapes |= layer(f"{name}.ln_1", width) | layer(f"{name}.ln_2", width)
        for part, inputs, outputs in (("attn.c_attn", width, 3 * width),
                                      ("attn.c_proj", width, width),
                                      ("mlp.c_fc", width, 4 * width),
                                      ("mlp.c_proj", 4 * width, width)):
            shapes[f"{name}.{part}.weight"] = (inputs, outputs)
            shapes[f"{name}.{part}.bias"] = (outputs,)
    return shapes


def transformer():
    """The base Transformer of make_models.py."""
    width, inner, words = 512, 2048, 33708

    def norm(name):
        return {f"{name}.scale": (width,), f"{name}.bias": (width,)}

    shapes = {"shared_embedding.weight": (words, width)}
    for side, attentions in (("encoder", ("self",)), ("decoder", ("self", "cross"))):
        shapes |= norm(f"{side}.final_norm")
        for number in range(6):
            name = f"{side}.layer.{number}"
            shapes |= norm(f"{name}.ffn_norm")
            shapes |= layer(f"{name}.ffn.inner", inner, width)
            shapes |= layer(f"{name}.ffn.outer", width, inner)
            for attention in attentions:
                shapes |= norm(f"{name}.{attention}_attention_norm")
                for part in ("query", "key", "value", "output"):
                    shapes[f"{name}.{attention}_attention.{part}.weight"] = (width, width)
    return shapes


def ugatit_discriminator(name, layers):
    """Convolutions of 4x4 that double the channels; spectral norm keeps weights as weight_orig."""
    shapes, channels = {}, 3
    for number in range(layers - 1):
        out = 64 << number
        convolution = f"{name}.model.{1 + 3 * number}"
        shapes[f"{convolution}.weight_orig"] = (out, channels, 4, 4)
        shapes[f"{convolution}.bias"] = (out,)
        channels = out
    shapes[f"{name}.gap_fc.weight_orig"] = shapes[f"{name}.gmp_fc.weight_orig"] = (1, channels)
    shapes |= layer(f"{name}.conv1x1", channels, 2 * channels, 1, 1)
    shapes[f"{name}.conv.weight_orig"] = (1, channels, 4, 4)
    return shapes


def ugatit_generator(name, fc_inputs):
    width = 256  # channels after both down-samplings
    square = (width, width, 3, 3)
    shapes = {f"{name}.DownBlock.1.weight": (64, 3, 7, 7),
              f"{name}.DownBlock.5.weight": (128, 64, 3, 3),
              f"{name}.DownBlock.9.weight": (256, 128, 3, 3),
              f"{name}.gap_fc.weight": (1, width), f"{name}.gmp_fc.weight": (1, width),
              **layer(f"{name}.conv1x1", width, 2 * width, 1, 1),
              f"{name}.FC.0.weight": (width, fc_inputs), f"{name}.FC.2.weight": (width, width),
              f"{name}.gamma.weight": (width, width), f"{name}.beta.weight": (width, width),
              f"{name}.UpBlock2.2.weight": (128, 256, 3, 3),
              f"{name}.UpBlock2.7.weight": (64, 128, 3, 3),
              f"{name}.UpBlock2.11.weight": (3, 64, 7, 7)}
    for norm, channels in ((3, 128), (8, 64)):
        for part in ("rho", "gamma", "beta"):
            shapes[f"{name}.UpBlock2.{norm}.{part}"] = (1, channels, 1, 1)
    for block in range(4):
        for convolution in (1, 5):
            shapes[f"{name}.DownBlock.{12 + block}.conv_block.{convolution}.weight"] = square
        for convolution in (1, 2):
            shapes[f"{name}.UpBlock1_{block + 1}.conv{convolution}.weight"] = square
            shapes[f"{name}.UpBlock1_{block + 1}.norm{convolution}.rho"] = (1, width, 1, 1)
    return shapes


def ugatit(fc_inputs):
    """The authors' U-GAT-IT in PyTorch: images of 256x256, four residual blocks."""
    shapes = {}
    for side in "AB":
        shapes |= ugatit_discriminator(f"disL{side}", 5) | ugatit_discriminator(f"disG{side}", 7)
    for name in ("genA2B", "genB2A"):
        shapes |= ugatit_generator(name, fc_inputs)
    return shapes


ARCHITECTURES = {
    "bert_base": lambda: bert(768, 12),
    "bert_large": lambda: bert(1024, 24),
    "gpt2": gpt2,
    "lstm": lstm,
    "resnet50": resnet50,
    "transformer": transformer,
    "ugatit": lambda: ugatit(64 * 64 * 256),
    "ugatit_light": lambda: ugatit(256),
    "vgg16": vgg16,
    "vgg19": vgg19,
}


class Mismatch(Exception):
    """An architecture and a model's gradients are not of each other; the message names one."""


def shapes_of(model, elements):
    """{gradient: shape} of all gradients in {gradient: elements}, and nothing else; {} for a model
    that has no architecture here. Mismatch if a gradient is missing, too much or of another size."""
    if model not in ARCHITECTURES:
        return {}
    shapes = ARCHITECTURES[model]()
    for name in sorted(shapes.keys() ^ elements.keys()):
        where = "architecture" if name in shapes else "list of gradients"
        raise Mismatch(f"{model}: {name} is in the {where} alone; correct {__file__}")
    for name, shape in shapes.items():
        if math.prod(shape) != elements[name]:
            raise Mismatch(f"{model}: {name} has {elements[name]} elements, its shape {list(shape)} "
                           f"{math.prod(shape)}; correct {__file__}")
    return shapes
