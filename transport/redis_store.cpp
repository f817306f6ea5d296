#include "transport/redis_store.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <stdexcept>

#include "io/environment.hpp"
#include "io/error.hpp"

namespace hipress::transport {
namespace {

/// Extra time for the reply to a command sent just before the deadline.
constexpr std::chrono::seconds kGrace{1};

/// Lifetime of a Keep::kForRendezvous key beyond the deadline, as clocks may differ.
constexpr std::chrono::seconds kStays{60};

std::string encode(std::initializer_list<std::string_view> words) {
  std::string text = fmt::format("*{}\r\n", words.size());
  for (const std::string_view word : words) text += fmt::format("${}\r\n{}\r\n", word.size(), word);
  return text;
}

}  // namespace

RedisStore::RedisStore(const RedisAddress& address, Clock::time_point deadline)
    : deadline_(deadline),
      password_(address.password.empty() ? io::redis_password() : address.password),
      connection_(address, io::redis_authorities(), patience()) {
  greet(address);
}

void RedisStore::greet(const RedisAddress& address) {
  const auto require = [&](const RedisReply& reply) {
    if (reply.kind != RedisReply::Kind::kError) return;
    const bool asks = reply.text.starts_with("NOAUTH") && password_.empty();
    throw std::runtime_error(fmt::format(
        "it refuses: {}{}", words_of(reply),
        asks ? "; give its password in HIPRESS_REDIS_PASSWORD, or as redis://:PASSWORD@host" : ""));
  };
  if (!password_.empty()) {
    require(address.user.empty() ? ask({"AUTH", password_})
                                 : ask({"AUTH", address.user, password_}));
  }
  require(ask({"PING"}));
  if (address.database != 0) require(ask({"SELECT", std::to_string(address.database)}));
}

bool RedisStore::add(const std::string& name, std::string_view content, Keep keep) {
  if (content.size() > kMaxBytes) {
    throw std::runtime_error(fmt::format("it would be longer than {} bytes", kMaxBytes));
  }
  const auto left = std::chrono::ceil<std::chrono::seconds>(deadline_ - Clock::now());
  const std::string seconds =
      std::to_string(std::max(left, std::chrono::seconds(0)).count() + kStays.count());
  const RedisReply reply = keep == Keep::kForGood
                               ? command({"SET", name, content, "NX"})
                               : command({"SET", name, content, "NX", "EX", seconds});
  return reply.kind == RedisReply::Kind::kStatus;
}

std::optional<std::string> RedisStore::find(const std::string& name) {
  RedisReply reply = command({"GET", name});
  if (reply.kind != RedisReply::Kind::kText) return std::nullopt;
  return std::move(reply.text);
}

RedisReply RedisStore::command(std::initializer_list<std::string_view> words) {
  RedisReply reply = ask(words);
  if (reply.kind == RedisReply::Kind::kError) {
    throw StoreLost(fmt::format("it refuses: {}", words_of(reply)));
  }
  return reply;
}

RedisReply RedisStore::ask(std::initializer_list<std::string_view> words) {
  const Clock::time_point until = patience();
  if (!replies_.empty()) throw StoreLost("it answers a request that was not made");
  connection_.send(encode(words), until);
  std::array<char, 16384> block;
  for (;;) {
    const std::size_t got = connection_.receive(block, until);
    replies_.feed({block.data(), got});
    try {
      if (std::optional<RedisReply> reply = replies_.next()) return std::move(*reply);
    } catch (const std::runtime_error& error) {
      throw StoreLost(error.what());
    }
  }
}

Clock::time_point RedisStore::patience() const {
  return std::max<Clock::time_point>(deadline_, Clock::now() + kGrace);
}

std::string RedisStore::words_of(const RedisReply& reply) const {
  std::string text = reply.text;
  for (std::size_t at = text.find(password_); !password_.empty() && at != std::string::npos;
       at = text.find(password_, at)) {
    text.replace(at, password_.size(), "***");
    at += 3;
  }
  return io::quote(text);
}

}  // namespace hipress::transport
