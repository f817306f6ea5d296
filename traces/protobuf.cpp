#include "traces/protobuf.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "io/error.hpp"

namespace hipress::traces {
namespace {

constexpr int kMostVarintBytes = 10;
enum WireType : std::uint32_t { kVarint = 0, kFixed64 = 1, kDelimited = 2, kFixed32 = 5 };

[[noreturn]] void reject(const char* what) { throw io::InputError(what); }

std::uint64_t take_varint(std::string_view& rest) {
  std::uint64_t value = 0;
  for (int i = 0; i < kMostVarintBytes; ++i) {
    if (rest.empty()) reject("a number is cut short");
    const auto byte = static_cast<unsigned char>(rest.front());
    rest.remove_prefix(1);
    value |= std::uint64_t{byte & 0x7fu} << (7 * i);
    if (byte < 0x80) return value;
  }
  reject("a number has more than 10 bytes");
}

std::uint64_t take_fixed(std::string_view& rest, std::size_t bytes) {
  if (rest.size() < bytes) reject("a number is cut short");
  std::uint64_t value = 0;
  for (std::size_t i = 0; i < bytes; ++i) {
    value |= std::uint64_t{static_cast<unsigned char>(rest[i])} << (8 * i);
  }
  rest.remove_prefix(bytes);
  return value;
}

void append_varint(std::string& to, std::uint64_t value) {
  while (value >= 0x80) {
    to.push_back(static_cast<char>(value | 0x80));
    value >>= 7;
  }
  to.push_back(static_cast<char>(value));
}

}  // namespace

std::optional<Field> FieldReader::next() {
  if (rest_.empty()) return std::nullopt;
  const std::uint64_t key = take_varint(rest_);
  Field field{.number = static_cast<std::uint32_t>(key >> 3), .bytes = {}};
  if (key >> 3 == 0 || key >> 3 > UINT32_MAX) reject("a field has no valid number");
  switch (key & 7) {
    case kVarint:
      field.integer = take_varint(rest_);
      break;
    case kFixed64:
      field.integer = take_fixed(rest_, 8);
      break;
    case kFixed32:
      field.integer = take_fixed(rest_, 4);
      break;
    case kDelimited: {
      const std::uint64_t length = take_varint(rest_);
      if (length > rest_.size()) reject("a field is cut short");
      field.bytes = rest_.substr(0, length);
      field.is_delimited = true;
      rest_.remove_prefix(length);
      break;
    }
    default:
      reject("a field has an unknown wire type");
  }
  return field;
}

void append_numbers(const Field& field, std::vector<std::uint64_t>& to) {
  if (!field.is_delimited) return to.push_back(field.integer);
  for (std::string_view rest = field.bytes; !rest.empty();) to.push_back(take_varint(rest));
}

void FieldWriter::integer(std::uint32_t number, std::uint64_t value) {
  append_varint(message_, std::uint64_t{number} << 3 | kVarint);
  append_varint(message_, value);
}

void FieldWriter::bytes(std::uint32_t number, std::string_view value) {
  append_varint(message_, std::uint64_t{number} << 3 | kDelimited);
  append_varint(message_, value.size());
  message_.append(value);
}

void FieldWriter::packed(std::uint32_t number, std::span<const std::uint64_t> values) {
  std::string list;
  for (const std::uint64_t value : values) append_varint(list, value);
  bytes(number, list);
}

std::string delimited(const std::string& message) {
  std::string text;
  append_varint(text, message.size());
  return text + message;
}

bool MessageStream::take(char& byte) {
  if (at_ == buffer_.size()) {
    constexpr std::size_t kStep = std::size_t{64} << 10;
    buffer_.resize(kStep);
    buffer_.resize(stream_.read(buffer_.data(), buffer_.size()));
    at_ = 0;
    if (buffer_.empty()) return false;
  }
  byte = buffer_[at_++];
  return true;
}

std::optional<std::uint64_t> MessageStream::length() {
  std::string bytes;
  char byte = 0;
  while (static_cast<int>(bytes.size()) < kMostVarintBytes && take(byte)) {
    bytes.push_back(byte);
    if (static_cast<unsigned char>(byte) < 0x80) break;
  }
  if (bytes.empty()) return std::nullopt;
  ++count_;
  std::string_view rest = bytes;
  try {
    return take_varint(rest);
  } catch (const io::InputError& error) {
    fail(error.what());
  }
}

std::optional<std::string_view> MessageStream::next() {
  const auto found = length();
  if (!found) return std::nullopt;
  if (*found > kLongest) {
    fail(fmt::format("says that it has {} bytes; messages have at most 64 MiB", *found));
  }
  const auto wanted = static_cast<std::size_t>(*found);
  if (buffer_.size() - at_ < wanted) fill(wanted);
  at_ += wanted;
  return std::string_view(buffer_).substr(at_ - wanted, wanted);
}

void MessageStream::fill(std::size_t wanted) {
  buffer_.erase(0, at_);
  at_ = 0;
  // Grow in steps: memory follows the actual data, not a length that may be false.
  constexpr std::size_t kStep = std::size_t{1} << 20;
  while (buffer_.size() < wanted) {
    const std::size_t before = buffer_.size();
    buffer_.resize(before + std::min(kStep, wanted - before));
    const std::size_t got = stream_.read(buffer_.data() + before, buffer_.size() - before);
    buffer_.resize(before + got);
    if (got == 0) {
      fail(fmt::format("is cut short: {} of its {} bytes are there; copy or export the file again",
                       before, wanted));
    }
  }
}

void MessageStream::fail(const std::string& message) const {
  throw io::InputError(stream_.name(), 0, fmt::format("message {}: {}", count_, message));
}

}  // namespace hipress::traces
