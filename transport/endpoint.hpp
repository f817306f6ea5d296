#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <stdexcept>
#include <string>
#include <string_view>
#include <vector>

namespace hipress::transport {

using Clock = std::chrono::steady_clock;

/// A message that one rank will send or receive in every iteration. `tag` names it at both ends: the id of
/// the receiving task. Memory stays valid and in place while the exchange lives.
struct Outgoing {
  int peer = 0;
  std::uint32_t tag = 0;
  std::span<const std::byte> source;  ///< capacity; send() says how much of it is used
};
struct Incoming {
  int peer = 0;
  std::uint32_t tag = 0;
  std::span<std::byte> destination;  ///< the longest message that may come
};

/// A rank that no longer takes part. `culprit` is the rank that died, stalled or sent what it should not;
/// what() names it: "rank 2 closed the connection (task 'Recv fc6[1]')".
class PeerError : public std::runtime_error {
 public:
  PeerError(int culprit_rank, const std::string& message)
      : std::runtime_error(message), culprit(culprit_rank) {}
  int culprit;
};

/// Called from a thread of the transport, never while a lock of the caller is needed to send.
struct Events {
  /// A whole, verified message is in its destination.
  std::function<void(std::uint32_t tag, std::int64_t bytes, Clock::time_point at)> arrived;
  /// The exchange is over: no further event follows.
  std::function<void(const PeerError&)> failed;
};

/// A fixed set of messages, exchanged once per iteration. Every message carries (job, iteration, tag,
/// length) and a CRC32C, checked on arrival; per pair they arrive in the order in which they were sent.
class Exchange {
 public:
  virtual ~Exchange() = default;
  /// Posts all receives of the iteration. Every rank must have returned from begin before any rank sends
  /// (the executor's common start sees to that).
  virtual void begin(std::uint64_t iteration) = 0;
  /// Sends the first `bytes` of outgoing message `index`. Does not wait for the receiver. Its source must
  /// not change until finish() returns, or until the receiver's data has come back.
  virtual void send(std::size_t index, std::int64_t bytes) = 0;
  /// Waits until everything sent has left and everything posted has arrived; PeerError if that fails.
  virtual void finish() = 0;
};

/// One rank's end of a job.
class Endpoint {
 public:
  virtual ~Endpoint() = default;
  virtual int rank() const = 0;
  virtual int size() const = 0;
  virtual std::unique_ptr<Exchange> prepare(std::vector<Outgoing> outgoing,
                                            std::vector<Incoming> incoming, Events events) = 0;
  /// Gives every rank the text of every rank, in rank order; for control, not for timing. All ranks must
  /// call it, between iterations. PeerError names a rank that does not.
  virtual std::vector<std::string> all_gather(const std::string& mine) = 0;
  /// Tells every reachable rank that `culprit` ended the job, and why; their pending calls then throw
  /// PeerError naming the same culprit.
  virtual void abort(int culprit, const std::string& reason) noexcept = 0;
};

/// What a job is: ranks with another job id, size or plan do not connect.
struct JobOptions {
  int rank = 0;
  int size = 1;
  std::string job;         ///< the same text on every rank: job id and plan fingerprint
  std::string rendezvous;  ///< "file:///shared/folder", "redis://host:port", or "local:NAME" (threads)
  std::string interface;   ///< network interface or address to bind to; empty: loopback
  double timeout_s = 30;   ///< a peer that is silent for so long is dead
};

/// One row per transport; adding one is one file and one row.
struct TransportRow {
  std::string_view name;  ///< "gloo", "memory"
  std::string_view help;
  std::unique_ptr<Endpoint> (*connect)(const JobOptions& options);
};
std::span<const TransportRow> transports();
const TransportRow& find_transport(std::string_view name);

/// CRC32C (Castagnoli), in hardware where there is an instruction for it; `seed` is the crc so far.
std::uint32_t crc32c(std::span<const std::byte> data, std::uint32_t seed = 0);

}  // namespace hipress::transport
