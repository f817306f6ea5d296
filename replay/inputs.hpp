#pragma once

#include <cstdint>
#include <span>

#include "casync/layout.hpp"

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

/// Fills `values` with a unit's elements from `first_element` on: those of its members one after
/// the other, then zeros. `key.gradient` does not matter.
void fill_unit(InputKey key, const casync::Unit& unit, const models::Model& model,
               std::int64_t first_element, std::span<float> values);

}  // namespace hipress::replay
