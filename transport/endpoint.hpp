#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <stdexcept>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

// Example: every rank sends 4 KiB to the next rank and receives 4 KiB from the previous one.
//
//   const auto endpoint = find_transport("tcp").connect(
//       {.rank = rank, .size = size, .job = "ring", .rendezvous = "file:///shared/folder"});
//   std::vector<std::byte> out(4096), in(4096);
//   const auto exchange = endpoint->prepare(
//       {{.peer = (rank + 1) % size, .tag = 1, .source = out}},
//       {{.peer = (rank + size - 1) % size, .tag = 1, .destination = in}},
//       {.arrived = [](std::uint32_t tag, std::int64_t bytes, Clock::time_point at) {},
//        .failed = [](const PeerError& error) {}});
//   exchange->begin(0);
//   exchange->send(0, 4096);
//   exchange->finish();  // all data is in place, or PeerError names the lost rank

namespace hipress::transport {

using Clock = std::chrono::steady_clock;

/// Messages that one rank sends or receives in every iteration. `tag`, the receiving task's id,
/// identifies a message at both ends. Memory must stay valid and in place while the exchange lives.
struct Outgoing {
  int peer = 0;
  std::uint32_t tag = 0;
  std::span<const std::byte> source;  ///< capacity; send() gives the number of bytes used
};
struct Incoming {
  int peer = 0;
  std::uint32_t tag = 0;
  std::span<std::byte> destination;  ///< capacity: the longest message that may arrive
};

/// Reason why a rank is no longer there.
enum class Loss : std::uint8_t {
  kFault,  ///< it died, stalled, sent invalid data or aborted the job
  kLeft,   ///< it left in good order; the others continue without it
};

/// A rank has been lost. `culprit` is the rank that died, stalled or sent invalid data; what()
/// names it and the first tag awaited from it: "rank 2 closed the connection; rank 0 awaits tag 17
/// and 3 more messages from it".
class PeerError : public std::runtime_error {
 public:
  PeerError(int culprit_rank, const std::string& message,
            std::vector<std::uint32_t> awaited_tags = {}, Loss how_lost = Loss::kFault)
      : std::runtime_error(message),
        culprit(culprit_rank),
        awaited(std::move(awaited_tags)),
        loss(how_lost) {}
  int culprit;
  /// Tags still awaited from the culprit, ascending. The caller knows which tasks they stand for.
  std::vector<std::uint32_t> awaited;
  Loss loss;
};

/// Callbacks of an exchange. Threads of the transport call them and hold no lock that sending
/// needs, so a handler may send. A handler must neither destroy the exchange nor wait for another
/// message of the same peer.
struct Events {
  /// A complete, verified message is in its destination. Messages of one peer are reported one at a
  /// time; several threads may report messages of different peers at once.
  std::function<void(std::uint32_t tag, std::int64_t bytes, Clock::time_point at)> arrived;
  /// The exchange has failed; no further event follows. The handler may be called before prepare()
  /// has returned, and on the thread that called prepare().
  std::function<void(const PeerError&)> failed;
};

/// A fixed set of messages, exchanged once per iteration. Every message carries (job, iteration,
/// tag, length) and a CRC32C, checked on arrival. Messages from one rank to another arrive in the
/// order in which they were sent. May be destroyed at any time; destroying it during an iteration
/// aborts the job, with this rank as culprit.
class Exchange {
 public:
  virtual ~Exchange() = default;
  /// Posts all receives of the iteration without waiting for other ranks. All ranks pass the same
  /// iteration number. For full speed, every rank should have returned from begin() before any rank
  /// sends (replays ensure that by a common start, job/clock.hpp). A message to a rank is held back
  /// until that rank has begun, or called post(). Throws PeerError if the job has failed already.
  virtual void begin(std::uint64_t iteration) = 0;
  /// Sends the first `bytes` of outgoing message `index`, once per iteration. Does not wait for the
  /// receiver. The source must not change until finish() returns, or until data that depends on it
  /// has come back. Messages to one peer keep their order if one thread at a time sends. Does
  /// nothing once the exchange has failed: Events::failed and finish() report the failure.
  virtual void send(std::size_t index, std::int64_t bytes) = 0;
  /// Waits until all messages to send have left and all posted receives have arrived. Throws
  /// PeerError if that fails, or if no message arrives for JobOptions::timeout_s.
  virtual void finish() = 0;
  /// Posts the next iteration's receives before begin(). This call is optional, and allowed between
  /// iterations. Ranks that have begun that iteration can then send without waiting for this rank.
  /// Their messages are reported in begin() at the earliest. Does nothing after a failure, or if
  /// the transport cannot withdraw posted receives when the exchange is destroyed.
  virtual void post() = 0;
};

/// Addition of numbers of one type, for Collective. Transports know number types only through this.
struct Addition {
  std::size_t value_bytes = 0;  ///< size of one number: 2 or 4
  /// Adds two arrays: into[i] += other[i], rounded to the type. The two do not overlap.
  void (*add)(void* into, const void* other, std::size_t values) = nullptr;
};

inline void add_floats(void* into, const void* other, std::size_t values) {
  auto* const __restrict sums = static_cast<float*>(into);
  const auto* const __restrict summands = static_cast<const float*>(other);
  for (std::size_t i = 0; i < values; ++i) sums[i] += summands[i];
}
inline constexpr Addition kFloatAddition{sizeof(float), add_floats};

/// Collectives of sharded training, where a library has them. `all` holds one shard per rank, in
/// rank order; all shards have the same length. Every rank must make the same calls in the same
/// order with the same shard length. Errors are those of Collective::all_reduce().
class ShardCollectives {
 public:
  virtual ~ShardCollectives() = default;
  /// Gathers the shards of all ranks into `all`.
  virtual void all_gather(std::span<const std::byte> shard, std::span<std::byte> all) = 0;
  /// Sums `all` over all ranks and leaves this rank's shard of the sum in `shard`. Overwrites
  /// `all`.
  virtual void reduce_scatter(std::span<std::byte> all, std::span<std::byte> shard,
                              const Addition& addition) = 0;
  /// Sends shard i of `from` to rank i, and receives into shard i of `into` what rank i sends to
  /// this rank. Both spans have the same length.
  virtual void all_to_all(std::span<const std::byte> from, std::span<std::byte> into) = 0;
};

/// All-reduce of the transport. Uses the algorithm of the transport's library, if there is one.
class Collective {
 public:
  virtual ~Collective() = default;
  /// Replaces `values` by their sum over all ranks, bit-identical on every rank. The values have
  /// the addition's type and alignment. The library chooses the order of summation. Every rank must
  /// make the same calls in the same order, each with the same number of values of the same type. A
  /// call waits for all ranks. Throws PeerError if a rank is lost, or does not make the call within
  /// JobOptions::timeout_s.
  virtual void all_reduce(std::span<std::byte> values, const Addition& addition) = 0;
  void all_reduce(std::span<float> values) {
    all_reduce(std::as_writable_bytes(values), kFloatAddition);
  }
  /// Collectives of sharded training, as long-lived as this object; null if the transport has none.
  virtual ShardCollectives* shards() = 0;
  /// Makes a call fail that another thread is in, which ends the job. To be called only during such
  /// a call: it closes the collective, so later calls may fail, too.
  virtual void interrupt() noexcept = 0;
};

/// One rank's end of a job. The destructor leaves the job in good order or, after a failure, stays
/// until the other ranks have heard who failed.
class Endpoint {
 public:
  virtual ~Endpoint() = default;
  virtual int rank() const = 0;
  virtual int size() const = 0;
  /// Creates an exchange. All ranks prepare the same exchanges in the same order. The job fails if
  /// a rank expects a message that is not among its peer's outgoing ones. Throws
  /// std::invalid_argument if a peer is this rank or does not exist, or if two messages from or to
  /// one peer have the same tag.
  virtual std::unique_ptr<Exchange> prepare(std::vector<Outgoing> outgoing,
                                            std::vector<Incoming> incoming, Events events) = 0;
  /// Creates a collective. All ranks call this together, between iterations; the endpoint must
  /// outlive the collective.
  virtual std::unique_ptr<Collective> collective() = 0;
  /// Gathers one text per rank, in rank order, on every rank. Slow: for control messages. All ranks
  /// must call it, between iterations. Throws PeerError naming a rank that does not.
  virtual std::vector<std::string> all_gather(const std::string& mine) = 0;
  /// Aborts the job: tells every reachable rank the culprit and the reason. Pending calls of all
  /// ranks then throw PeerError with that culprit.
  virtual void abort(int culprit, const std::string& reason) noexcept = 0;
  /// Error that names a rank that has stopped sending heartbeats, if any has. Such a rank is the
  /// likely cause of a timeout.
  virtual std::optional<PeerError> silence() const { return std::nullopt; }
};

/// Limits of JobOptions::timeout_s. Shorter timeouts would mistake busy ranks for dead ones; longer
/// ones would hardly ever end.
inline constexpr double kMinTimeout_s = 0.1, kMaxTimeout_s = 1e6;
/// Default of JobOptions::silence_s: longer than the restart of a switch or the migration of a
/// virtual machine takes.
inline constexpr double kDefaultSilence_s = 300;
/// Silence after which JobOptions::notice reports a rank; half of silence_s if that is shorter.
inline constexpr double kNotedSilence_s = 10;

class Store;  // store.hpp

/// One rank's parameters of the job. Ranks whose job id, size, plan, timeout or silence limit
/// differ do not connect.
struct JobOptions {
  int rank = 0;
  int size = 1;
  std::string job;   ///< unique id of the job, the same on every rank
  std::string plan;  ///< fingerprint of the plan; ranks whose fingerprints differ do not connect
  /// Place where ranks meet: "file:///shared/folder", "redis://host:port", "rediss://host:port"
  /// (TLS), or "local:NAME" (threads). A Redis may have a user and a password:
  /// "redis://user:password@host:port".
  std::string rendezvous;
  std::string interface;  ///< network interface or address to bind to; empty: loopback
  /// Longest wait for a rank to connect or to send an awaited message. If a rank takes longer, the
  /// job is aborted on all ranks. Lies between kMinTimeout_s and kMaxTimeout_s.
  double timeout_s = 30;
  /// Time without any record after which a rank counts as dead, whether or not a message is awaited
  /// from it. Every rank sends a heartbeat at least once a second, even while its caller computes,
  /// so silence means that the process, its machine or the network has stopped. Lies between
  /// kMinTimeout_s and kMaxTimeout_s.
  double silence_s = kDefaultSilence_s;
  /// Receives a sentence when ranks become silent, or are heard again. Called on the thread that
  /// sends the heartbeats, so it must return at once and not throw. May be null.
  std::function<void(const std::string& sentence)> notice = nullptr;
  /// Shared secret of the job's ranks. Connections, and items at the rendezvous, prove knowledge of
  /// it. Empty: rank 0 generates a secret for the connections and publishes it at the rendezvous,
  /// where everybody with read access finds it.
  std::string secret = {};
  /// Lets a transport without authentication listen beyond loopback.
  bool insecure = false;
  /// The caller's own store for the rendezvous. `rendezvous` is then only its name in messages.
  std::shared_ptr<Store> store = nullptr;
};

/// Upper bound of the files and sockets that one rank has open.
struct Descriptors {
  std::int64_t connected = 0;   ///< number while its endpoint exists
  std::int64_t collective = 0;  ///< additional descriptors per collective
  /// Additional descriptors while it connects, for peers that have not authenticated yet. With
  /// fewer, such peers are turned away sooner.
  std::int64_t strangers = 0;
};

/// Default transport.
inline constexpr std::string_view kDefaultTransport = "tcp";

/// A transport. To add one, write one file and add one row to the table in transports.cpp.
struct TransportRow {
  std::string_view name;  ///< "tcp", "memory"
  std::string_view help;
  /// Descriptors that a rank of a job of `size` ranks needs.
  Descriptors (*descriptors)(int size);
  /// Connects, and returns when all ranks are connected. Throws io::InputError if the options are
  /// invalid, or if the ranks do not match (a different size, plan, timeout or version, a duplicate
  /// rank, leftovers of an earlier job, loopback between hosts). Throws PeerError naming a rank
  /// that does not connect within timeout_s. Throws io::RunError if the rendezvous itself fails, or
  /// does not answer within timeout_s.
  std::unique_ptr<Endpoint> (*connect)(const JobOptions& options);
};
std::span<const TransportRow> transports();
/// Tells the other ranks at the rendezvous that this rank does not take part, and why. Their
/// connect() throws io::InputError with that reason instead of waiting. In a shared folder, waits
/// up to 5 s until they have read the message, then removes it. Has no effect if this rank has
/// already come to the rendezvous, or if the message cannot be written.
void refuse(const JobOptions& options, const std::string& reason) noexcept;
/// Names and descriptions of all transports, as the help text of an option: "tcp (…); gloo (…)".
std::string describe_transports();
/// Transport of that name; throws io::InputError with all names if it does not exist.
const TransportRow& find_transport(std::string_view name);

/// CRC32C (Castagnoli), with the CPU's instruction where available. `seed` is the CRC of the
/// preceding bytes.
std::uint32_t crc32c(std::span<const std::byte> data, std::uint32_t seed = 0);

}  // namespace hipress::transport
