#pragma once

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <functional>
#include <initializer_list>
#include <limits>
#include <map>
#include <memory>
#include <new>
#include <numeric>
#include <span>
#include <sstream>
#include <stdexcept>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <vector>

#ifdef __FAST_MATH__
#error "-ffast-math changes the numbers; compile without it, and with -ffp-contract=off"
#endif

// Hide our symbols outside the shared library: two such libraries in one process, perhaps for
// different instruction sets or versions, must not call each other's functions. The standard
// library's functions do come from outside, so all of its headers that the code below or a
// program's body needs are included above.
#pragma GCC visibility push(hidden)
#include "kernels/host/export.hpp"
#include "kernels/host/loops_body.hpp"

/// Common code of frameworks' operators, which hipress-compll writes. It is header-only, so that
/// one file makes a shared library for the ABI of any framework build. That file holds one compiled
/// algorithm and is compiled for one instruction set, ExportLanes.
namespace hipress::kernels {

/// Largest number of elements: more than any memory holds, and message lengths cannot overflow.
inline constexpr std::int64_t kMaxElements = std::int64_t{1} << 48;

/// Concatenates parts as text.
template <class... Parts>
std::string text_of(const Parts&... parts) {
  std::ostringstream text;
  (text << ... << parts);
  return text.str();
}

/// Formats a shape as frameworks do: "[2, 33]".
template <class Shape>
std::string shape_text(const Shape& shape) {
  std::string text = "[";
  for (const auto size : shape) text += (text.size() > 1 ? ", " : "") + std::to_string(size);
  return text + "]";
}

/// Key of an encode's draws, from the signed numbers that frameworks have. Throws
/// std::invalid_argument for a node or gradient out of range.
inline DrawKey draw_key(std::int64_t seed, std::int64_t step, std::int64_t node,
                        std::int64_t gradient) {
  constexpr std::int64_t kMax = 0xffffffff;
  if (node < 0 || node > kMax || gradient < 0 || gradient > kMax) {
    throw std::invalid_argument(text_of("node ", node, " and gradient_number ", gradient,
                                        " must lie between 0 and ", kMax));
  }
  DrawKey key;
  key.seed = static_cast<std::uint64_t>(seed);
  key.step = static_cast<std::uint64_t>(step);
  key.node = static_cast<std::uint32_t>(node);
  key.gradient = static_cast<std::uint32_t>(gradient);
  return key;
}

/// A compiled algorithm with its parameters bound. Throws std::invalid_argument for an invalid
/// request and std::runtime_error for a damaged message; both name the algorithm.
class Operator {
 public:
  using Named = std::pair<std::string_view, double>;

  /// `values` are all parameters, in the program's order.
  Operator(const CompiledAlgorithm& program, std::span<const double> values) : program_(program) {
    if (values.size() != static_cast<std::size_t>(program.parameter_count)) {
      refuse(values.size(), " parameters, expected ", program.parameter_count);
    }
    for (std::size_t i = 0; i < values.size(); ++i) check(program.parameters[i], values[i]);
    program.bind(values.data(), bound_);
  }
  Operator(const CompiledAlgorithm& program, std::initializer_list<double> values)
      : Operator(program, std::span<const double>(values.begin(), values.size())) {}

  /// Binds some parameters by name, the others to their defaults.
  static Operator of(const CompiledAlgorithm& program, std::span<const Named> given) {
    std::vector<double> values;
    std::vector<bool> known;
    for (int i = 0; i < program.parameter_count; ++i) {
      values.push_back(program.parameters[i].value);
      known.push_back(!std::isnan(values.back()));
    }
    for (const auto& [name, value] : given) {
      const std::size_t i = index(program, name);
      values[i] = value;
      known[i] = true;
    }
    for (std::size_t i = 0; i < known.size(); ++i) {
      if (!known[i]) {
        throw std::invalid_argument(text_of(program.name, ": ", program.parameters[i].name,
                                            " has no default and was not given"));
      }
    }
    return {program, std::span<const double>(values)};
  }

  const char* name() const { return program_.name; }
  /// State arrays per gradient; 0 for a stateless algorithm.
  int state_arrays() const { return program_.state_arrays; }

  /// Size of the message of `elements` values, in bytes; an upper bound if it varies with them.
  std::int64_t message_bytes(std::int64_t elements) const {
    if (elements < 0 || elements > kMaxElements) refuse("a gradient of ", elements, " elements");
    return elements == 0 ? 0 : program_.encoded_bytes(bound_, elements);
  }

  /// True if a tensor of this shape holds the state of a gradient of `elements` values; false for
  /// an empty tensor, which means no state. Throws for any other shape.
  template <class Shape>
  bool takes_state(const Shape& shape, std::int64_t elements) const {
    const std::int64_t wanted[] = {state_arrays(), elements};
    bool same = shape.size() == 2, empty = false;
    for (std::size_t i = 0; i < shape.size(); ++i) {
      const auto size = static_cast<std::int64_t>(shape[i]);
      same = same && size == wanted[i];
      empty = empty || size == 0;
    }
    if (empty) return false;
    if (state_arrays() == 0) {
      refuse("keeps no state, but got one of shape ", shape_text(shape), "; pass an empty tensor");
    }
    if (!same) {
      refuse("state of shape ", shape_text(shape), ", expected ", shape_text(wanted),
             " or an empty tensor");
    }
    return true;
  }

