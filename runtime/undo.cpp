#include "runtime/undo.hpp"

#include <algorithm>

namespace hipress::runtime {

std::uint32_t Undo::add(const Encoder& encoder) {
  const auto next = static_cast<std::uint32_t>(entries_.size());
  const auto [known, is_new] = known_.try_emplace(encoder.state.data, next);
  if (!is_new) return known->second;
  entries_.push_back({.encoder = encoder, .copy = {}, .deferred = {}});
  by_unit_[encoder.unit].push_back(next);
  return next;
}

void Undo::keep(std::uint32_t encoder, std::uint64_t iteration) {
  Entry& entry = entries_[encoder];
  if (entry.kept && entry.iteration == iteration) return;
  const auto& [unit, first, elements, codec, state, arrays, length] = entry.encoder;
  entry.copy.resize(static_cast<std::size_t>(arrays * length));
  for (int array = 0; array < arrays; ++array) {
    std::copy_n(state.data + array * state.stride, length, entry.copy.data() + array * length);
  }
  if (state.deferred != nullptr) entry.deferred = *state.deferred;
  entry.iteration = iteration;
  entry.kept = true;
}

void Undo::forget() {
  for (Entry& entry : entries_) entry.kept = false;
}

void Undo::put_back(std::uint32_t unit, std::int64_t first, std::int64_t elements) {
  const auto of_unit = by_unit_.find(unit);
  if (of_unit == by_unit_.end()) return;
  for (const std::uint32_t number : of_unit->second) {
    Entry& entry = entries_[number];
    const Encoder& encoder = entry.encoder;
    if (!entry.kept) continue;
    const std::int64_t begin = std::max(first, encoder.first);
    const std::int64_t end = std::min(first + elements, encoder.first + encoder.elements);
    if (begin >= end) continue;
    if (end - begin == encoder.elements) {
      put_back_whole(entry);
    } else {
      put_back_part(entry, begin - encoder.first, end - begin);
    }
  }
}

void Undo::put_back_whole(Entry& entry) {
  const auto& [unit, first, elements, codec, state, arrays, length] = entry.encoder;
  for (int array = 0; array < arrays; ++array) {
    std::copy_n(entry.copy.data() + array * length, length, state.data + array * state.stride);
  }
  if (state.deferred != nullptr) *state.deferred = entry.deferred;
  entry.kept = false;
}

void Undo::put_back_part(Entry& entry, std::int64_t first, std::int64_t elements) {
  const Encoder& encoder = entry.encoder;
  const kernels::State& state = encoder.state;
  if (state.deferred != nullptr) {
    encoder.codec->settle(state, encoder.length);
    encoder.codec->settle({entry.copy.data(), encoder.length, &entry.deferred}, encoder.length);
  }
  for (int array = 0; array < encoder.arrays; ++array) {
    std::copy_n(entry.copy.data() + array * encoder.length + first, elements,
                state.data + array * state.stride + first);
  }
}

}  // namespace hipress::runtime
