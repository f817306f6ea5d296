#pragma once

#include <algorithm>
#include <cstring>
#include <stdexcept>
#include <string_view>
#include <utility>
#include <vector>

#include "kernels/codec/codec.hpp"

namespace hipress::kernels::testing {

using Numbers = std::vector<float>;
using Dimensions = std::vector<std::int64_t>;

/// True if all bits are equal, so that NaN equals NaN.
inline bool same_bits(const Numbers& a, const Numbers& b) {
  return a.size() == b.size() &&
         (a.empty() || std::memcmp(a.data(), b.data(), a.size() * sizeof(float)) == 0);
}

/// A node's arrays of one gradient.
struct Replica {
  Numbers values;
  std::vector<Numbers> factors, states;
  std::vector<float*> factor_pointers, state_pointers;

  Replica(const Codec& codec, const Dimensions& shape) {
    for (const Stage& stage : codec.stages(shape)) {
      factors.emplace_back(static_cast<std::size_t>(stage.bytes / 4));
    }
    for (const StateArray& state : codec.states(shape)) {
      states.emplace_back(static_cast<std::size_t>(state.elements));
    }
    for (Numbers& numbers : factors) factor_pointers.push_back(numbers.data());
    for (Numbers& numbers : states) state_pointers.push_back(numbers.data());
  }

  StagedSlice slice(const Dimensions& shape, const DrawKey& key) {
    return {.shape = shape,
            .values = values.data(),
            .factors = factor_pointers,
            .states = state_pointers,
            .key = key};
  }
};

/// A gradient that a staged codec compresses on all nodes. Means of factors are computed in double.
struct Cluster {
  const Codec& codec;
  Dimensions shape;
  std::vector<Replica> nodes;
  DrawKey key = {.seed = 7, .gradient = 3};

  Cluster(const Codec& made, Dimensions dimensions, int count)
      : codec(made), shape(std::move(dimensions)) {
    for (int i = 0; i < count; ++i) nodes.emplace_back(made, shape);
  }

  /// Synchronises the nodes' gradients, and returns the result, the same on all nodes.
  Numbers step(const std::vector<Numbers>& gradients) {
    std::vector<StagedSlice> slices;
    for (std::size_t i = 0; i < nodes.size(); ++i) {
      nodes[i].values = gradients[i];
      slices.push_back(nodes[i].slice(shape, key));
      slices.back().key.node = static_cast<std::uint32_t>(i);
    }
    for (int stage = 0; stage < codec.traits().stages; ++stage) {
      for (const StagedSlice& slice : slices) codec.encode_stage(stage, {&slice, 1});
      average(stage);
    }
    for (const StagedSlice& slice : slices) codec.decode_stages({&slice, 1});
    for (const Replica& node : nodes) {
      if (!same_bits(node.values, nodes[0].values))
        throw std::logic_error("nodes decode different values");
    }
    ++key.step;
    return nodes[0].values;
  }

  /// State array `name` of a node.
  Numbers& state(std::string_view name, std::size_t node = 0) {
    const std::vector<StateArray> arrays = codec.states(shape);
    const auto found = std::find_if(arrays.begin(), arrays.end(),
                                    [&](const StateArray& array) { return array.name == name; });
    if (found == arrays.end()) throw std::logic_error("no such state");
    return nodes[node].states[static_cast<std::size_t>(found - arrays.begin())];
  }

 private:
  void average(int stage) {
    const auto place = static_cast<std::size_t>(stage);
    const std::int64_t count = codec.stage_bytes(shape, stage, key.step) / 4;
    if (count > static_cast<std::int64_t>(nodes[0].factors[place].size())) {
      throw std::logic_error("a step's factor is longer than any should be");
    }
    for (std::size_t i = 0; i < static_cast<std::size_t>(count); ++i) {
      double sum = 0;
      for (const Replica& node : nodes) sum += static_cast<double>(node.factors[place][i]);
      const auto mean = static_cast<float>(sum / static_cast<double>(nodes.size()));
      for (Replica& node : nodes) node.factors[place][i] = mean;
    }
  }
};

}  // namespace hipress::kernels::testing
