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

namespace hipress::transport {

using Clock = std::chrono::steady_clock;

/// A message that one rank will send or receive in every iteration. `tag` names it at both ends:
/// the id of the receiving task. Memory stays valid and in place while the exchange lives.
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

/// How a rank was lost.
enum class Loss : std::uint8_t {
  kFault,  ///< it died, stalled, sent what it should not, or ended the job
  kLeft,   ///< it left in good order, and others go on without it
};

/// A rank that no longer takes part. `culprit` is the rank that died, stalled or sent what it
/// should not; what() names it, and the first tag that was awaited from it: "rank 2 closed the
/// connection; rank 0 awaits tag 17 and 3 more messages from it".
class PeerError : public std::runtime_error {
 public:
  PeerError(int culprit_rank, const std::string& message,
            std::vector<std::uint32_t> awaited_tags = {}, Loss how_lost = Loss::kFault)
      : std::runtime_error(message),
        culprit(culprit_rank),
        awaited(std::move(awaited_tags)),
        loss(how_lost) {}
  int culprit;
  /// The messages that this rank still awaited from the culprit, ascending; for the caller, who
  /// knows what its tags stand for.
  std::vector<std::uint32_t> awaited;
  Loss loss;
};

/// Called from threads of the transport, which hold no lock that sending needs: a handler may send.
/// It must neither destroy the exchange nor wait for another message of the same peer.
struct Events {
  /// A whole, verified message is in its destination. One call at a time per sending peer; messages
  /// of different peers may be reported by several threads at once.
  std::function<void(std::uint32_t tag, std::int64_t bytes, Clock::time_point at)> arrived;
  /// The exchange is over: no further event follows. May come before prepare() has returned, also
  /// on the thread that called it.
  std::function<void(const PeerError&)> failed;
};

/// A fixed set of messages, exchanged once per iteration. Every message carries (job, iteration,
/// tag, length) and a CRC32C, checked on arrival. Messages from one rank to another arrive in the
/// order in which they were sent. May be destroyed at any time; doing so in the middle of an
/// iteration ends the job, with this rank as culprit.
class Exchange {
 public:
  virtual ~Exchange() = default;
  /// Posts all receives of the iteration, without waiting for other ranks; all ranks give the same
  /// number. For full speed, every rank should have returned from begin() before any rank sends
  /// (the executor's common start ensures that). A message to a rank that has not begun is held
  /// back until it has. PeerError if the job has failed already.
  virtual void begin(std::uint64_t iteration) = 0;
  /// Sends the first `bytes` of outgoing message `index`, once per iteration. Does not wait for the
  /// receiver. Its source must not change until finish() returns, or until the receiver's data has
  /// come back. Messages to one peer keep their order if one thread at a time sends. Once the
  /// exchange has failed it does nothing: the failure is reported by the event and by finish().
  virtual void send(std::size_t index, std::int64_t bytes) = 0;
  /// Waits until everything sent has left and everything posted has arrived; PeerError if that
  /// fails, or if nothing at all arrives for JobOptions::timeout_s.
  virtual void finish() = 0;
  /// May be called between iterations: posts the next one's receives before begin(), so that ranks
  /// that have begun it can send without waiting for this rank. Their messages may then come into
  /// their destinations, but are reported by begin() at the soonest. Does nothing after a failure,
  /// or if the transport cannot take posted receives back when the exchange is destroyed.
  virtual void post() = 0;
};

/// How a Collective adds numbers of one type. Transports know no other types than by this.
struct Addition {
  std::size_t value_bytes = 0;  ///< of one number: 2 or 4
  /// into[i] += other[i], rounded to the type. The two do not overlap.
  void (*add)(void* into, const void* other, std::size_t values) = nullptr;
};

inline void add_floats(void* into, const void* other, std::size_t values) {
  auto* const __restrict sums = static_cast<float*>(into);
  const auto* const __restrict summands = static_cast<const float*>(other);
  for (std::size_t i = 0; i < values; ++i) sums[i] += summands[i];
}
inline constexpr Addition kFloatAddition{sizeof(float), add_floats};

/// A library's collectives of sharded training. `all` consists of one shard for each rank, in rank
/// order; all shards are equally long. Every rank must make the same calls in the same order, with
/// shards of the same length; errors are those of Collective::all_reduce().
class ShardCollectives {
 public:
  virtual ~ShardCollectives() = default;
  /// Leaves in `all` what every rank gives as its shard.
  virtual void all_gather(std::span<const std::byte> shard, std::span<std::byte> all) = 0;
  /// Leaves in `shard` the sum over all ranks of this rank's shard of `all`, and overwrites `all`.
  virtual void reduce_scatter(std::span<std::byte> all, std::span<std::byte> shard,
                              const Addition& addition) = 0;
  /// Sends shard i of `from` to rank i, and leaves in shard i of `into` what rank i has sent here.
  /// Both are as long.
  virtual void all_to_all(std::span<const std::byte> from, std::span<std::byte> into) = 0;
};

/// Sums over all ranks, by a library's own algorithm where the transport has one.
class Collective {
 public:
  virtual ~Collective() = default;
  /// On every rank, replaces `values` by their sum over all ranks; the sums have the same bits on
  /// every rank. The values are numbers of the addition's type and aligned for it. The library
  /// chooses the order of summation. Every rank must make the same calls in the same order, each
  /// with as many values of the same type; a call waits for all ranks. PeerError if a rank is lost
  /// meanwhile, or does not call within JobOptions::timeout_s.
  virtual void all_reduce(std::span<std::byte> values, const Addition& addition) = 0;
  void all_reduce(std::span<float> values) {
    all_reduce(std::as_writable_bytes(values), kFloatAddition);
  }
  /// Null where the transport's library has no such collectives. Lives as long as this does.
  virtual ShardCollectives* shards() = 0;
  /// Ends the waiting of a call on another thread; the job has then failed, unless nobody waited.
  virtual void interrupt() noexcept = 0;
};

/// One rank's end of a job. Its destructor leaves the job in good order, or, after a failure, stays
/// long enough for the other ranks to hear who failed.
class Endpoint {
 public:
  virtual ~Endpoint() = default;
  virtual int rank() const = 0;
  virtual int size() const = 0;
  /// All ranks prepare the same exchanges in the same order. The job fails if a rank expects a
  /// message that its peer does not have among its outgoing ones. std::invalid_argument if a peer
  /// is this rank or does not exist, or if two messages from or to one peer have the same tag.
  virtual std::unique_ptr<Exchange> prepare(std::vector<Outgoing> outgoing,
                                            std::vector<Incoming> incoming, Events events) = 0;
  /// All ranks make it together, between iterations; the endpoint must outlive it.
  virtual std::unique_ptr<Collective> collective() = 0;
  /// Gives every rank the text of every rank, in rank order; for control, not for timing. All ranks
  /// must call it, between iterations. PeerError names a rank that does not.
  virtual std::vector<std::string> all_gather(const std::string& mine) = 0;
  /// Tells every reachable rank that `culprit` ended the job, and why; their pending calls then
  /// throw PeerError naming the same culprit.
  virtual void abort(int culprit, const std::string& reason) noexcept = 0;
  /// Error of a rank that does not even send beats, if there is one. It explains better than
  /// lateness why this rank has waited for JobOptions::timeout_s.
  virtual std::optional<PeerError> silence() const { return std::nullopt; }
};

/// Shorter timeouts take busy ranks for dead ones; longer ones are as good as none.
inline constexpr double kMinTimeout_s = 0.1, kMaxTimeout_s = 1e6;
/// Longer than the restart of a switch, or the move of a virtual machine.
inline constexpr double kDefaultSilence_s = 300;
/// JobOptions::notice reports silence of this length, or of half of the limit if that is shorter.
inline constexpr double kNotedSilence_s = 10;

class Store;  // store.hpp

/// A rank's view of its job. Ranks with another job id, size, plan, timeout or limit for silence do
/// not connect.
struct JobOptions {
  int rank = 0;
  int size = 1;
  std::string job;  ///< the same text on every rank, another one for every job
  std::string
      plan;  ///< fingerprint of what is run; ranks of one job that differ here do not connect
  /// "file:///shared/folder", "redis://host:port", "rediss://host:port" (TLS), or "local:NAME"
  /// (threads). A Redis may have a user and a password: "redis://user:password@host:port".
  std::string rendezvous;
  std::string interface;  ///< network interface or address to bind to; empty: loopback
  /// The longest wait for a rank to connect, or to send an awaited message: a rank that is later
  /// ends the job on every rank. From kMinTimeout_s to kMaxTimeout_s.
  double timeout_s = 30;
  /// A rank that sends nothing for this long counts as dead, whether or not it is waited for. Every
  /// rank sends a beat at least once a second, even while its caller computes, so only a stopped
  /// process, a machine or a network is silent. From kMinTimeout_s to kMaxTimeout_s.
  double silence_s = kDefaultSilence_s;
  /// Receives a sentence about ranks that have become silent, or are back. The thread that sends
  /// the beats calls it, so it must return at once and throw nothing. May be null.
  std::function<void(const std::string& sentence)> notice = nullptr;
  /// Bytes that only this job's ranks know, the same on every rank. Connections, and items left at
  /// the rendezvous, prove knowledge of them. Empty: rank 0 makes a secret for the connections, and
  /// leaves it at the rendezvous, where everybody with read access finds it.
  std::string secret = {};
  /// Permits a transport that authenticates nobody to listen beyond loopback.
  bool insecure = false;
  /// The caller's own place to meet at, instead of the rendezvous, which then only names it.
  std::shared_ptr<Store> store = nullptr;
};

/// Files and sockets that one rank has open, at most.
struct Descriptors {
  std::int64_t connected = 0;   ///< as long as it has an endpoint
  std::int64_t collective = 0;  ///< besides, for each collective
  /// Besides, while it connects, for strangers that have not proved anything. With fewer left, they
  /// are turned away sooner.
  std::int64_t strangers = 0;
};

/// The transport of ranks for which none is chosen.
inline constexpr std::string_view kDefaultTransport = "tcp";

/// One row per transport; adding one is one file and one row.
struct TransportRow {
  std::string_view name;  ///< "tcp", "memory"
  std::string_view help;
  /// Of a rank of a job of `size`.
  Descriptors (*descriptors)(int size);
  /// Returns when all ranks are connected. io::InputError if the options are wrong or the ranks do
  /// not fit together (another size, plan, timeout or version, a rank number taken twice, leftovers
  /// of an earlier job, loopback between hosts). PeerError with the number of a rank that does not
  /// come within timeout_s. io::RunError if the rendezvous itself fails, or does not answer within
  /// timeout_s.
  std::unique_ptr<Endpoint> (*connect)(const JobOptions& options);
};
std::span<const TransportRow> transports();
/// Tells ranks at the rendezvous that this one does not take part, and why. Their connect() then
/// throws io::InputError with that reason instead of waiting. In a shared folder, it waits up to
/// 5 s for them, and takes the message away again. Has no effect after this rank has come to the
/// rendezvous, or if the message cannot be left.
void refuse(const JobOptions& options, const std::string& reason) noexcept;
/// Every row's name and help, for the help of an option: "tcp (…); gloo (…)".
std::string describe_transports();
/// io::InputError, which lists the names, when there is no such transport.
const TransportRow& find_transport(std::string_view name);

/// CRC32C (Castagnoli), in hardware where there is an instruction for it; `seed` is the crc so far.
std::uint32_t crc32c(std::span<const std::byte> data, std::uint32_t seed = 0);

}  // namespace hipress::transport
