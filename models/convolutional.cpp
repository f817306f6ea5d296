#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstddef>
#include <string>
#include <utility>
#include <vector>

#include "models/architecture_builder.hpp"
#include "models/architectures.hpp"

/// Architectures of convolutions.
namespace hipress::models {
namespace {

using ConvolutionBuilder = ArchitectureBuilder;

constexpr int kClasses = 1000;

}  // namespace

Model resnet(const Sizes& sizes) {
  struct Depth {
    int layers;
    std::array<int, 4> blocks;
  };
  constexpr Depth kDepths[] = {{18, {2, 2, 2, 2}},
                               {34, {3, 4, 6, 3}},
                               {50, {3, 4, 6, 3}},
                               {101, {3, 4, 23, 3}},
                               {152, {3, 8, 36, 3}}};
  constexpr int kImage = 224, kBase = 64;
  const auto* depth = std::ranges::find(kDepths, sizes.layers, &Depth::layers);
  const bool basic = sizes.inner == 0;
  const int expansion = basic ? 1 : 4, groups = std::max(1, sizes.heads);
  ConvolutionBuilder all;
  int side = all.convolution("conv1", "bn1", kBase, 3, kImage, 7, 2) / 2;  // halved by a pooling
  int in = kBase;
  for (int stage = 0; stage < 4; ++stage) {
    const int planes = kBase << stage;
    const int out = planes * expansion, width = basic ? planes : planes * sizes.inner * groups / 64;
    for (int i = 0; i < depth->blocks[static_cast<std::size_t>(stage)]; ++i) {
      const std::string name = fmt::format("layer{}.{}", stage + 1, i);
      const int stride = stage > 0 && i == 0 ? 2 : 1, before = side;
      const auto convolve = [&](int number, int to, int from, int kernel, int by, int grouped) {
        side = all.convolution(fmt::format("{}.conv{}", name, number),
                               fmt::format("{}.bn{}", name, number), to, from, side, kernel, by,
                               grouped);
      };
      if (basic) {
        convolve(1, planes, in, 3, stride, 1);
        convolve(2, planes, planes, 3, 1, 1);
      } else {
        convolve(1, width, in, 1, 1, 1);
        convolve(2, width, width, 3, stride, groups);
        convolve(3, out, width, 1, 1, 1);
      }
      if (stride > 1 || in != out) {
        all.convolution(name + ".downsample.0", name + ".downsample.1", out, in, before, 1, stride);
      }
      in = out;
    }
  }
  all.linear("fc", kClasses, in);
  return all.take("images");
}

namespace {

/// Channels times `percent` / 100, rounded to a multiple of 8 that is at least 90 % of the exact
/// value.
int scaled_channels(int channels, int percent) {
  const int scaled = std::max(8, (channels * percent + 400) / 100 / 8 * 8);
  return 1000 * scaled < 9 * channels * percent ? scaled + 8 : scaled;
}

/// Adds an inverted bottleneck with squeeze and excitation. Returns the side of the output.
int mobile_block(ConvolutionBuilder& all, const std::string& name, int in, int out, int expand,
                 int kernel, int stride, int side) {
  const int inner = in * expand, squeezed = std::max(1, in / 4);
  int part = 0;
  const auto next = [&] { return fmt::format("{}.block.{}", name, part++); };
  if (expand > 1) {
    const std::string called = next();
    all.convolution(called + ".0", called + ".1", inner, in, side, 1, 1);
  }
  const std::string deep = next(), squeeze = next(), project = next();
  side = all.convolution(deep + ".0", deep + ".1", inner, inner, side, kernel, stride, inner);
  all.biased_convolution(squeeze + ".fc1", squeezed, inner, 1, 1);
  all.biased_convolution(squeeze + ".fc2", inner, squeezed, 1, 1);
  all.values(3.0 * inner * side * side);  // the mean, and the product with the excitation
  all.convolution(project + ".0", project + ".1", out, inner, side, 1, 1);
  return side;
}

}  // namespace

Model efficientnet(const Sizes& sizes) {
  struct Stage {
    int expand, kernel, stride, in, out, blocks;
  };
  constexpr std::array<Stage, 7> kStages = {{{1, 3, 1, 32, 16, 1},
                                             {6, 3, 2, 16, 24, 2},
                                             {6, 5, 2, 24, 40, 2},
                                             {6, 3, 2, 40, 80, 3},
                                             {6, 5, 1, 80, 112, 3},
                                             {6, 5, 2, 112, 192, 4},
                                             {6, 3, 1, 192, 320, 1}}};
  ConvolutionBuilder all;
  int in = scaled_channels(kStages.front().in, sizes.width), number = 0;
  int side = all.convolution("features.0.0", "features.0.1", in, 3, sizes.image, 3, 2);
  for (const Stage& stage : kStages) {
    ++number;
    const int out = scaled_channels(stage.out, sizes.width);
    const int blocks = (stage.blocks * sizes.layers + 99) / 100;
    for (int i = 0; i < blocks; ++i) {
      side = mobile_block(all, fmt::format("features.{}.{}", number, i), in, out, stage.expand,
                          stage.kernel, i == 0 ? stage.stride : 1, side);
      in = out;
    }
  }
  all.convolution("features.8.0", "features.8.1", 4 * in, in, side, 1, 1);
  all.linear("classifier.1", kClasses, 4 * in);
  return all.take("images");
}

namespace {

/// Blocks of Stable Diffusion's UNet. `time` is the width of a step's embedding, `text` that of a
/// token's.
struct UnetBlocks {
  ConvolutionBuilder& all;
  int time = 0, text = 0;

