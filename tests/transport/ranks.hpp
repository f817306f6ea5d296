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

/// Far longer than anything here takes, also under a sanitizer on a busy machine: a test that waits
/// for it has failed. Tests that wait for a timeout to pass use kShort.
inline constexpr double kGenerous = 120;
inline constexpr double kShort = 2;
/// What a rank may take beyond its timeout before a test calls it too late: it takes milliseconds,
/// but machines are busy.
inline constexpr double kMargin = 30;

/// A rendezvous that no other test uses.
std::string fresh_rendezvous();

/// A job of `size` ranks of this process, with a rendezvous of its own; for rank 0.
JobOptions thread_job(int size, double timeout_s = kGenerous);

/// How a rank's function ended, if not by returning.
struct Outcome {
  std::optional<PeerError> peer_error;
  std::string other_error;
};

/// Runs `rank_main` on a thread per rank and waits for all. Catch2's assertions are not for several
/// threads: rank_main stores what the test then requires.
std::vector<Outcome> run_ranks(int size, const std::function<void(int rank)>& rank_main);

/// The same with a connected endpoint per rank.
std::vector<Outcome> run_job(const std::string& transport, const JobOptions& job,
                             const std::function<void(Endpoint&)>& rank_main);

/// No rank ended with an error; the text says which did.
std::string errors(const std::vector<Outcome>& outcomes);

/// Byte i of a message: tells sender, receiver, tag and iteration apart, and no two neighbours are
/// equal.
std::byte pattern(int from, int to, std::uint32_t tag, std::uint64_t iteration, std::size_t i);

/// Of whole numbers of 16 bits, which wrap.
inline constexpr Addition kShortAddition{
    sizeof(std::uint16_t), [](void* into, const void* other, std::size_t values) {
      auto* const sums = static_cast<std::uint16_t*>(into);
      const auto* const summands = static_cast<const std::uint16_t*>(other);
      for (std::size_t i = 0; i < values; ++i) {
        sums[i] = static_cast<std::uint16_t>(sums[i] + summands[i]);
      }
    }};

/// One rank's messages of the sizes `bytes` to and from every other rank; tag = index into `bytes`.
class Traffic {
 public:
  Traffic(Endpoint& endpoint, std::vector<std::size_t> bytes);

  /// Fills the sources, begins, sends everything in an order drawn from `seed`, finishes, and
  /// compares.
  void run(std::uint64_t iteration, unsigned seed);
  /// As run(), but in pieces.
  void begin(std::uint64_t iteration);
  void send(std::size_t index);
  void finish();
  /// Between finish() and begin().
  void post();

  Exchange& exchange() { return *exchange_; }
  std::size_t messages() const { return outgoing_.size(); }
  /// The tags that arrived in this iteration from `peer`, in their order.
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
