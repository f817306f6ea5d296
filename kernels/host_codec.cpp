#include "kernels/host_codec.hpp"

#include <fmt/format.h>

#include <array>
#include <cstring>
#include <stdexcept>
#include <vector>

#include "kernels/host_loops.hpp"
#include "kernels/quantizers.hpp"

namespace hipress::kernels {

namespace {

/// What every encode checks before anything is written.
void check(const EncodeItem& item) {
  if (item.elements < 0) {
    throw std::invalid_argument(fmt::format("encode: a slice of {} elements", item.elements));
  }
  if (item.elements > 0 && (item.values == nullptr || item.message == nullptr)) {
    throw std::invalid_argument("encode: a slice without values or without room for its message");
  }
}

/// What every decode checks: as many lengths as messages, and lengths that fit the slice.
void check(const DecodeItem& item, std::string_view name, std::int64_t expected_bytes) {
  if (item.elements < 0 || (item.elements > 0 && item.values == nullptr)) {
    throw std::invalid_argument(fmt::format("{}: decode into a slice of {} elements at {}", name,
                                            item.elements, fmt::ptr(item.values)));
  }
  if (item.messages.size() != item.message_bytes.size() ||
      (item.mode == DecodeMode::kOverwrite && item.messages.size() != 1)) {
    throw std::invalid_argument(
        fmt::format("{}: decode got {} messages and {} lengths; overwriting takes one of each",
                    name, item.messages.size(), item.message_bytes.size()));
  }
  for (std::size_t i = 0; i < item.messages.size(); ++i) {
    if (item.message_bytes[i] != expected_bytes) {
      throw std::runtime_error(
          fmt::format("{}: message {} of a slice of {} elements has {} bytes, expected {}", name, i,
                      item.elements, item.message_bytes[i], expected_bytes));
    }
  }
}

template <class Algorithm>
class HostQuantizer : public Codec {
 public:
  HostQuantizer(const Algorithm& algorithm, Isa isa) : algorithm_(algorithm), isa_(isa) {}

  const CodecTraits& traits() const override {
    static constexpr CodecTraits kTraits = quantizer_traits<Algorithm>();
    return kTraits;
  }

  std::int64_t encoded_bytes(std::int64_t elements) const override {
    return plane_message_bytes(elements, algorithm_.planes());
  }

  void encode(std::span<const EncodeItem> items, void* /*stream*/) const override {
    for (const EncodeItem& item : items) {
      check(item);
      if (item.message_bytes != nullptr) *item.message_bytes = encoded_bytes(item.elements);
      if (item.elements == 0) continue;
      with_loops(isa_, [&](auto loops) { loops.encode(algorithm_, item); });
    }
  }

  void decode(std::span<const DecodeItem> items, void* /*stream*/) const override {
    std::vector<PlaneSource> sources;
    std::vector<std::array<float, kMostLevels>> levels;
    for (const DecodeItem& item : items) {
      check(item, Algorithm::kName, encoded_bytes(item.elements));
      if (item.elements == 0) continue;
      sources.resize(item.messages.size());
      levels.resize(item.messages.size());
      for (std::size_t i = 0; i < sources.size(); ++i) {
        read_levels(item.messages[i], item.elements, levels[i].data());
        sources[i] = {reinterpret_cast<const std::uint32_t*>(item.messages[i] + sizeof(Header)),
                      levels[i].data()};
      }
      with_loops(isa_, [&](auto loops) {
        loops.decode(algorithm_.planes(), sources.data(), sources.size(), item);
      });
    }
  }

 private:
  /// Checks the header of a message and gives the value of every code.
  void read_levels(const std::byte* message, std::int64_t elements, float* levels) const {
    Header header;
    std::memcpy(&header, message, sizeof header);
    if (!fits(header, algorithm_, elements)) {
      throw std::runtime_error(
          fmt::format("{}: damaged message: its header (algorithm {}, version {}, {} bits, {} "
                      "elements, numbers {} and {}) does not fit a slice of {} elements",
                      Algorithm::kName, header.algorithm, header.version, header.planes,
                      header.elements, header.first, header.second, elements));
    }
    for (int code = 0; code < 1 << algorithm_.planes(); ++code) {
      levels[code] = level_under(header, algorithm_, code);
    }
  }

  const Algorithm algorithm_;
  const Isa isa_;
};

template <class Format>
class HostCast : public Codec {
 public:
  explicit HostCast(Isa isa) : isa_(isa) {}

  const CodecTraits& traits() const override {
    static constexpr CodecTraits kTraits = cast_traits();
    return kTraits;
  }

  std::int64_t encoded_bytes(std::int64_t elements) const override {
    return cast_message_bytes(elements);
  }

  void encode(std::span<const EncodeItem> items, void* /*stream*/) const override {
    for (const EncodeItem& item : items) {
      check(item);
      if (item.message_bytes != nullptr) *item.message_bytes = encoded_bytes(item.elements);
      with_loops(isa_, [&](auto loops) { loops.template encode_cast<Format>(item); });
    }
  }

  void decode(std::span<const DecodeItem> items, void* /*stream*/) const override {
    for (const DecodeItem& item : items) {
      check(item, Format::kName, encoded_bytes(item.elements));
      with_loops(isa_, [&](auto loops) {
        loops.template decode_cast<Format>(item.messages.data(), item.messages.size(), item);
      });
    }
  }

 private:
  const Isa isa_;
};

}  // namespace

template <class Algorithm>
std::unique_ptr<Codec> make_host_quantizer(const Algorithm& algorithm, Isa isa) {
  return std::make_unique<HostQuantizer<Algorithm>>(algorithm, isa);
}

template <class Format>
std::unique_ptr<Codec> make_host_cast(Isa isa) {
  return std::make_unique<HostCast<Format>>(isa);
}

#define HIPRESS_QUANTIZER(Algorithm) \
  template std::unique_ptr<Codec> make_host_quantizer(const Algorithm&, Isa);
HIPRESS_FOR_EACH_QUANTIZER(HIPRESS_QUANTIZER)
#undef HIPRESS_QUANTIZER

#define HIPRESS_CAST(Format) template std::unique_ptr<Codec> make_host_cast<Format>(Isa);
HIPRESS_FOR_EACH_CAST(HIPRESS_CAST)
#undef HIPRESS_CAST

void merge(std::span<const float* const> others, std::int64_t elements, float* values,
           float own_divisor, float sum_divisor) {
  with_loops(best_isa(), [&](auto loops) {
    loops.merge(others.data(), others.size(), values, elements, own_divisor, sum_divisor);
  });
}

}  // namespace hipress::kernels
