#pragma once

#include <algorithm>
#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "models/model.hpp"
#include "models/shape.hpp"

namespace hipress::models {

/// Collects the tensors of an architecture in the order of forward. `uses` is the number of uses of
/// each element per unit (a token, an image).
class ArchitectureBuilder {
 public:
  using Shape = std::vector<std::int64_t>;

  void tensor(std::string name, Shape shape, Work work = {}) {
    Gradient gradient;
    gradient.name = std::move(name);
    gradient.elements = elements_of(shape);
    gradient.shape = std::move(shape);
    gradient.work = work;
    tensors_.push_back(std::move(gradient));
  }

  /// Adds a matrix [out, in] and, with `bias`, a bias [out].
  void linear(const std::string& name, std::int64_t out, std::int64_t in, bool bias = true,
              double uses = 1, std::string_view weight = ".weight") {
    const double values = uses * static_cast<double>(in + out);
    tensor(name + std::string(weight), {out, in},
           {.flops = 2.0 * uses * static_cast<double>(in * out), .values = values});
    if (bias) tensor(name + ".bias", {out});
  }

  /// Adds attention between all positions to the last tensor's work; half of that if it is causal.
  void attention(std::int64_t width, bool causal) {
    tensors_.back().work.attention += (causal ? 2.0 : 4.0) * static_cast<double>(width);
  }

  /// Adds attention among a fixed number of positions, for units that are not tokens.
  void attention_among(std::int64_t width, double positions) {
    tensors_.back().work.flops += 4.0 * static_cast<double>(width) * positions * positions;
  }

  /// Adds `flops` FLOPs of products with the last tensor, and the values that they read and write.
  void products(double flops) {
    tensors_.back().work.flops += flops;
    tensors_.back().work.values += flops / static_cast<double>(tensors_.back().shape[1]);
  }

  /// Adds elementwise operations that read or write `count` values to the last tensor's work.
  void values(double count) { tensors_.back().work.values += count; }

  void norm(const std::string& name, std::int64_t width, bool bias = true, double uses = 1) {
    tensor(name + ".weight", {width}, {.values = 2 * uses * static_cast<double>(width)});
    if (bias) tensor(name + ".bias", {width});
  }

  /// Adds a table of embeddings [rows, width]. `tied`: the last matrix is this table, too.
  void embedding(const std::string& name, std::int64_t rows, std::int64_t width,
                 bool tied = false) {
    Work work{.values = 2.0 * static_cast<double>(width)};
    if (tied) {
      work.flops = 2.0 * static_cast<double>(rows * width);
      work.values += static_cast<double>(4 * rows);  // logits, and the loss
    }
    tensor(name, {rows, width}, work);
  }

  /// Adds a convolution and its norm, on square images of `side` pixels a side. Returns the side of
  /// the output.
  int convolution(const std::string& name, const std::string& norm_name, int out, int in, int side,
                  int kernel, int stride, int groups = 1) {
    const int behind = (side + stride - 1) / stride;
    const double pixels = static_cast<double>(behind) * behind;
    const Shape shape{out, in / groups, kernel, kernel};
    tensor(name + ".weight", shape,
           {.flops = 2 * pixels * static_cast<double>(elements_of(shape)),
            .values = static_cast<double>(in) * side * side + out * pixels});
    norm(norm_name, out, true, pixels);
    values(2 * pixels * out);  // the activation
    return behind;
  }

  /// Adds a convolution with a bias and without a norm. Returns the side of the output.
  int biased_convolution(const std::string& name, int out, int in, int side, int kernel,
                         int stride = 1) {
    const int behind = (side + stride - 1) / stride;
    const double pixels = static_cast<double>(behind) * behind;
    const Shape shape{out, in, kernel, kernel};
    tensor(name + ".weight", shape,
           {.flops = 2 * pixels * static_cast<double>(elements_of(shape)),
            .values = static_cast<double>(in) * side * side + out * pixels});
    tensor(name + ".bias", {out});
    return behind;
  }

  Model take(std::string unit, double positions = 0) {
    Model model;
    model.unit = std::move(unit);
    model.positions = positions;
    std::ranges::reverse(tensors_);
    model.gradients = std::move(tensors_);
    return model;
  }

 private:
  std::vector<Gradient> tensors_;
};

}  // namespace hipress::models
