#pragma once

#include <atomic>
#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "transport/endpoint.hpp"
#include "transport/greeting.hpp"
#include "transport/socket.hpp"

namespace hipress::transport {

/// Strangers that have connected and not yet proved anything, at most; of more the first to come is
/// turned away. Larger: more descriptors; smaller: a crowd of strangers more often turns away a
/// rank, which then tries again.
inline constexpr int kMaxUnproven = 32;

/// Whoever has connected has so long to prove that it is a rank.
inline constexpr std::chrono::seconds kGreetingTime{10};

/// Where a rank lets others of its job in, and nobody else: it listens from its construction on,
/// connects to some ranks, and is connected to by others. Every connection proves that its other
/// end knows the job's secret (greeting.hpp) before anything else is read from it. Strangers may
/// connect as often as they like: they are limited in number and time, and no rank is blamed for
/// them.
class Gate {
 public:
  /// Listens where `--interface` says. io::InputError if this host has no such interface;
  /// PeerError naming `rank` if nothing more can be opened there.
  Gate(int rank, const std::string& interface);

  /// For the other ranks to connect to.
  const std::string& address() const { return address_; }

  struct Request {
    std::uint32_t purpose = 0;
    std::map<int, std::string> dialled;  ///< ranks that this one connects to, and where
    std::vector<int> accepted;           ///< ranks that connect to this one
    Clock::time_point deadline = Clock::time_point::max();
  };
  struct Connections {
    std::map<int, Socket> dialled;  ///< non-blocking, by rank
    std::map<int, Socket> accepted;
  };
  /// Returns when all are connected; nobody is let in afterwards. PeerError naming the first rank
  /// that is not by the deadline, or can not be connected to, or this rank if it has no
  /// descriptors left.
  Connections connect(const Secret& secret, const Request& request);

  /// Makes connect() throw PeerError soon; any thread may call it.
  void stop() noexcept { stopped_ = true; }

 private:
  const int rank_;
  Socket listener_;
  std::string address_;
  std::atomic<bool> stopped_ = false;
};

}  // namespace hipress::transport
