#include "transport/redis_store.hpp"

#include <fmt/format.h>
#include <hiredis/hiredis.h>
#include <sys/time.h>

#include <algorithm>
#include <thread>

namespace hipress::transport {
namespace {

/// An answer to what was asked just before the deadline may take so long.
constexpr std::chrono::seconds kGrace{1};

/// Between two questions whether a key is there. Shorter: ranks meet sooner; longer: fewer
/// questions of every rank that waits.
constexpr std::chrono::milliseconds kPause{10};

timeval to_timeval(std::chrono::microseconds time) {
  constexpr std::int64_t kPerSecond = 1'000'000;
  return {.tv_sec = static_cast<decltype(timeval::tv_sec)>(time.count() / kPerSecond),
          .tv_usec = static_cast<decltype(timeval::tv_usec)>(time.count() % kPerSecond)};
}

}  // namespace

void RedisStore::Free::operator()(redisContext* connection) const { redisFree(connection); }
void RedisStore::Free::operator()(redisReply* reply) const { freeReplyObject(reply); }

RedisStore::RedisStore(const std::string& host, int port, Clock::time_point deadline)
    : deadline_(deadline),
      connection_(redisConnectWithTimeout(host.c_str(), port, to_timeval(patience()))) {
  if (!connection_) throw StoreLost("there is no memory for a connection");
  if (connection_->err != 0) throw lost();
}

RedisStore::~RedisStore() = default;

void RedisStore::set(const std::string& key, const std::vector<char>& data) {
  const Reply reply = command({"SETNX", key, {data.data(), data.size()}});
  if (reply->type != REDIS_REPLY_INTEGER || reply->integer != 1) {
    throw std::runtime_error(fmt::format("there is a key '{}' already", key));
  }
}

std::vector<char> RedisStore::get(const std::string& key) {
  const Reply reply = command({"GET", key});
  if (reply->type != REDIS_REPLY_STRING) {
    throw std::runtime_error(fmt::format("there is no key '{}'", key));
  }
  return {reply->str, reply->str + reply->len};
}

void RedisStore::wait(const std::vector<std::string>& keys,
                      const std::chrono::milliseconds& timeout) {
  const auto end = Clock::now() + timeout;
  for (const std::string& key : keys) {
    while (command({"EXISTS", key})->integer == 0) {
      if (Clock::now() > end) throw std::runtime_error(fmt::format("no key '{}' came", key));
      std::this_thread::sleep_for(kPause);
    }
  }
}

RedisStore::Reply RedisStore::command(std::initializer_list<std::string_view> words) {
  std::vector<const char*> texts;
  std::vector<std::size_t> lengths;
  for (const std::string_view word : words) {
    texts.push_back(word.data());
    lengths.push_back(word.size());
  }
  if (redisSetTimeout(connection_.get(), to_timeval(patience())) != REDIS_OK) throw lost();
  Reply reply(static_cast<redisReply*>(redisCommandArgv(
      connection_.get(), static_cast<int>(texts.size()), texts.data(), lengths.data())));
  if (!reply) throw lost();
  if (reply->type == REDIS_REPLY_ERROR) {
    throw StoreLost(fmt::format("it refuses: {}", std::string_view(reply->str, reply->len)));
  }
  return reply;
}

std::chrono::microseconds RedisStore::patience() const {
  const auto left = std::chrono::duration_cast<std::chrono::microseconds>(deadline_ - Clock::now());
  return std::max<std::chrono::microseconds>(left, kGrace);
}

StoreLost RedisStore::lost() const {
  return StoreLost(Clock::now() >= deadline_ ? "it does not answer" : connection_->errstr);
}

}  // namespace hipress::transport
