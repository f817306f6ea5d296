#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "transport/store.hpp"

namespace hipress::transport {

/// One answer of a Redis.
struct RedisReply {
  enum class Kind : std::uint8_t { kStatus, kError, kInteger, kText, kNothing };
  Kind kind = Kind::kNothing;
  std::string text;  ///< of a status, an error or a text
  std::int64_t integer = 0;
};

/// Parses the bytes that come from a Redis into replies (RESP2). The sender may be no Redis: a
/// reply that is longer than any reply to our commands is refused as soon as its length is
/// announced, and so is a list, because none of our commands is answered by one.
class RedisReplies {
 public:
  static constexpr std::size_t kLongestText = Store::kMaxBytes;
  static constexpr std::size_t kLongestLine = std::size_t{1} << 16;

  void feed(std::string_view bytes) { bytes_ += bytes; }
  /// The next reply if all of it is here. std::runtime_error if the bytes are no reply; then, and
  /// ever after.
  std::optional<RedisReply> next();
  /// Nothing is left of what was fed.
  bool empty() const { return bytes_.empty(); }

 private:
  /// Where the first line ends, without its end; nullopt if that is not here yet.
  std::optional<std::size_t> end_of_line();
  std::optional<RedisReply> take_text(std::size_t line_end);
  void drop(std::size_t count);

  std::string bytes_;
  std::size_t searched_ = 0;  ///< so many of them are known to hold no end of the line
};

}  // namespace hipress::transport
