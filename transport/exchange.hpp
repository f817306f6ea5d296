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

/// Reason why the job is over.
struct Failure {
  int culprit = 0;
  std::string reason;  ///< message of the rank that noticed the failure
  int reporter = 0;    ///< rank from which this one heard of it, or this one
  Loss loss = Loss::kFault;
};

/// Services that a session provides to its exchanges.
class ExchangeHost {
 public:
  virtual ~ExchangeHost() = default;

  virtual int rank() const = 0;
  virtual int size() const = 0;
  virtual double timeout_s() const = 0;
  /// See Endpoint::silence(). Call it without holding an exchange's lock.
  virtual std::optional<PeerError> silence() const = 0;
  virtual Wire& wire() = 0;
  virtual Outbound& to(int peer) = 0;
  /// Unused slot number for a window of `peer`.
  virtual int new_slot(int peer) = 0;
  virtual void forget(std::uint32_t exchange) = 0;
  /// Makes the error of an exchange that `peer` goes on with after this rank, the culprit, left it.
  virtual PeerError left_behind(int peer) const = 0;
  /// Waits, after a failure, until the wire is closed.
  virtual void wait_closed() = 0;
  /// Aborts the job unless it has failed already; does not wait. Call it without holding an
  /// exchange's lock.
  virtual void fail(const PeerError& fault) = 0;
};

/// State of one exchange, shared by its owner and the receivers. The first record about the
/// exchange creates it, even before this rank has prepared the exchange. Faults are thrown as
/// PeerError with the culprit.
class ExchangeState : public std::enable_shared_from_this<ExchangeState> {
 public:
  ExchangeState(ExchangeHost& host, std::uint32_t id);

  // Functions for the owner; see Exchange.
  void define(const std::vector<Outgoing>& outgoing, const std::vector<Incoming>& incoming,
              Events events);
  void begin(std::uint64_t iteration);
  void send(std::size_t index, std::int64_t bytes);
  void finish();
  void post();
  /// Detaches the owner: no event is delivered and none of its memory is touched afterwards. The
  /// state lives on until every participant is known to have begun the last iteration: a rank that
  /// had posted its receives may begin that iteration after this rank has finished it.
  void retire() noexcept;

  // Functions for the receiver of the records of `peer`.
  void on_manifest(int peer, const Record& record, std::span<const std::byte> content);
  void on_begin(int peer, const Record& record);
  void on_posted(int peer, const Record& record);
  void on_segment(int peer, const Record& record, std::span<const std::byte> content);
  void on_left(int peer);

  // Functions for the session.
  /// Records the failure and ends the owner's waits.
  void wake(const Failure& failure);
  /// Calls wake() and delivers the event.
  void report_failure(const Failure& failure);
  bool active() const;

 private:
  struct Departure {
    Outgoing message;
    std::unique_ptr<Writer> writer;  ///< null: the message always fits into the ring
    std::uint64_t capacity = 0;      ///< longest message its receiver accepts
    bool sent = false;               ///< sent in this iteration
    int puts = 0;                    ///< number of puts through `writer` that have not been waited
                                     ///< for
  };
  struct Arrival {
    std::span<std::byte> destination;
    std::unique_ptr<Window> window;
    std::uint64_t received = 0;  ///< bytes; used by its receiver only
    bool done = false;
  };
  struct Held {
    std::size_t index;
    std::int64_t bytes;
  };
  /// State for one other rank.
  struct Other {
    std::vector<std::size_t> outgoing;
    std::unordered_map<std::uint32_t, Arrival> incoming;
    std::vector<std::uint32_t> tags;  ///< tags of `incoming`, ascending
    std::vector<std::byte> manifest;
    bool manifest_complete = false;
    std::uint64_t begun = 0;  ///< number of iterations it has begun
    std::uint64_t begun_iteration = 0;
    std::uint64_t posted = 0;  ///< number of iterations whose receives it has posted
    std::vector<Held> held;    ///< messages to it, held back until it can receive
    std::size_t given = 0;     ///< number of messages to it passed to send() in this iteration
    std::size_t unsent = 0;    ///< number of these messages whose last segment has not left yet
    std::size_t awaited = 0;
    bool left = false;
  };
  /// Message that arrived between post() and begin().
  struct Early {
    std::uint32_t tag;
    std::int64_t bytes;
    Clock::time_point at;
  };

  Other& other(int peer) { return others_[static_cast<std::size_t>(peer)]; }
  void publish_manifest(int peer);

  /// Checks a segment and returns its message's state; null if the exchange has failed meanwhile.
  Arrival* accept(int peer, const Record& record);

  /// Makes the iteration the current one. Throws PeerError if a peer is in a different one.
  void start(std::uint64_t iteration);
  /// Reports messages that arrived before begin(). The caller holds delivery_ exclusively, but not
  /// mutex_.
  void deliver_early();
  void send_to_all(RecordType type, std::uint64_t iteration, std::uint64_t count);

  // The caller holds mutex_.
  void reconcile(int peer);
  void reset_arrivals();
  /// Throws PeerError if `theirs`, the iteration of the peer, differs from this rank's.
  void check_same_iteration(int peer, std::uint64_t theirs) const;
  bool can_receive(int peer);
  void enqueue(std::size_t index, std::int64_t bytes);
  void release_held(int peer);
  void check_not_left(int peer);
  /// True if every participating rank is known to have begun all iterations of this rank.
  bool heard_from_all() const;
  /// Error to report if the owner leaves now; nullopt if it may leave.
  std::optional<PeerError> fault_of_leaving() const;
  PeerError error() const;
  PeerError stall();

  bool failed() const;
  /// Delivers the failure event once. The caller holds delivery_, but not mutex_.
  void deliver_failure();

  ExchangeHost& host_;
  const std::uint32_t id_;

  mutable std::mutex mutex_;
  std::condition_variable changed_;
  bool defined_ = false;
  bool active_ = false;   ///< true between begin() and finish()
  bool posted_ = false;   ///< true between post() and begin()
  bool retired_ = false;  ///< retire() has been called
  std::uint64_t iteration_ = 0;
  std::uint64_t begun_ = 0;  ///< number of iterations this rank has begun
  std::vector<Departure> departures_;
  std::vector<Other> others_;  ///< by rank
  std::size_t awaited_ = 0;    ///< messages of this iteration not yet received
  std::size_t unsent_ = 0;
  Clock::time_point progress_;  ///< time of the last message received or sent
  std::optional<Failure> failure_;
  std::vector<Early> early_;

  /// Receivers hold it shared while they touch the owner's memory or deliver a message. Holding it
  /// exclusively keeps them from doing so.
  std::shared_mutex delivery_;
  Events events_;
  bool owned_ = false;  ///< events_ is set
  bool over_ = false;
};

/// Owner's handle of an exchange.
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
  std::shared_ptr<ExchangeHost> host_;  // outlives the state: its wire owns the windows
  std::shared_ptr<ExchangeState> state_;
};

}  // namespace hipress::transport
