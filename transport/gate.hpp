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

/// Maximum number of unauthenticated connections of a rank; a further one closes the oldest. A
/// larger limit takes more descriptors. With a smaller one, a crowd of strangers more often
/// displaces ranks, which then have to retry.
inline constexpr int kMaxUnproven = 32;

/// Time limit for a connection to authenticate.
inline constexpr std::chrono::seconds kGreetingTime{10};

/// Connects one rank with others of its job; listens as soon as it is constructed. Both ends of
/// every connection prove that they know the job's secret (greeting.hpp) before they read anything
/// else. Strangers may connect as often as they like: their number and time are limited, and no
/// rank is blamed for them.
class Gate {
 public:
  /// Listens at address_of(interface). Throws io::InputError if this host has no such interface,
  /// and PeerError naming `rank` if no socket can be opened there.
  Gate(int rank, const std::string& interface);

  /// Address to which the other ranks connect.
  const std::string& address() const { return address_; }

  struct Request {
    std::uint32_t purpose = 0;
    std::map<int, std::string> dialled;  ///< addresses of the ranks that this one connects to
    std::vector<int> accepted;           ///< ranks that connect to this one
    Clock::time_point deadline = Clock::time_point::max();
  };
  struct Connections {
    std::map<int, Socket> dialled;  ///< non-blocking, by rank
    std::map<int, Socket> accepted;
  };
  /// Connects all ranks of the request, then stops listening. Throws PeerError naming a rank that
  /// cannot be reached or is not connected by the deadline, or naming this rank if it has no
  /// descriptors left.
  Connections connect(const Secret& secret, const Request& request);

  /// Makes connect() throw PeerError soon. Any thread may call it.
  void stop() noexcept { stopped_ = true; }

 private:
  const int rank_;
  Socket listener_;
  std::string address_;
  std::atomic<bool> stopped_ = false;
};

}  // namespace hipress::transport
