#include "kernels/host/codec.hpp"

#include <fmt/format.h>

#include <array>
#include <cstring>
#include <stdexcept>
#include <vector>

#include "kernels/codec/item_checks.hpp"
#include "kernels/codec/message.hpp"
#include "kernels/frames/algorithm_codec.hpp"
#include "kernels/frames/casts.hpp"
#include "kernels/host/loops.hpp"

namespace hipress::kernels {

namespace {

/// Throws std::runtime_error if a message's length is not that of an encode.
void require_lengths(const DecodeItem& item, std::string_view name, std::int64_t expected_bytes) {
  for (std::size_t i = 0; i < item.messages.size(); ++i) {
    if (item.message_bytes[i] != expected_bytes) {
      throw std::runtime_error(
          fmt::format("{}: message {} of a slice of {} elements has {} bytes, expected {}", name, i,
                      item.elements, item.message_bytes[i], expected_bytes));
    }
  }
}

class HostAlgorithm : public AlgorithmCodec {
 public:
  HostAlgorithm(const CompiledAlgorithm& program, const double* values, Isa isa)
      : AlgorithmCodec(program, values), isa_(isa) {}

  void encode(std::span<const EncodeItem> items, void* /*stream*/) const override {
    check_encodes(items);
    for (const EncodeItem& item : items) {
      if (item.elements > 0) {
        program_.encode(bound_, item);
      } else if (item.message_bytes != nullptr) {
        *item.message_bytes = 0;
      }
    }
  }

  void decode(std::span<const DecodeItem> items, void* /*stream*/) const override {
    check_decodes(items, program_.name);
    for (const DecodeItem& item : items) {
      require_lengths(item, program_.name, encoded_bytes(item.elements));
      if (item.elements == 0) continue;
      if (program_.decode != nullptr) {
        const std::size_t damaged = program_.decode(bound_, item);
        if (damaged < item.messages.size()) refuse(item, damaged);
      } else {
        decode_planes(item);
      }
    }
  }

  void settle(const State& state, std::int64_t elements, void* /*stream*/) const override {
    if (state.data == nullptr || state.deferred == nullptr || !state.deferred->owed) return;
    program_.settle(bound_, state, elements);
    state.deferred->owed = false;
  }

 private:
  [[noreturn]] void refuse(const DecodeItem& item, std::size_t damaged) const {
    throw std::runtime_error(
        fmt::format("{}: damaged message: message {} does not fit a slice of {} elements",
                    program_.name, damaged, item.elements));
  }

  void decode_planes(const DecodeItem& item) const {
    std::vector<std::array<float, kMaxLevels>> levels(item.messages.size());
    std::vector<PlaneSource> sources;
    for (std::size_t i = 0; i < levels.size(); ++i) {
      if (!program_.levels(bound_, item.messages[i], item.elements, levels[i].data())) {
        refuse(item, i);
      }
      sources.push_back(
          {reinterpret_cast<const std::uint32_t*>(item.messages[i] + program_.planes_offset),
           levels[i].data()});
    }
    with_loops(isa_, [&](auto loops) {
      loops.decode(program_.planes(bound_), sources.data(), sources.size(), item);
    });
  }

  const Isa isa_;
};

template <class Format>
class HostCast : public Codec {
 public:
  explicit HostCast(Isa isa) : isa_(isa) {}

  const CodecTraits& traits() const override {
    static constexpr CodecTraits kTraits = cast_traits<Format>();
    return kTraits;
  }

  std::int64_t encoded_bytes(std::int64_t elements) const override {
    return cast_message_bytes(elements);
  }

  void encode(std::span<const EncodeItem> items, void* /*stream*/) const override {
    check_encodes(items);
    for (const EncodeItem& item : items) {
      if (item.message_bytes != nullptr) *item.message_bytes = encoded_bytes(item.elements);
      with_loops(isa_, [&](auto loops) { loops.template encode_cast<Format>(item); });
    }
  }

  void decode(std::span<const DecodeItem> items, void* /*stream*/) const override {
    check_decodes(items, Format::kName);
    for (const DecodeItem& item : items) {
      require_lengths(item, Format::kName, encoded_bytes(item.elements));
      with_loops(isa_, [&](auto loops) {
        loops.template decode_cast<Format>(item.messages.data(), item.messages.size(), item);
      });
    }
  }

 private:
  const Isa isa_;
};

}  // namespace

std::unique_ptr<Codec> make_host_algorithm(const CompiledAlgorithm& program, const double* values,
                                           Isa isa) {
  return std::make_unique<HostAlgorithm>(program, values, isa);
}

template <class Format>
std::unique_ptr<Codec> make_host_cast(Isa isa) {
  return std::make_unique<HostCast<Format>>(isa);
}

#define HIPRESS_CAST(Format) template std::unique_ptr<Codec> make_host_cast<Format>(Isa);
HIPRESS_FOR_EACH_CAST(HIPRESS_CAST)
#undef HIPRESS_CAST

void Codec::settle(const State& /*state*/, std::int64_t /*elements*/, void* /*stream*/) const {}

void merge(std::span<const float* const> others, std::int64_t elements, float* values,
           float own_divisor, float sum_divisor) {
  with_loops(best_isa(), [&](auto loops) {
    loops.merge(others.data(), others.size(), values, elements, own_divisor, sum_divisor);
  });
}

void merge(std::span<const void* const> others, std::int64_t elements, void* values, ValueType type,
           float own_divisor, float sum_divisor) {
  if (type == ValueType::kFloat32) {
    std::vector<const float*> floats;
    for (const void* other : others) floats.push_back(static_cast<const float*>(other));
    return merge(floats, elements, static_cast<float*>(values), own_divisor, sum_divisor);
  }
  // Messages of casts are arrays of 16-bit numbers, so the cast decoder adds them up.
  std::vector<const std::byte*> messages;
  for (const void* other : others) messages.push_back(static_cast<const std::byte*>(other));
  DecodeItem item;
  item.elements = elements;
  item.values = values;
  item.type = type;
  item.mode = DecodeMode::kAdd;
  item.own_divisor = own_divisor;
  item.sum_divisor = sum_divisor;
  with_loops(best_isa(), [&](auto loops) {
    if (type == ValueType::kFloat16) {
      loops.template decode_cast<Fp16>(messages.data(), messages.size(), item);
    } else {
      loops.template decode_cast<Bf16>(messages.data(), messages.size(), item);
    }
  });
}

}  // namespace hipress::kernels
