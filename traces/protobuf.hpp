#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "traces/byte_stream.hpp"

/// The parts of protocol buffers' wire format that Chakra uses: varints, fixed-size numbers and
/// length-delimited fields (protobuf.dev/programming-guides/encoding).
namespace hipress::traces {

struct Field {
  std::uint32_t number = 0;
  std::uint64_t integer = 0;  ///< value of a varint or fixed-size field
  std::string_view bytes;     ///< contents of a length-delimited field
  bool is_delimited = false;
};

/// Reads the fields of a message in order.
class FieldReader {
 public:
  /// `message` must outlive it.
  explicit FieldReader(std::string_view message) : rest_(message) {}
  /// Returns the next field; empty at the end. Throws io::InputError for a malformed message: a
  /// truncated field, a varint of more than 10 bytes, field number 0, or a group.
  std::optional<Field> next();

 private:
  std::string_view rest_;
};

/// Appends the numbers of a repeated field, which may be packed (delimited) or single.
void append_numbers(const Field& field, std::vector<std::uint64_t>& to);

class FieldWriter {
 public:
  void integer(std::uint32_t number, std::uint64_t value);
  void bytes(std::uint32_t number, std::string_view value);
  void packed(std::uint32_t number, std::span<const std::uint64_t> values);
  const std::string& message() const { return message_; }

 private:
  std::string message_;
};

/// Returns the message with its length before it, as files of several messages need it.
std::string delimited(const std::string& message);

/// Reads consecutive messages, each preceded by its length.
class MessageStream {
 public:
  static constexpr std::uint64_t kLongest = std::uint64_t{64} << 20;

  /// `stream` must outlive it.
  explicit MessageStream(ByteStream& stream) : stream_(stream) {}
  /// Returns the next message, valid until the next call; empty at the end. Throws io::InputError,
  /// with the file and the number of the message, if it is truncated or longer than kLongest.
  std::optional<std::string_view> next();
  /// Number of messages read, for error messages.
  std::int64_t count() const { return count_; }
  /// Throws io::InputError about the last message read.
  [[noreturn]] void fail(const std::string& message) const;

 private:
  std::optional<std::uint64_t> length();
  bool take(char& byte);
  /// Reads until the buffer has `wanted` unread bytes. They begin at at_.
  void fill(std::size_t wanted);

  ByteStream& stream_;
  std::string buffer_;  // unread bytes begin at at_
  std::size_t at_ = 0;
  std::int64_t count_ = 0;
};

}  // namespace hipress::traces
