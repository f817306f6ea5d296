#include "models/onnx.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <utility>
#include <vector>

#include "io/error.hpp"
#include "io/input_file.hpp"

namespace hipress::models {
namespace {

constexpr std::size_t kBuffer = 1 << 16;
constexpr std::uint64_t kLongestName = 4096, kMostDimensions = 16;
constexpr int kMostTensors = 1'000'000;

/// Types of the wire format. ONNX never used groups (3, 4).
enum WireType : std::uint64_t { kVarint = 0, kFixed64 = 1, kBytes = 2, kFixed32 = 5 };

/// Field numbers in onnx.proto.
constexpr std::uint64_t kModelGraph = 7;
constexpr std::uint64_t kGraphInitializer = 5, kGraphSparse = 15;
constexpr std::uint64_t kTensorDims = 1, kTensorType = 2, kTensorName = 8;

struct Field {
  std::uint64_t number = 0, type = 0;
  std::uint64_t value = 0;  ///< value of a varint
  std::uint64_t end = 0;    ///< end offset of the bytes
};

/// Sequential reader of a file's bytes.
class Wire {
 public:
  explicit Wire(const std::string& path) : file_(path, {.most_bytes = INT64_MAX}), path_(path) {}

  std::uint64_t offset() const { return offset_; }
  std::uint64_t size() const { return static_cast<std::uint64_t>(file_.size().value_or(0)); }

  [[noreturn]] void fail(const std::string& why) const {
    throw io::InputError(
        path_, 0, fmt::format("is no ONNX model: {} at byte {}; export it anew", why, offset_));
  }

  std::uint8_t byte(std::uint64_t end) {
    if (offset_ >= end) fail("a number ends with its message");
    if (at_ == filled_) fill();
    ++offset_;
    return static_cast<std::uint8_t>(buffer_[at_++]);
  }

  std::uint64_t varint(std::uint64_t end) {
    std::uint64_t value = 0;
    for (unsigned shift = 0; shift < 64; shift += 7) {
      const std::uint64_t one = byte(end);
      value |= (one & 0x7f) << shift;
      if (one < 0x80) return value;
    }
    fail("a number has more than ten bytes");
  }

  /// Reads the next field of a message that ends at `end`. After a field of bytes, the reader is at
  /// their beginning.
  Field field(std::uint64_t end) {
    const std::uint64_t key = varint(end);
    Field found = {.number = key >> 3, .type = key & 7};
    std::uint64_t length = 0;
    switch (found.type) {
      case kVarint:
        found.value = varint(end);
        break;
      case kFixed64:
        length = 8;
        break;
      case kFixed32:
        length = 4;
        break;
      case kBytes:
        length = varint(end);
        break;
      default:
        fail(fmt::format("wire type {}", found.type));
    }
    if (found.number == 0) fail("a field without number");
    if (length > end - offset_) fail("a field is longer than its message");
    found.end = offset_ + length;
    return found;
  }

  std::string text(std::uint64_t end) {
    if (end - offset_ > kLongestName) fail("a name of more than 4096 bytes");
    std::string read;
    while (offset_ < end) read += static_cast<char>(byte(end));
    return read;
  }

  void skip_to(std::uint64_t end) {
    while (offset_ < end) {
      if (at_ == filled_) fill();
      const auto step = std::min<std::uint64_t>(filled_ - at_, end - offset_);
      at_ += static_cast<std::size_t>(step);
      offset_ += step;
    }
  }

 private:
  void fill() {
    at_ = 0;
    filled_ = file_.read(buffer_.data(), buffer_.size());
    if (filled_ == 0) fail("the file ends");
  }

  io::InputFile file_;
  std::string path_;
  std::array<char, kBuffer> buffer_ = {};
  std::size_t at_ = 0, filled_ = 0;
  std::uint64_t offset_ = 0;
};

struct Initializer {
  std::string name;
  TensorList::Shape shape;
  std::uint64_t type = 0;

  /// True for trainable types of TensorProto.DataType: FLOAT, FLOAT16, DOUBLE and BFLOAT16.
  bool is_parameter() const { return type == 1 || type == 10 || type == 11 || type == 16; }
};

Initializer read_initializer(Wire& wire, std::uint64_t end) {
  Initializer made;
  const auto add = [&](std::uint64_t size) {
    if (made.shape.size() == kMostDimensions) wire.fail("more than 16 dimensions");
    made.shape.push_back(static_cast<std::int64_t>(size));
  };
  while (wire.offset() < end) {
    const Field field = wire.field(end);
    if (field.number == kTensorDims && field.type == kVarint) add(field.value);
    if (field.number == kTensorDims && field.type == kBytes) {
      while (wire.offset() < field.end) add(wire.varint(field.end));
    }
    if (field.number == kTensorType && field.type == kVarint) made.type = field.value;
    if (field.number == kTensorName && field.type == kBytes) made.name = wire.text(field.end);
    wire.skip_to(field.end);
  }
  return made;
}

void read_graph(Wire& wire, std::uint64_t end, TensorList& tensors, OnnxRest& rest) {
  int count = 0;
  while (wire.offset() < end) {
    const Field field = wire.field(end);
    if (field.type == kBytes && field.number == kGraphSparse) {
      wire.fail("a sparse initializer, whose gradient would be dense,");
    }
    if (field.type == kBytes && field.number == kGraphInitializer) {
      if (++count > kMostTensors) wire.fail("more than 10^6 initializers");
      Initializer one = read_initializer(wire, field.end);
      if (one.is_parameter()) {
        tensors.add(one.name, std::move(one.shape), 0);
      } else {
        ++rest.constants;
      }
    }
    wire.skip_to(field.end);
  }
}

}  // namespace

OnnxRest add_onnx(const std::string& path, TensorList& tensors) {
  Wire wire(path);
  OnnxRest rest;
  const std::uint64_t end = wire.size();
  bool has_graph = false;
  while (wire.offset() < end) {
    const Field field = wire.field(end);
    if (field.number == kModelGraph && field.type == kBytes) {
      if (std::exchange(has_graph, true)) wire.fail("a second graph");
      read_graph(wire, field.end, tensors, rest);
    }
    wire.skip_to(field.end);
  }
  if (!has_graph) wire.fail("no graph");
  return rest;
}

}  // namespace hipress::models
