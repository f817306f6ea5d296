#include <arpa/inet.h>
#include <fmt/format.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include <array>
#include <atomic>
#include <catch2/catch.hpp>
#include <functional>
#include <thread>

#include "io/error.hpp"
#include "tests/transport/ranks.hpp"
#include "transport/redis_address.hpp"
#include "transport/redis_replies.hpp"
#include "transport/rendezvous.hpp"

namespace hipress::transport::test {
namespace {

using Catch::Matchers::Contains;

/// Server that answers one client as a script says, until the client closes the connection.
class FakeRedis {
 public:
  /// Answers the first commands with one text of `good` each, and the next with `bad`. If
  /// `endless`, repeats `bad` without further commands, at intervals of `pause`.
  struct Script {
    std::vector<std::string> good;
    std::string bad;
    bool endless = false;
    std::chrono::milliseconds pause{0};
  };

  explicit FakeRedis(Script script) : script_(std::move(script)) {
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    socklen_t length = sizeof address;
    auto* const any = reinterpret_cast<sockaddr*>(&address);
    if (::bind(listener_, any, length) != 0 || ::listen(listener_, 8) != 0 ||
        ::getsockname(listener_, any, &length) != 0) {
      throw std::runtime_error("no port to listen on");
    }
    port_ = ntohs(address.sin_port);
    thread_ = std::thread([this] { serve(); });
  }
  ~FakeRedis() {
    ::shutdown(listener_, SHUT_RDWR);
    thread_.join();
    ::close(listener_);
  }
  FakeRedis(const FakeRedis&) = delete;
  FakeRedis& operator=(const FakeRedis&) = delete;

  int port() const { return port_; }
  std::int64_t sent() const { return sent_; }
  /// All that the client has sent.
  const std::string& heard() const { return heard_; }

 private:
  void serve() {
    const int client = ::accept(listener_, nullptr, nullptr);
    if (client < 0) return;
    for (const std::string& answer : script_.good) {
      if (!hear(client) || !say(client, answer)) break;
    }
    if (hear(client) && say(client, script_.bad)) {
      while (script_.endless && say(client, script_.bad))
        std::this_thread::sleep_for(script_.pause);
    }
    while (hear(client)) {  // until the client closes the connection
    }
    ::close(client);
  }

  bool hear(int client) {
    std::array<char, 65536> block;
    const ssize_t got = ::recv(client, block.data(), block.size(), 0);
    if (got > 0) heard_.append(block.data(), static_cast<std::size_t>(got));
    return got > 0;
  }
  bool say(int client, std::string_view text) {
    const ssize_t sent = ::send(client, text.data(), text.size(), MSG_NOSIGNAL);
    if (sent > 0) sent_ += sent;
    return sent >= 0;
  }