  /// Encodes `elements` values into message_bytes(elements) bytes and returns the message's length.
  /// `state` is state_arrays() × elements floats, updated, or null.
  std::int64_t encode(const float* values, std::int64_t elements, float* state, const DrawKey& key,
                      std::byte* message) const {
    std::int64_t used = message_bytes(elements);
    if (elements == 0) return 0;
    const Aligned room(message, static_cast<std::size_t>(used), Aligned::kOutput);
    EncodeItem item;
    item.values = values;
    item.elements = elements;
    item.state.data = state;
    item.state.stride = elements;
    item.message = room.data();
    item.key = key;
    item.message_bytes = &used;
    program_.encode(bound_, item);
    room.copy_to(message);
    return used;
  }

  /// Throws unless a message of `bytes` bytes can encode `elements` values. Call it before
  /// allocating memory for the values.
  void check_message(std::int64_t bytes, std::int64_t elements) const {
    const std::int64_t most = message_bytes(elements);
    const bool exact = program_.decode == nullptr || elements == 0;
    if (exact ? bytes == most : bytes > 0 && bytes <= most) return;
    refuse("a message of ", bytes, " bytes for ", elements, " elements, expected ",
           exact ? "" : "at most ", most);
  }

  /// Decodes a message: values = decoded message.
  void decode(const std::byte* message, std::int64_t bytes, std::int64_t elements,
              float* values) const {
    decode(message, bytes, elements, values, DecodeMode::kOverwrite);
  }

  /// Decodes a message and adds it: values += decoded message.
  void decode_add(const std::byte* message, std::int64_t bytes, std::int64_t elements,
                  float* values) const {
    decode(message, bytes, elements, values, DecodeMode::kAdd);
  }

 private:
  /// A message aligned to 16 bytes. If the tensor's memory is not, as in a view into a different
  /// tensor, the message is copied.
  class Aligned {
   public:
    enum Use { kInput, kOutput };

    Aligned(const std::byte* bytes, std::size_t size, Use use) : size_(size) {
      if (reinterpret_cast<std::uintptr_t>(bytes) % sizeof(Block) == 0) {
        data_ = const_cast<std::byte*>(bytes);
        return;
      }
      copy_.resize((size + sizeof(Block) - 1) / sizeof(Block));
      data_ = copy_.data()->bytes;
      if (use == kInput) std::memcpy(data_, bytes, size);
    }
    std::byte* data() const { return data_; }
    void copy_to(std::byte* bytes) const {
      if (bytes != data_) std::memcpy(bytes, data_, size_);
    }

   private:
    struct alignas(16) Block {
      std::byte bytes[16];
    };
    std::vector<Block> copy_;
    std::size_t size_;
    std::byte* data_;
  };

  template <class... Parts>
  [[noreturn]] void refuse(const Parts&... parts) const {
    throw std::invalid_argument(text_of(program_.name, ": ", parts...));
  }

  void check(const DeclaredParameter& parameter, double value) const {
    if (value >= parameter.least && value <= parameter.most &&
        (!parameter.whole || value == std::floor(value)) &&
        (parameter.multiple <= 1 || std::fmod(value, parameter.multiple) == 0)) {
      return;
    }
    refuse(parameter.name, "=", value, " is out of range; it takes ",
           parameter.whole ? "whole numbers" : "numbers", " from ", parameter.least, " to ",
           parameter.most,
           parameter.multiple > 1 ? text_of(", multiples of ", parameter.multiple) : std::string());
  }

  static std::size_t index(const CompiledAlgorithm& program, std::string_view name) {
    std::string known;
    for (int i = 0; i < program.parameter_count; ++i) {
      if (name == program.parameters[i].name) return static_cast<std::size_t>(i);
      known += (i > 0 ? ", " : "") + std::string(program.parameters[i].name);
    }
    throw std::invalid_argument(text_of(program.name, ": no parameter is called '", name,
                                        "'; there ", known.empty() ? "are none" : "is " + known));
  }

  void decode(const std::byte* message, std::int64_t bytes, std::int64_t elements, float* values,
              DecodeMode mode) const {
    check_message(bytes, elements);
    if (elements == 0) return;
    const Aligned aligned(message, static_cast<std::size_t>(bytes), Aligned::kInput);
    const std::byte* const start = aligned.data();
    DecodeItem item;
    item.messages = std::span(&start, 1);
    item.message_bytes = std::span(&bytes, 1);
    item.elements = elements;
    item.values = values;
    item.mode = mode;
    if (!(program_.decode != nullptr ? program_.decode(bound_, item) == 1 : decode_planes(item))) {
      throw std::runtime_error(text_of(program_.name, ": damaged message: it does not fit ",
                                       elements, " elements with these parameters"));
    }
  }

  /// Decodes a quantiser's message; returns false, and writes nothing, if it is damaged.
  bool decode_planes(const DecodeItem& item) const {
    const std::byte* const message = item.messages[0];
    std::array<float, kMaxLevels> levels = {};
    if (!program_.levels(bound_, message, item.elements, levels.data())) return false;
    const PlaneSource source = {
        reinterpret_cast<const std::uint32_t*>(message + program_.planes_offset), levels.data()};
    decode_slice<ExportLanes>(program_.planes(bound_), &source, 1, item);
    return true;
  }

  const CompiledAlgorithm& program_;
  BoundAlgorithm bound_ = {};
};

}  // namespace hipress::kernels
#pragma GCC visibility pop
