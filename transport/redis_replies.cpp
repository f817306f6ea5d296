#include "transport/redis_replies.hpp"

#include <fmt/format.h>

#include <charconv>
#include <stdexcept>
#include <system_error>

#include "io/error.hpp"

namespace hipress::transport {
namespace {

constexpr std::string_view kEnd = "\r\n";

[[noreturn]] void refuse_reply(std::string_view what) {
  throw std::runtime_error(fmt::format("it does not answer as a Redis does: {}", what));
}

std::int64_t number_in(std::string_view line) {
  std::int64_t value = 0;
  const char* const end = line.data() + line.size();
  const auto [stop, error] = std::from_chars(line.data(), end, value);
  if (error != std::errc() || stop != end) {
    refuse_reply(fmt::format("{} is no number", io::quote(line)));
  }
  return value;
}

}  // namespace

std::optional<RedisReply> RedisReplies::next() {
  if (bytes_.empty()) return std::nullopt;
  const char type = bytes_[0];
  if (std::string_view("+-:$").find(type) == std::string_view::npos) {
    refuse_reply(
        fmt::format("a reply begins with {}", io::quote(std::string_view(bytes_).substr(0, 1))));
  }
  const std::optional<std::size_t> end = end_of_line();
  if (!end) return std::nullopt;
  if (type == '$') return take_text(*end);
  RedisReply reply;
  const std::string_view line = std::string_view(bytes_).substr(1, *end - 1);
  if (type == ':') {
    reply.kind = RedisReply::Kind::kInteger;
    reply.integer = number_in(line);
  } else {
    reply.kind = type == '+' ? RedisReply::Kind::kStatus : RedisReply::Kind::kError;
    reply.text = line;
  }
  drop(*end + kEnd.size());
  return reply;
}

std::optional<std::size_t> RedisReplies::end_of_line() {
  const std::size_t feed = bytes_.find('\n', searched_);
  searched_ = feed == std::string::npos ? bytes_.size() : feed;
  if (searched_ > kLongestLine)
    refuse_reply(fmt::format("a line is longer than {} bytes", kLongestLine));
  if (feed == std::string::npos) return std::nullopt;
  if (bytes_[feed - 1] != '\r') refuse_reply("a line does not end in \\r\\n");
  return feed - 1;
}

std::optional<RedisReply> RedisReplies::take_text(std::size_t line_end) {
  const std::int64_t announced = number_in(std::string_view(bytes_).substr(1, line_end - 1));
  if (announced < -1 || announced > static_cast<std::int64_t>(kLongestText)) {
    refuse_reply(
        fmt::format("it announces {} bytes; at most {} were left there", announced, kLongestText));
  }
  const std::size_t begin = line_end + kEnd.size();
  if (announced == -1) {
    drop(begin);
    return RedisReply{};
  }
  const auto length = static_cast<std::size_t>(announced);
  if (bytes_.size() < begin + length + kEnd.size()) return std::nullopt;
  if (std::string_view(bytes_).substr(begin + length, kEnd.size()) != kEnd) {
    refuse_reply("a text is longer than announced");
  }
  RedisReply reply{.kind = RedisReply::Kind::kText, .text = bytes_.substr(begin, length)};
  drop(begin + length + kEnd.size());
  return reply;
}

void RedisReplies::drop(std::size_t count) {
  bytes_.erase(0, count);
  searched_ = 0;
}

}  // namespace hipress::transport
