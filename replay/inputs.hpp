#pragma once

#include <cstdint>
#include <span>
#include <string>

#include "casync/layout.hpp"
#include "replay/gradient_files.hpp"

namespace hipress::replay {

/// Which gradient of which node in which iteration.
struct InputKey {
  std::uint64_t seed = 0;
  std::uint64_t iteration = 0;
  std::uint32_t node = 0;
  std::uint32_t gradient = 0;
};

/// Fills `values` with the gradient's elements from `first_element` on: multiples of 2^-23, uniform
/// in [-1, 1). Every element is a function of the key and its index alone, so that a replay and its
/// reference make the same inputs anywhere, in any order, without storing them.
void fill_inputs(const InputKey& key, std::int64_t first_element, std::span<float> values);

/// Where the numbers of a replay come from.
struct Inputs {
  std::uint64_t seed = 1;                ///< of made-up gradients, and of all random draws
  const GradientFiles* files = nullptr;  ///< null: gradients are made up
  std::string states = {};  ///< folder with what encoders kept (state_file()); empty: nothing
};

/// Fills `values` with a unit's elements from `first_element` on, as a node has them in an
/// iteration: the elements of its members one after the other, then zeros. Parameters, which are
/// gathered, are always made up, never read from files.
void fill_unit(const Inputs& inputs, std::uint64_t iteration, std::uint32_t node,
               const casync::Unit& unit, const models::Model& model, std::int64_t first_element,
               std::span<float> values);

}  // namespace hipress::replay