  const Script script_;
  int listener_ = ::socket(AF_INET, SOCK_STREAM, 0);
  int port_ = 0;
  std::atomic<std::int64_t> sent_ = 0;
  std::string heard_;
  std::thread thread_;
};

/// Error message of rank 0 of 2 whose rendezvous is the fake; `user` precedes the URL's host.
std::string complaint(const FakeRedis& fake, const std::string& user = "",
                      double timeout_s = kGenerous) {
  JobOptions job = thread_job(2, timeout_s);
  job.rendezvous = fmt::format("redis://{}127.0.0.1:{}", user, fake.port());
  try {
    Rendezvous(job).meet();
  } catch (const std::exception& error) {
    return error.what();
  }
  return "";
}

std::string reason(const std::string& url) {
  try {
    parse_redis_address(url);
  } catch (const std::invalid_argument& error) {
    return error.what();
  }
  return "";
}

/// Parses the bytes, fed in pieces of `piece` bytes, and returns all replies.
std::vector<RedisReply> replies(std::string_view bytes, std::size_t piece) {
  RedisReplies reader;
  std::vector<RedisReply> all;
  for (; !bytes.empty(); bytes.remove_prefix(std::min(piece, bytes.size()))) {
    reader.feed(bytes.substr(0, piece));
    while (const auto reply = reader.next()) all.push_back(*reply);
  }
  return all;
}

}  // namespace

TEST_CASE("replies are the same in whatever pieces their bytes come") {
  const std::size_t piece = GENERATE(1u, 2u, 3u, 7u, 1000u);
  CAPTURE(piece);
  const std::string whole = "+OK\r\n:-12\r\n$-1\r\n$0\r\n\r\n$6\r\na\r\n$bc\r\n-ERR what\r\n+\r\n";
  const std::vector<RedisReply> all = replies(whole, piece);
  REQUIRE(all.size() == 7);
  using Kind = RedisReply::Kind;
  CHECK((all[0].kind == Kind::kStatus && all[0].text == "OK"));
  CHECK((all[1].kind == Kind::kInteger && all[1].integer == -12));
  CHECK(all[2].kind == Kind::kNothing);
  CHECK((all[3].kind == Kind::kText && all[3].text.empty()));
  CHECK((all[4].kind == Kind::kText && all[4].text == "a\r\n$bc"));
  CHECK((all[5].kind == Kind::kError && all[5].text == "ERR what"));
  CHECK((all[6].kind == Kind::kStatus && all[6].text.empty()));
}

TEST_CASE("what is no reply to a command of ours is refused as soon as it is announced") {
  struct Case {
    std::string bytes, reason;
  };
  const Case each =
      GENERATE(Case{"HTTP/1.1 400 Bad Request\r\n", "a reply begins with 'H'"},
               Case{"*1", "begins with '*'"}, Case{std::string("\0", 1), "begins with '\\x00'"},
               Case{"$4294967296\r", ""}, Case{"$4294967296\r\n", "announces 4294967296 bytes"},
               Case{"$1048577\r\n", "at most 1048576"}, Case{"$-2\r\n", "announces -2 bytes"},
               Case{"$99999999999999999999\r\n", "is no number"}, Case{"$\r\n", "is no number"},
               Case{":1x\r\n", "is no number"}, Case{"+OK\n", "does not end in"},
               Case{"$2\r\nabc\r\n", "longer than announced"},
               Case{"+" + std::string(65536, 'a'), "a line is longer than 65536 bytes"},
               Case{"+" + std::string(60000, 'a'), ""});
  CAPTURE(each.bytes.substr(0, 40));
  std::string said;
  try {
    if (!replies(each.bytes, 1000).empty()) said = "a reply";
  } catch (const std::runtime_error& error) {
    said = error.what();
  }
  if (each.reason.empty()) {
    CHECK(said.empty());
  } else {
    CHECK_THAT(said, Contains("does not answer as a Redis does") && Contains(each.reason));
  }
}

TEST_CASE("a Redis that sends without end is refused after a megabyte at most") {
  const std::vector<std::string> good =
      GENERATE(std::vector<std::string>{}, std::vector<std::string>{"+PONG\r\n", "+OK\r\n"});
  struct Case {
    std::string bytes, reason;
  };
  const std::string block(65536, 'a');
  const Case each = GENERATE_COPY(
      Case{"+" + block, "a line is longer than 65536 bytes"}, Case{"$4294967296\r\n", "4294967296"},
      Case{std::string(65536, '*'), "begins with '*'"}, Case{"$1\r\n" + block, "longer than"});
  CAPTURE(good.size(), each.bytes.substr(0, 10));
  FakeRedis fake({.good = good, .bad = each.bytes, .endless = true});
  CHECK_THAT(complaint(fake),
             Contains("rank 0 cannot meet others at 'redis://127.0.0.1:") && Contains(each.reason));
  // The fake can only send what the client reads and what the kernel's buffers hold.
  CHECK(fake.sent() < 100'000'000);
}

TEST_CASE("a Redis that sends a byte now and then is given up at the deadline", "[slow]") {
  const std::vector<std::string> good =
      GENERATE(std::vector<std::string>{}, std::vector<std::string>{"+PONG\r\n"});
  CAPTURE(good.size());
  FakeRedis fake(
      {.good = good, .bad = "+", .endless = true, .pause = std::chrono::milliseconds(20)});
  const auto begin = Clock::now();
  CHECK_THAT(complaint(fake, "", kShort), Contains("within 2 s: it does not answer"));
  CHECK(Clock::now() - begin < std::chrono::duration<double>(kShort + kMargin));
}

TEST_CASE("a Redis that closes the connection, or speaks unasked, is told in so many words") {
  FakeRedis talks({.good = {"+PONG\r\n+PONG\r\n"}, .bad = "+OK\r\n"});
  CHECK_THAT(complaint(talks), Contains("it answers a request that was not made"));
  FakeRedis refuses({.good = {"+PONG\r\n"}, .bad = "-OOM \x1b[31mno memory\r\n"});
  CHECK_THAT(complaint(refuses), Contains("it refuses: 'OOM \\x1b[31mno memory'"));
}

TEST_CASE("no message shows the password of a Redis, and the server gets it", "[slow]") {
  FakeRedis fake({.good = {}, .bad = "-WRONGPASS for hidden@word\r\n"});
  const std::string said = complaint(fake, "me:hidden%40word@");
  CHECK_THAT(said, Contains("cannot meet at 'redis://***@127.0.0.1:") &&
                       Contains("it refuses: 'WRONGPASS for ***'"));
  CHECK_THAT(said, !Contains("hidden"));
  CHECK(fake.heard() == "*3\r\n$4\r\nAUTH\r\n$2\r\nme\r\n$11\r\nhidden@word\r\n");

  FakeRedis asks({.good = {}, .bad = "-NOAUTH Authentication required.\r\n"});
  CHECK_THAT(complaint(asks), Contains("HIPRESS_REDIS_PASSWORD"));

  FakeRedis mute({.good = {"+OK\r\n", "+PONG\r\n"}, .bad = ""});
  CHECK_THAT(complaint(mute, ":hidden@", kShort),
             Contains("within 2 s: it does not answer") && !Contains("hidden"));
}

TEST_CASE("passwords are left out of whatever may be a Redis' URL") {
  CHECK(without_password("redis://host:1") == "redis://host:1");
  CHECK(without_password("redis://a:b@host:1/2") == "redis://***@host:1/2");
  CHECK(without_password("rediss://:b@c@host") == "rediss://***@host");
  CHECK(without_password("redis:/a:b@host") == "***@host");
  CHECK(without_password("a:b@host://x") == "***@host://x");
  CHECK(without_password("file:///a@b") == "file:///a@b");
  CHECK(without_password("local:a@b") == "local:a@b");
  JobOptions job = thread_job(2);
  job.rendezvous = "rediz://a:hidden@host";
  CHECK_THROWS_WITH(Rendezvous(job),
                    Contains("rediz://***@host") && Contains("the kind is unknown"));
}

TEST_CASE("a Redis' URL names host, port, user, password and database") {
  RedisAddress address = parse_redis_address("redis://host");
  CHECK((!address.tls && address.host == "host" && address.port == 6379));
  CHECK((address.user.empty() && address.password.empty() && address.database == 0));
  address = parse_redis_address("rediss://me:p%3A%2f@[::1]:7000/3");
  CHECK((address.tls && address.host == "::1" && address.port == 7000 && address.database == 3));
  CHECK((address.user == "me" && address.password == "p:/"));
  address = parse_redis_address("redis://:only@host:1/");
  CHECK((address.user.empty() && address.password == "only" && address.port == 1));
  CHECK(parse_redis_address("redis://me@host").user == "me");

  CHECK_THAT(reason("redis://"), Contains("the host is missing"));
  CHECK_THAT(reason("redis://a:b@"), Contains("the host is missing"));
  CHECK_THAT(reason("redis://host:0"), Contains("from 1 to 65535"));
  CHECK_THAT(reason("redis://host:65536"), Contains("from 1 to 65535"));
  CHECK_THAT(reason("redis://host:1x"), Contains("from 1 to 65535"));
  CHECK_THAT(reason("redis://::1:7000"), Contains("in brackets"));
  CHECK_THAT(reason("redis://[::1"), Contains("']' is missing"));
  CHECK_THAT(reason("redis://[::1]7000"), Contains("must be a ':'"));
  CHECK_THAT(reason("redis://host/name"), Contains("database's number"));
  for (const char* wrong : {"%", "%4", "%4g", "%-1", "%g4"}) {
    CHECK_THAT(reason(fmt::format("redis://:{}@host", wrong)), Contains("two hexadecimal digits"));
  }
}

}  // namespace hipress::transport::test