  void residual(const std::string& name, int out, int in, int side) const {
    const double pixels = static_cast<double>(side) * side;
    all.norm(name + ".norm1", in, true, pixels);
    all.values(2 * pixels * in);
    all.biased_convolution(name + ".conv1", out, in, side, 3);
    all.linear(name + ".time_emb_proj", out, time);
    all.norm(name + ".norm2", out, true, pixels);
    all.values(2 * pixels * out);
    all.biased_convolution(name + ".conv2", out, out, side, 3);
    if (in != out) all.biased_convolution(name + ".conv_shortcut", out, in, side, 1);
    all.values(2 * pixels * out);  // the sum
  }

  void attends(const std::string& name, int width, int keys_width, double pixels,
               double keys) const {
    all.linear(name + ".to_q", width, width, false, pixels);
    all.linear(name + ".to_k", width, keys_width, false, keys);
    all.linear(name + ".to_v", width, keys_width, false, keys);
    // Queries are pixels; keys are pixels or words.
    all.attention_among(width, std::sqrt(pixels * keys));
    all.linear(name + ".to_out.0", width, width, true, pixels);
    all.values(2 * pixels * width);
  }

  void attention(const std::string& name, int width, int side) const {
    constexpr double kWords = 77;
    const double pixels = static_cast<double>(side) * side;
    const std::string block = name + ".transformer_blocks.0";
    all.norm(name + ".norm", width, true, pixels);
    all.biased_convolution(name + ".proj_in", width, width, side, 1);
    all.norm(block + ".norm1", width, true, pixels);
    attends(block + ".attn1", width, width, pixels, pixels);
    all.norm(block + ".norm2", width, true, pixels);
    attends(block + ".attn2", width, text, pixels, kWords);
    all.norm(block + ".norm3", width, true, pixels);
    all.linear(block + ".ff.net.0.proj", 8 * width, width, true, pixels);  // values and gates
    all.values(12 * pixels * width);
    all.linear(block + ".ff.net.2", width, 4 * width, true, pixels);
    all.biased_convolution(name + ".proj_out", width, width, side, 1);
    all.values(4 * pixels * width);
  }
};

}  // namespace

Model diffusion_unet(const Sizes& sizes) {
  constexpr int kLatents = 4, kLevels = 4, kBlocks = 2;
  ConvolutionBuilder all;
  const int first = sizes.width, time = 4 * first;
  const std::array<int, kLevels> widths = {first, 2 * first, 4 * first, 4 * first};
  const UnetBlocks blocks = {.all = all, .time = time, .text = sizes.words};
  int side = all.biased_convolution("conv_in", first, kLatents, sizes.image, 3);
  all.linear("time_embedding.linear_1", time, first);
  all.linear("time_embedding.linear_2", time, time);
  std::vector<int> skipped = {first};  // widths of the outputs that the up blocks take over
  int in = first;
  for (int level = 0; level < kLevels; ++level) {
    const std::string name = fmt::format("down_blocks.{}", level);
    const int out = widths[static_cast<std::size_t>(level)];
    const bool last = level == kLevels - 1;
    for (int i = 0; i < kBlocks; ++i) {
      blocks.residual(fmt::format("{}.resnets.{}", name, i), out, std::exchange(in, out), side);
      if (!last) blocks.attention(fmt::format("{}.attentions.{}", name, i), out, side);
      skipped.push_back(out);
    }
    if (last) break;
    side = all.biased_convolution(name + ".downsamplers.0.conv", out, out, side, 3, 2);
    skipped.push_back(out);
  }
  blocks.residual("mid_block.resnets.0", in, in, side);
  blocks.attention("mid_block.attentions.0", in, side);
  blocks.residual("mid_block.resnets.1", in, in, side);
  for (int level = 0; level < kLevels; ++level) {
    const std::string name = fmt::format("up_blocks.{}", level);
    const int out = widths[static_cast<std::size_t>(kLevels - 1 - level)];
    for (int i = 0; i <= kBlocks; ++i) {
      blocks.residual(fmt::format("{}.resnets.{}", name, i), out, in + skipped.back(), side);
      skipped.pop_back();
      in = out;
      if (level > 0) blocks.attention(fmt::format("{}.attentions.{}", name, i), out, side);
    }
    if (level == kLevels - 1) break;
    side *= 2;
    all.biased_convolution(name + ".upsamplers.0.conv", out, out, side, 3);
  }
  all.norm("conv_norm_out", first, true, static_cast<double>(side) * side);
  all.biased_convolution("conv_out", kLatents, first, side, 3);
  return all.take("images");
}

}  // namespace hipress::models
