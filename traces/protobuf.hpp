#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "traces/byte_stream.hpp"

/// The wire format of protocol buffers (protobuf.dev/programming-guides/encoding), as much of it as
/// Chakra's messages need: varints, fixed numbers and length-delimited fields.
namespace hipress::traces {

/// One field of a message.
struct Field {
  std::uint32_t number = 0;
  std::uint64_t integer = 0;  ///< of a varint or a fixed number
  std::string_view bytes;     ///< of a length-delimited field
  bool is_delimited = false;
};

/// The fields of one message, in the order in which they were written.
class FieldReader {
 public:
  /// `message` must outlive it.
  explicit FieldReader(std::string_view message) : rest_(message) {}
  /// The next field; none at the end. io::InputError for what is no message: a field cut short, a
  /// varint of more than 10 bytes, field number 0, a group.
  std::optional<Field> next();

 private:
  std::string_view rest_;
};

/// The numbers of a repeated field: packed (delimited), or one of them.
void append_numbers(const Field& field, std::vector<std::uint64_t>& to);

/// Appends fields to a message.
class FieldWriter {
 public:
  void integer(std::uint32_t number, std::uint64_t value);
  void bytes(std::uint32_t number, std::string_view value);
  void packed(std::uint32_t number, std::span<const std::uint64_t> values);
  const std::string& message() const { return message_; }

 private:
  std::string message_;
};

/// The message with its length before it, as it stands in a file of several.
std::string delimited(const std::string& message);

/// Messages that follow one another, each with its length before it.
class MessageStream {
 public:
  static constexpr std::uint64_t kLongest = std::uint64_t{64} << 20;

  /// `stream` must outlive it.
  explicit MessageStream(ByteStream& stream) : stream_(stream) {}
  /// The next message, valid until the next call; none at the end. io::InputError, naming the file
  /// and the message, for one that is cut short or longer than kLongest.
  std::optional<std::string_view> next();
  /// Messages that were read; for complaints.
  std::int64_t count() const { return count_; }
  /// Throws io::InputError about the message that was read last.
  [[noreturn]] void fail(const std::string& message) const;

 private:
  std::optional<std::uint64_t> length();
  bool take(char& byte);
  /// Makes `wanted` bytes stand in the buffer from at_ on.
  void fill(std::size_t wanted);

  ByteStream& stream_;
  std::string buffer_;  // bytes that were read and not handed out, from at_ on
  std::size_t at_ = 0;
  std::int64_t count_ = 0;
};

}  // namespace hipress::traces
