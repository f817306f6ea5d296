// Tests that a rank's connections end with it, although forked children (data loaders) live on.

#include <poll.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <catch2/catch.hpp>
#include <csignal>
#include <optional>
#include <utility>

#include "io/descriptors.hpp"
#include "transport/socket.hpp"
#include "transport/tcp_stream.hpp"

namespace hipress::transport {
namespace {

/// Maximum wait; long, as a child that kept a connection would keep it for its whole life.
constexpr int kPatience_ms = 20'000;

std::pair<Socket, Socket> connected_pair() {
  int ends[2] = {-1, -1};
  REQUIRE(::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends) == 0);
  return {Socket(ends[0]), Socket(ends[1])};
}

/// A forked process that calls `first` and then sleeps until it or this object is destroyed.
class Child {
 public:
  template <typename First>
  explicit Child(const First& first) : id_(::fork()) {
    if (id_ != 0) return;
    first();
    ::alarm(kPatience_ms / 1000);
    for (;;) ::pause();
  }
  ~Child() { kill(); }
  Child(const Child&) = delete;
  Child& operator=(const Child&) = delete;

  void kill() {
    if (id_ <= 0) return;
    ::kill(id_, SIGKILL);
    ::waitpid(std::exchange(id_, 0), nullptr, 0);
  }

 private:
  pid_t id_;
};

void nothing() {}

/// Waits for a value and reads it; nullopt if the connection ends instead.
std::optional<pid_t> read_from(const Socket& socket) {
  pollfd wanted{.fd = socket.number(), .events = POLLIN, .revents = 0};
  REQUIRE(::poll(&wanted, 1, kPatience_ms) == 1);
  pid_t value = 0;
  const ssize_t bytes = ::recv(socket.number(), &value, sizeof value, 0);
  REQUIRE((bytes == 0 || bytes == sizeof value));
  return bytes == 0 ? std::nullopt : std::optional(value);
}

TEST_CASE("a connection that a rank closes ends, though a child of the rank lives") {
  auto [mine, theirs] = connected_pair();
  const Child child(nothing);
  mine.close();
  CHECK(read_from(theirs) == std::nullopt);
}

TEST_CASE("a connection of a rank that is killed ends, though a child of the rank lives") {
  const Socket listener = listen_at(address_of(""));
  const Address address = local_address(listener);
  Child rank([&] {
    int error = 0;
    const Socket connection = start_connecting(address, error);
    make_blocking(connection);
    const pid_t child = ::fork();
    if (child == 0) ::alarm(kPatience_ms / 1000);
    if (child > 0) ::send(connection.number(), &child, sizeof child, MSG_NOSIGNAL);
    ::alarm(kPatience_ms / 1000);
    for (;;) ::pause();
  });
  pollfd wanted{.fd = listener.number(), .events = POLLIN, .revents = 0};
  REQUIRE(::poll(&wanted, 1, kPatience_ms) == 1);
  const Socket accepted = accept_from(listener);
  const std::optional<pid_t> child = read_from(accepted);
  REQUIRE(child.has_value());
  rank.kill();
  CHECK(read_from(accepted) == std::nullopt);
  CHECK(::kill(*child, SIGKILL) == 0);  // the child has outlived the rank
}

TEST_CASE("a stream that is closed ends, though another descriptor of its socket is open") {
  auto [mine, theirs] = connected_pair();
  const io::Descriptor kept(::dup(mine.number()));
  OutStream stream;
  stream.connect(std::move(mine), nothing);
  stream.close();
  CHECK(read_from(theirs) == std::nullopt);
}

TEST_CASE("a child that closes its copy of a socket leaves the rank's connection alone") {
  auto [mine, theirs] = connected_pair();
  int told[2] = {-1, -1};
  REQUIRE(::pipe(told) == 0);
  const io::Descriptor from_child(told[0]), to_parent(told[1]);
  const Child child([&, copy = &mine] {
    copy->shut_down();
    copy->close();
    io::write_all(to_parent, "closed");
  });
  char first = 0;
  REQUIRE(::read(from_child.number(), &first, 1) == 1);
  const pid_t value = 7;
  REQUIRE(::send(mine.number(), &value, sizeof value, MSG_NOSIGNAL) == sizeof value);
  CHECK(read_from(theirs) == value);
}

}  // namespace
}  // namespace hipress::transport
