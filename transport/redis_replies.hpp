#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "transport/store.hpp"

namespace hipress::transport {

/// A reply of a Redis.
struct RedisReply {
  enum class Kind : std::uint8_t { kStatus, kError, kInteger, kText, kNothing };
  Kind kind = Kind::kNothing;
  std::string text;  ///< text of a status, an error or a string
  std::int64_t integer = 0;
};

/// Parser of Redis replies (RESP2). The sender may not be a Redis: a reply longer than any reply to
/// our commands is refused as soon as its length is announced. So is a list, as none of our
/// commands returns one.
class RedisReplies {
 public:
  static constexpr std::size_t kLongestText = Store::kMaxBytes;
  static constexpr std::size_t kLongestLine = std::size_t{1} << 16;

  void feed(std::string_view bytes) { bytes_ += bytes; }
  /// Next reply if it is complete, else nullopt. Throws std::runtime_error if the bytes are not a
  /// reply, and then on every later call.
  std::optional<RedisReply> next();
  /// True if all fed bytes have been parsed.
  bool empty() const { return bytes_.empty(); }

 private:
  /// Length of the first line without its terminator; nullopt if the line is incomplete.
  std::optional<std::size_t> end_of_line();
  std::optional<RedisReply> take_text(std::size_t line_end);
  void drop(std::size_t count);

  std::string bytes_;
  std::size_t searched_ = 0;  ///< leading bytes known to contain no line end
};

}  // namespace hipress::transport
