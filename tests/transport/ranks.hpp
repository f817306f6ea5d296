#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "transport/endpoint.hpp"

namespace hipress::transport::test {

/// Timeout in seconds that is far longer than anything here takes, even under a sanitizer on a busy
/// machine: a test that waits for it has failed. Tests that wait for a timeout to pass use kShort.
inline constexpr double kGenerous = 120;
inline constexpr double kShort = 2;
/// Seconds beyond its timeout after which a rank counts as late. Milliseconds suffice on an idle
/// machine.
inline constexpr double kMargin = 30;

/// Name of a rendezvous that no other test uses.
std::string fresh_rendezvous();

/// Options of rank 0 in a job of `size` threads, with a rendezvous of its own.
JobOptions thread_job(int size, double timeout_s = kGenerous);

/// Error with which a rank's function ended, if any.
struct Outcome {
  std::optional<PeerError> peer_error;
  std::string other_error;
};

/// Runs `rank_main` on a thread per rank and waits for all. As Catch2's assertions are not
/// thread-safe, rank_main stores results, which the test then checks.
std::vector<Outcome> run_ranks(int size, const std::function<void(int rank)>& rank_main);

/// As run_ranks(), with a connected endpoint per rank.
std::vector<Outcome> run_job(const std::string& transport, const JobOptions& job,
                             const std::function<void(Endpoint&)>& rank_main);

/// Errors with which ranks ended, one per line; empty if there were none.
std::string errors(const std::vector<Outcome>& outcomes);

/// Byte i of a message. It depends on all arguments, and differs from its neighbours.
std::byte pattern(int from, int to, std::uint32_t tag, std::uint64_t iteration, std::size_t i);

/// Addition of 16-bit integers, which wraps around.
inline constexpr Addition kShortAddition{
    sizeof(std::uint16_t), [](void* into, const void* other, std::size_t values) {
      auto* const sums = static_cast<std::uint16_t*>(into);
      const auto* const summands = static_cast<const std::uint16_t*>(other);
      for (std::size_t i = 0; i < values; ++i) {
        sums[i] = static_cast<std::uint16_t>(sums[i] + summands[i]);
      }
    }};

/// One rank's messages to and from every other rank, with sizes `bytes`. The index is the tag.
class Traffic {
 public:
  Traffic(Endpoint& endpoint, std::vector<std::size_t> bytes);

  /// Runs an iteration: sends everything in an order drawn from `seed`, and checks what arrives.
  void run(std::uint64_t iteration, unsigned seed);
  /// The steps of run().
  void begin(std::uint64_t iteration);
  void send(std::size_t index);
  void finish();
  /// Posts receives; call it between finish() and begin().
  void post();

  Exchange& exchange() { return *exchange_; }
  std::size_t messages() const { return outgoing_.size(); }
  /// Tags that have arrived from `peer` in this iteration, in order of arrival.
  const std::vector<std::uint32_t>& arrived(int peer) const;

 private:
  struct Message {
    int peer;
    std::uint32_t tag;
    std::vector<std::byte> bytes;
  };
  void forget_arrived();

  Endpoint& endpoint_;
  std::vector<Message> outgoing_, incoming_;
  std::vector<std::vector<std::uint32_t>>
      arrived_;  ///< by peer; each written by one thread at a time
  std::uint64_t iteration_ = 0;
  bool posted_ = false;
  std::unique_ptr<Exchange> exchange_;
};

}  // namespace hipress::transport::test
