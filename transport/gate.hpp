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

/// The most connections that a rank keeps before they have proved that they belong to the job; one
/// more closes the oldest. A larger limit takes more descriptors. With a smaller one, a crowd of
/// strangers more often turns away ranks, and these have to try again.
inline constexpr int kMaxUnproven = 32;

/// A connection has this long to prove that it comes from a rank.
inline constexpr std::chrono::seconds kGreetingTime{10};

/// Makes connections between one rank and others of its job. It listens from its construction on.
/// Both ends of every connection prove that they know the job's secret (greeting.hpp) before they
/// read anything else. Strangers may connect as often as they like: their number and time are
/// limited, and no rank is blamed for them.
class Gate {
 public:
  /// Listens at address_of(interface). io::InputError if this host has no such interface;
  /// PeerError naming `rank` if nothing more can be opened there.
  Gate(int rank, const std::string& interface);

  /// The address to which the other ranks connect.
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
  /// Returns when all ranks of the request are connected, and stops listening. PeerError names a
  /// rank that is not connected by the deadline or that cannot be reached, or this rank if it has
  /// no descriptors left.
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
