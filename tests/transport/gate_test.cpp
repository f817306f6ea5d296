#include "transport/gate.hpp"

#include <sys/socket.h>
#include <unistd.h>

#include <array>
#include <atomic>
#include <catch2/catch.hpp>
#include <cstdint>
#include <exception>
#include <filesystem>
#include <functional>
#include <future>
#include <iterator>
#include <map>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "io/digest.hpp"
#include "tests/transport/ranks.hpp"
#include "transport/socket.hpp"

namespace hipress::transport {
namespace {

using Catch::Contains;

const Secret kSecret(32, std::byte{0x5a});

Clock::time_point in_seconds(double s) {
  return Clock::now() +
         std::chrono::duration_cast<Clock::duration>(std::chrono::duration<double>(s));
}

/// Makes a blocking connection to `address`.
Socket visit(const std::string& address) {
  int error = 0;
  Socket socket = start_connecting(parse_address(address), error);
  make_blocking(socket);
  return socket;
}

void say(const Socket& socket, const void* bytes, std::size_t count) {
  ::send(socket.number(), bytes, count, MSG_NOSIGNAL);
}

/// Ends the connection with a reset.
void reset(Socket socket) {
  const linger at_once{.l_onoff = 1, .l_linger = 0};
  ::setsockopt(socket.number(), SOL_SOCKET, SO_LINGER, &at_once, sizeof at_once);
}

Nonce read_nonce(const Socket& socket) {
  Nonce nonce{};
  ::recv(socket.number(), nonce.data(), nonce.size(), MSG_WAITALL);
  return nonce;
}

/// First bytes of gloo's connections.
struct GlooPreamble {
  std::uint64_t bytes, opcode, slot, offset, length, roffset;
};

/// A stranger's attack on a port. `begin` returns the connection that stays open, if any.
struct Attack {
  const char* name;
  std::function<Socket(const std::string& address)> begin;
};

Socket say_to(const std::string& address, const void* bytes, std::size_t count) {
  Socket socket = visit(address);
  say(socket, bytes, count);
  return socket;
}

const Attack kAttacks[] = {
    {"silence", visit},
    {"a reset",
     [](const std::string& address) {
       reset(visit(address));
       return Socket();
     }},
    {"zeros",
     [](const std::string& address) {
       const std::array<char, 8> zeros{};
       return say_to(address, zeros.data(), zeros.size());
     }},
    {"half a claim",
     [](const std::string& address) {
       Socket socket = visit(address);
       const auto claim =
           Connector(kSecret, address, {.from = 1, .to = 0}).claim(read_nonce(socket));
       say(socket, claim.data(), claim.size() / 2);
       return socket;
     }},
    {"random bytes",
     [](const std::string& address) {
       const auto bytes = io::random_bytes(4096);
       return say_to(address, bytes.data(), bytes.size());
     }},
    {"a claim with another secret",
     [](const std::string& address) {
       Socket socket = visit(address);
       const Secret guessed(32, std::byte{0x5b});
       const auto claim =
           Connector(guessed, address, {.from = 1, .to = 0}).claim(read_nonce(socket));
       say(socket, claim.data(), claim.size());
       return socket;
     }},
    {"gloo's preamble with a length of 2^62",
     [](const std::string& address) {
       const GlooPreamble preamble{.bytes = 48,
                                   .opcode = 1,
                                   .slot = 0,
                                   .offset = 0,
                                   .length = std::uint64_t{1} << 62,
                                   .roffset = 0};
       return say_to(address, &preamble, sizeof preamble);
     }},
    {"gloo's preamble with an offset of 2^46",
     [](const std::string& address) {
       const GlooPreamble preamble{.bytes = 48,
                                   .opcode = 0,
                                   .slot = 0,
                                   .offset = 0,
                                   .length = 32,
                                   .roffset = std::uint64_t{1} << 46};
       return say_to(address, &preamble, sizeof preamble);
     }},
    {"gloo's preamble with an offset that wraps",
     [](const std::string& address) {
       const std::uint64_t before = 0x41000;
       const GlooPreamble preamble{.bytes = 48,
                                   .opcode = 0,
                                   .slot = 0,
                                   .offset = 0,
                                   .length = before + 32,
                                   .roffset = std::uint64_t{0} - before};
       return say_to(address, &preamble, sizeof preamble);
     }},
};

Gate::Request request(std::map<int, std::string> dialled, std::vector<int> accepted,
                      double patience_s = test::kGenerous, std::uint32_t purpose = 0) {
  return {.purpose = purpose,
          .dialled = std::move(dialled),
          .accepted = std::move(accepted),
          .deadline = in_seconds(patience_s)};
}

std::future<Gate::Connections> connect_later(Gate& gate, const Gate::Request& request) {
  return std::async(std::launch::async,
                    [&gate, request] { return gate.connect(kSecret, request); });
}

/// Connects two ranks: rank 1 calls `meanwhile` first, while rank 0 waits for it. Checks that both
/// connections carry bytes.
void connect_both(Gate& gate0, Gate& gate1, const std::function<void()>& meanwhile) {
  auto first = connect_later(gate0, request({{1, gate1.address()}}, {1}));
  meanwhile();
  const Gate::Connections there = gate1.connect(kSecret, request({{0, gate0.address()}}, {0}));
  const Gate::Connections here = first.get();
  const std::pair<const Socket*, const Socket*> ways[] = {
      {&here.dialled.at(1), &there.accepted.at(0)}, {&there.dialled.at(0), &here.accepted.at(1)}};
  for (const auto& [from, to] : ways) {
    say(*from, "hello", 5);
    make_blocking(*to);
    std::array<char, 5> heard{};
    CHECK(::recv(to->number(), heard.data(), heard.size(), MSG_WAITALL) == 5);
    CHECK(std::string(heard.data(), heard.size()) == "hello");
  }
}

TEST_CASE("two gates connect") {
  Gate gate0(0, ""), gate1(1, "");
  connect_both(gate0, gate1, [] {});
}

TEST_CASE("strangers keep no rank out and are blamed on none") {
  const Attack& attack =
      kAttacks[static_cast<std::size_t>(GENERATE(range(0, static_cast<int>(std::size(kAttacks)))))];
  INFO(attack.name);
  Gate gate0(0, ""), gate1(1, "");
  const std::string address = gate0.address();
  std::vector<Socket> open;
  connect_both(gate0, gate1, [&] {
    for (int i = 0; i < 2 * kMaxUnproven; ++i) open.push_back(attack.begin(address));
  });
}

TEST_CASE("strangers that come again and again keep no rank out") {
  Gate gate0(0, ""), gate1(1, "");
  const std::string address = gate0.address();
  std::atomic<bool> stopped = false;
  std::atomic<int> visits = 0;
  std::thread crowd;
  connect_both(gate0, gate1, [&] {
    crowd = std::thread([&] {
      std::vector<Socket> open;
      for (std::size_t i = 0; !stopped; ++i, ++visits) {
        try {
          // The last attack may get no answer, as the port closes once rank 1 is connected.
          open.push_back(kAttacks[i % 3].begin(address));
        } catch (const std::exception&) {
          return;
        }
        if (open.size() > 100) open.erase(open.begin());
      }
    });
    while (visits < 200) std::this_thread::yield();
  });
  stopped = true;
  crowd.join();
}

std::size_t open_descriptors() {
  namespace fs = std::filesystem;
  return static_cast<std::size_t>(
      std::distance(fs::directory_iterator("/proc/self/fd"), fs::directory_iterator()));
}

TEST_CASE("a crowd of strangers takes a limited number of descriptors, and none in the end") {
  Gate gate0(0, ""), gate1(1, "");
  const std::size_t before = open_descriptors();
  std::vector<Socket> crowd;
  std::size_t seen = 0;
  connect_both(gate0, gate1, [&] {
    for (int i = 0; i < 5 * kMaxUnproven; ++i) {
      crowd.push_back(visit(gate0.address()));
      seen = std::max(seen, open_descriptors() - crowd.size());
    }
  });
  // The 8 leave room for rank 0's own attempt to connect, and for the counting itself.
  CHECK(seen <= before + static_cast<std::size_t>(kMaxUnproven) + 8);
  crowd.clear();
  CHECK(open_descriptors() == before - 2);  // both listeners are closed
}

TEST_CASE("nobody is let in for another purpose, with another's number, or uninvited") {
  Gate gate0(0, ""), gate1(1, "");
  auto rank0 = connect_later(gate0, request({}, {1}, test::kGenerous, 3));
  for (const Claim& claim :
       {Claim{.from = 1, .to = 0, .purpose = 2}, Claim{.from = 2, .to = 0, .purpose = 3},
        Claim{.from = 1, .to = 1, .purpose = 3}}) {
    const Socket socket = visit(gate0.address());
    const auto message = Connector(kSecret, gate0.address(), claim).claim(read_nonce(socket));
    say(socket, message.data(), message.size());
    std::array<char, kAnswerBytes + 1> answer{};
    CHECK(::recv(socket.number(), answer.data(), answer.size(), MSG_WAITALL) <=
          static_cast<ssize_t>(kAnswerBytes));
  }
  const auto ends = gate1.connect(kSecret, request({{0, gate0.address()}}, {}, test::kGenerous, 3));
  CHECK(ends.dialled.size() == 1);
  CHECK(rank0.get().accepted.size() == 1);
}

TEST_CASE("a rank that does not come is named at the deadline") {
  Gate gate0(0, "");
  CHECK_THROWS_WITH(gate0.connect(kSecret, request({}, {3}, 0.05)),
                    Contains("rank 0 and rank 3 did not connect in time"));
}

TEST_CASE("a rank whose port is closed is named") {
  std::string gone;
  {
    const Gate gate(1, "");
    gone = gate.address();
  }
  Gate gate0(0, "");
  CHECK_THROWS_WITH(gate0.connect(kSecret, request({{1, gone}}, {})),
                    Contains("rank 0 cannot connect to rank 1 at " + gone));
}

TEST_CASE("a listener that does not know the secret is not taken for the rank") {
  Gate gate0(0, ""), impostor(1, "");
  std::thread pretends([&] {
    const Secret guessed(32, std::byte{1});
    try {
      impostor.connect(guessed, request({}, {0}, 0.5));
    } catch (const PeerError&) {
    }
  });
  CHECK_THROWS_AS(gate0.connect(kSecret, request({{1, impostor.address()}}, {}, 0.3)), PeerError);
  pretends.join();
}

TEST_CASE("a gate can be stopped") {
  Gate gate0(0, "");
  std::thread stopper([&] { gate0.stop(); });
  CHECK_THROWS_WITH(gate0.connect(kSecret, request({}, {1})), Contains("stopped"));
  stopper.join();
}

TEST_CASE("interfaces that others cannot reach are refused with a remedy") {
  CHECK_THROWS_WITH(Gate(0, "0.0.0.0"), Contains("ip address show"));
  CHECK_THROWS_WITH(Gate(0, "no_such_interface"), Contains("ip address show"));
  CHECK_THROWS_WITH(Gate(0, "192.0.2.1"), Contains("this host has no such address"));
  CHECK_NOTHROW(Gate(0, "127.0.0.2"));
  CHECK_NOTHROW(Gate(0, "lo"));
}

TEST_CASE("addresses are read as they are written") {
  for (const char* const text : {"127.0.0.1:80", "[::1]:65535"}) {
    CHECK(parse_address(text).text() == text);
  }
  for (const char* const text :
       {"", ":80", "localhost:80", "127.0.0.1", "127.0.0.1:port", "\x1b:1"}) {
    CHECK_THROWS_AS(parse_address(text), std::invalid_argument);
  }
}

}  // namespace
}  // namespace hipress::transport
