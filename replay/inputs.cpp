#include "replay/inputs.hpp"

#include <algorithm>

#include "casync/topology.hpp"

namespace hipress::replay {
namespace {

/// Finaliser of MurmurHash3's 128-bit variant: every input bit affects every output bit.
std::uint64_t mix64(std::uint64_t x) {
  x = (x ^ (x >> 33)) * 0xff51afd7ed558ccdULL;
  x = (x ^ (x >> 33)) * 0xc4ceb9fe1a85ec53ULL;
  return x ^ (x >> 33);
}

/// Finaliser of MurmurHash3's 32-bit variant, which compilers vectorise.
[[gnu::always_inline]] inline std::uint32_t mix32(std::uint32_t x) {
  x = (x ^ (x >> 16)) * 0x85ebca6bU;
  x = (x ^ (x >> 13)) * 0xc2b2ae35U;
  return x ^ (x >> 16);
}

/// Key of block number `high`. A block has 2^32 elements, so 32 bits identify each of them.
std::uint64_t block_key(const InputKey& key, std::uint64_t high) {
  std::uint64_t mixed = mix64(key.seed + 0x9e3779b97f4a7c15ULL);
  mixed = mix64(mixed + key.iteration);
  mixed = mix64(mixed + (std::uint64_t{key.node} << 32 | key.gradient));
  return mix64(mixed + high);
}

/// Fills `values` with hashes of their indices, which begin at `first`. Inlined into functions for
/// different instruction sets; every step is exact, so all give the same values.
[[gnu::always_inline]] inline void fill_places(std::uint32_t first, std::uint32_t offset,
                                               std::uint32_t mask, std::span<float> values) {
  for (std::size_t i = 0; i < values.size(); ++i) {
    const std::uint32_t place = first + static_cast<std::uint32_t>(i) + offset;
    const std::uint32_t bits = mix32(place * 0x9e3779b1U ^ mask);
    values[i] = static_cast<float>(static_cast<std::int32_t>(bits) >> 8) * 0x1p-23f;
  }
}

#if defined(__x86_64__)
/// AVX2 variant: SSE2 has no vector product of 32-bit integers.
__attribute__((target("avx2"))) void fill_places_avx2(std::uint32_t first, std::uint32_t offset,
                                                      std::uint32_t mask, std::span<float> values) {
  fill_places(first, offset, mask, values);
}
#endif

void fill_block(std::uint64_t key, std::uint32_t first, std::span<float> values) {
  // Without `mask`, all gradients would hold one sequence, each from a place that `offset` gives.
  const auto offset = static_cast<std::uint32_t>(key);
  const auto mask = static_cast<std::uint32_t>(key >> 32);
#if defined(__x86_64__)
  static const bool has_avx2 = __builtin_cpu_supports("avx2") != 0;
  if (has_avx2) return fill_places_avx2(first, offset, mask, values);
#endif
  fill_places(first, offset, mask, values);
}

}  // namespace

void fill_inputs(const InputKey& key, std::int64_t first_element, std::span<float> values) {
  constexpr std::uint64_t kBlock = std::uint64_t{1} << 32;
  auto at = static_cast<std::uint64_t>(first_element);
  while (!values.empty()) {
    const std::uint64_t in_block = at % kBlock;
    const auto length = std::min<std::uint64_t>(values.size(), kBlock - in_block);
    fill_block(block_key(key, at / kBlock), static_cast<std::uint32_t>(in_block),
               values.first(length));
    values = values.subspan(length);
    at += length;
  }
}

void fill_unit(const Inputs& inputs, std::uint64_t iteration, std::uint32_t node,
               const casync::Unit& unit, const models::Model& model, std::int64_t first_element,
               std::span<float> values) {
  const bool parameters = unit.topology->operation == casync::Operation::kGather;
  const std::uint32_t first_key =
      parameters ? static_cast<std::uint32_t>(model.gradients.size()) : 0;
  const auto end = first_element + static_cast<std::int64_t>(values.size());
  std::int64_t reached = first_element;
  for (const casync::Member& member : casync::places(unit, model)) {
    const std::int64_t last = std::min(end, member.first + member.elements);
    if (last <= reached) continue;
    const std::int64_t first = reached - member.first;
    const std::span<float> part = values.subspan(static_cast<std::size_t>(reached - first_element),
                                                 static_cast<std::size_t>(last - reached));
    if (inputs.files && !parameters) {
      inputs.files->read(node, member.gradient, first, part);
    } else {
      fill_inputs({inputs.seed, iteration, node, first_key + member.gradient}, first, part);
    }
    reached = last;
  }
  std::ranges::fill(values.subspan(static_cast<std::size_t>(reached - first_element)), 0.0f);
}

}  // namespace hipress::replay
