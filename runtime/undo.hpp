#pragma once

#include <cstdint>
#include <map>
#include <span>
#include <vector>

#include "kernels/codec/codec.hpp"

namespace hipress::runtime {

/// What encoders kept before the last iteration of every unit. With it an iteration whose results
/// nobody applied can be taken back: residuals would otherwise lack what never arrived. Costs as
/// much memory as the states, and a copy of a slice's states before each encode.
class Undo {
 public:
  /// What an encode of some of a unit's elements reads and writes.
  struct Encoder {
    std::uint32_t unit = 0;
    std::int64_t first = 0, elements = 0;  ///< of the unit
    const kernels::Codec* codec = nullptr;
    kernels::State state;
    int arrays = 0;           ///< of state, each from a multiple of its stride on
    std::int64_t length = 0;  ///< of each array: `elements`, or as a staged codec has them
  };

  /// Adds an encoder, whose state must stay in place, and returns its number. One whose state is
  /// known has the number that it has.
  std::uint32_t add(const Encoder& encoder);

  /// Copies the encoder's states, unless that was done in this iteration.
  void keep(std::uint32_t encoder, std::uint64_t iteration);

  /// Forgets all that was kept: states have become others', and iterations may come again.
  void forget();

  /// Puts back what was kept of these elements of a unit. No encode of it may be running.
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
