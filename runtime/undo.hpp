#pragma once

#include <cstdint>
#include <map>
#include <span>
#include <vector>

#include "kernels/codec/codec.hpp"

namespace hipress::runtime {

/// State of the encoders before the last iteration of every unit, so that an iteration whose
/// results were not applied can be undone. Otherwise, residuals would lack values that were sent in
/// vain. Costs as much memory as the states, and a copy of a slice's states before each encode.
class Undo {
 public:
  /// State of an encoder of some of a unit's elements.
  struct Encoder {
    std::uint32_t unit = 0;
    std::int64_t first = 0, elements = 0;  ///< range of the unit's elements
    const kernels::Codec* codec = nullptr;
    kernels::State state;
    int arrays = 0;           ///< number of state arrays, one stride apart
    std::int64_t length = 0;  ///< length of each array: `elements`, or set by a staged codec
  };

  /// Adds an encoder, whose state must stay in place, and returns its number. If that state has
  /// been added already, returns the existing number.
  std::uint32_t add(const Encoder& encoder);

  /// Copies the encoder's states, unless this was done in this iteration already.
  void keep(std::uint32_t encoder, std::uint64_t iteration);

  /// Discards all copies: the states were replaced, and iteration numbers may repeat.
  void forget();

  /// Restores the copies of these elements of a unit. No encode of the unit may be running.
  void put_back(std::uint32_t unit, std::int64_t first, std::int64_t elements);

 private:
  struct Entry {
    Encoder encoder;
    std::vector<float> copy;
    kernels::Deferred deferred;
    std::uint64_t iteration = 0;
    bool kept = false;
  };
  void put_back_whole(Entry& entry);
  void put_back_part(Entry& entry, std::int64_t first, std::int64_t elements);

  std::vector<Entry> entries_;
  std::map<const float*, std::uint32_t> known_;                  ///< entries, by their state
  std::map<std::uint32_t, std::vector<std::uint32_t>> by_unit_;  ///< entries
};

}  // namespace hipress::runtime
