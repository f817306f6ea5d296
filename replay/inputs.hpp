#pragma once

#include <cstdint>
#include <span>
#include <string>

#include "casync/layout.hpp"
#include "replay/gradient_files.hpp"

namespace hipress::replay {

/// Identity of a generated gradient.
struct InputKey {
  std::uint64_t seed = 0;
  std::uint64_t iteration = 0;
  std::uint32_t node = 0;
  std::uint32_t gradient = 0;
};

/// Fills `values` with the gradient's elements, starting at `first_element`: multiples of 2^-23,
/// uniform in [-1, 1). Every element depends on the key and its index alone, so a replay and its
/// reference generate the same inputs in any order, without storing them.
void fill_inputs(const InputKey& key, std::int64_t first_element, std::span<float> values);

/// Sources of a replay's input values.
struct Inputs {
  std::uint64_t seed = 1;                ///< seed of generated gradients and of all random draws
  const GradientFiles* files = nullptr;  ///< null: gradients are generated
  std::string states = {};  ///< folder with initial encoder states (state_file()); empty: zeros
};

/// Fills `values` with a unit's elements, starting at `first_element`, as they are on a node in an
/// iteration: the elements of its members one after the other, then zeros. Parameters, which are
/// gathered, are always generated, never read from files.
void fill_unit(const Inputs& inputs, std::uint64_t iteration, std::uint32_t node,
               const casync::Unit& unit, const models::Model& model, std::int64_t first_element,
               std::span<float> values);

}  // namespace hipress::replay
