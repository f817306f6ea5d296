#pragma once

#include <condition_variable>
#include <cstdint>
#include <memory>
#include <mutex>
#include <optional>
#include <shared_mutex>
#include <span>
#include <string>
#include <unordered_map>
#include <vector>

#include "transport/endpoint.hpp"
#include "transport/link.hpp"
#include "transport/wire.hpp"

namespace hipress::transport {

/// Why the job is over.
struct Failure {
  int culprit = 0;
  std::string reason;  ///< in the words of the rank that noticed
  int reporter = 0;    ///< the rank that told this one, or this one
  Loss loss = Loss::kFault;
};

/// What an exchange asks of the session that it is part of.
class ExchangeHost {
 public:
  virtual ~ExchangeHost() = default;

  virtual int rank() const = 0;
  virtual int size() const = 0;
  virtual double timeout_s() const = 0;
  /// As Endpoint::silence(). Not with an exchange's lock held.
  virtual std::optional<PeerError> silence() const = 0;
  virtual Wire& wire() = 0;
  virtual Outbound& to(int peer) = 0;
  /// A slot that no window for `peer` had before.
  virtual int new_slot(int peer) = 0;
  virtual void forget(std::uint32_t exchange) = 0;
  /// This rank's fault when it leaves an exchange of which `peer` has begun another iteration.
  virtual PeerError left_behind(int peer) const = 0;
  /// After a failure: waits until the wire is closed.
  virtual void wait_closed() = 0;
  /// Ends the job, unless it has failed before; does not wait. Not with an exchange's lock held.
  virtual void fail(const PeerError& fault) = 0;
};

/// The state of one exchange, on which its owner and the receivers work. The first record about the
/// exchange creates it, if that comes before this rank has prepared the exchange. Faults are thrown
/// as PeerError with the culprit.
class ExchangeState : public std::enable_shared_from_this<ExchangeState> {
 public:
  ExchangeState(ExchangeHost& host, std::uint32_t id);

  // For the owner; see Exchange.
  void define(const std::vector<Outgoing>& outgoing, const std::vector<Incoming>& incoming,
              Events events);
  void begin(std::uint64_t iteration);
  void send(std::size_t index, std::int64_t bytes);
  void finish();
  void post();
  /// After this, no event is delivered and no memory of the owner is touched. The state remains
  /// until every participant is known to have begun the last iteration: a rank that had posted its
  /// receives may begin that iteration after this rank has finished it.
  void retire() noexcept;

  // For the receiver of `peer`.
  void on_manifest(int peer, const Record& record, std::span<const std::byte> content);
  void on_begin(int peer, const Record& record);
  void on_posted(int peer, const Record& record);
  void on_segment(int peer, const Record& record, std::span<const std::byte> content);
  void on_left(int peer);

  // For the session.
  /// The exchange has failed: ends the owner's waiting.
  void wake(const Failure& failure);
  /// wake(), and the event.
  void report_failure(const Failure& failure);
  bool active() const;

 private:
  struct Departure {
    Outgoing message;
    std::unique_ptr<Writer> writer;  ///< null if the message always fits into the ring
    std::uint64_t capacity = 0;      ///< the longest that its receiver takes
    bool sent = false;               ///< in this iteration
    int puts = 0;                    ///< through `writer`, not waited for
  };
  struct Arrival {
    std::span<std::byte> destination;
    std::unique_ptr<Window> window;
    std::uint64_t received = 0;  ///< bytes; its receiver only
    bool done = false;
  };
  struct Held {
    std::size_t index;
    std::int64_t bytes;
  };
  /// What this rank knows of, and has to do with, one other.
  struct Other {
    std::vector<std::size_t> outgoing;
    std::unordered_map<std::uint32_t, Arrival> incoming;
    std::vector<std::uint32_t> tags;  ///< of incoming, ascending
    std::vector<std::byte> manifest;
    bool manifest_complete = false;
    std::uint64_t begun = 0;  ///< how many iterations it has begun
    std::uint64_t begun_iteration = 0;
    std::uint64_t posted = 0;  ///< for how many iterations it has posted receives
    std::vector<Held> held;    ///< messages to it, until it can receive
    std::size_t given = 0;     ///< messages to it given to send() in this iteration
    std::size_t unsent = 0;    ///< of these, those whose last segment has not left
    std::size_t awaited = 0;
    bool left = false;
  };
  /// A message that came between post() and begin().
  struct Early {
    std::uint32_t tag;
    std::int64_t bytes;
    Clock::time_point at;
  };

  Other& other(int peer) { return others_[static_cast<std::size_t>(peer)]; }
  void publish_manifest(int peer);

  /// Where a segment belongs, after all checks; null if the exchange has failed meanwhile.
  Arrival* accept(int peer, const Record& record);

  /// Makes the iteration the current one. PeerError when a peer is in another.
  void start(std::uint64_t iteration);
  /// Reports what came before begin(). With delivery_ held by this thread alone, not mutex_.
  void deliver_early();
  void send_to_all(RecordType type, std::uint64_t iteration, std::uint64_t count);

  // With mutex_ held.
  void reconcile(int peer);
  void reset_arrivals();
  /// PeerError if the peer's messages, or its begin, are of another iteration.
  void check_same_iteration(int peer, std::uint64_t theirs) const;
  bool can_receive(int peer);
  void enqueue(std::size_t index, std::int64_t bytes);
  void release_held(int peer);
  void check_not_left(int peer);
  /// Whether every rank that takes part is known to have begun as many iterations as this one.
  bool heard_from_all() const;
  /// Why the owner must not go now; none: it may.
  std::optional<PeerError> fault_of_leaving() const;
  PeerError error() const;
  PeerError stall();

  bool failed() const;
  /// The event, unless it has been. With delivery_ held, not mutex_.
  void deliver_failure();

  ExchangeHost& host_;
  const std::uint32_t id_;

  mutable std::mutex mutex_;
  std::condition_variable changed_;
  bool defined_ = false;
  bool active_ = false;   ///< between begin() and finish()
  bool posted_ = false;   ///< between post() and begin()
  bool retired_ = false;  ///< the owner is leaving, or has left
  std::uint64_t iteration_ = 0;
  std::uint64_t begun_ = 0;  ///< how many iterations this rank has begun
  std::vector<Departure> departures_;
  std::vector<Other> others_;  ///< by rank
  std::size_t awaited_ = 0;    ///< messages of this iteration
  std::size_t unsent_ = 0;
  Clock::time_point progress_;  ///< when the last message came or left
  std::optional<Failure> failure_;
  std::vector<Early> early_;

  /// Shared while a receiver touches the owner's memory or delivers a message, exclusive to end
  /// that.
  std::shared_mutex delivery_;
  Events events_;
  bool owned_ = false;  ///< the events are known
  bool over_ = false;
};

/// The owner's handle.
class SessionExchange : public Exchange {
 public:
  SessionExchange(std::shared_ptr<ExchangeHost> host, std::shared_ptr<ExchangeState> state)
      : host_(std::move(host)), state_(std::move(state)) {}
  ~SessionExchange() override { state_->retire(); }
  SessionExchange(const SessionExchange&) = delete;
  SessionExchange& operator=(const SessionExchange&) = delete;

  void begin(std::uint64_t iteration) override { state_->begin(iteration); }
  void send(std::size_t index, std::int64_t bytes) override { state_->send(index, bytes); }
  void finish() override { state_->finish(); }
  void post() override { state_->post(); }

 private:
  std::shared_ptr<ExchangeHost> host_;  // outlives the state, whose windows belong to its wire
  std::shared_ptr<ExchangeState> state_;
};

}  // namespace hipress::transport
