#pragma once

#include <atomic>
#include <condition_variable>
#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "transport/endpoint.hpp"
#include "transport/exchange.hpp"
#include "transport/gather.hpp"
#include "transport/link.hpp"
#include "transport/wire.hpp"

namespace hipress::transport {

/// One rank's part in a job, over any wire.
/// Threads:
/// - One *receiver* per peer takes the peer's records in order, verifies segments and reports
///   messages.
/// - The *watchdog* sends heartbeats, detects silent peers, and ends the job after a failure.
/// The first rank to notice a failure, on any thread, tells all ranks with abort records. Each rank
/// passes the abort on once, which serves as a receipt. When all receipts are in, or after a grace
/// time, the watchdog closes the wire.
/// Locks: session before exchange; neither is held while events are delivered.
class Session : public ExchangeHost, public std::enable_shared_from_this<Session> {
 public:
  Session(const JobOptions& options, std::unique_ptr<Wire> wire);
  ~Session() override;
  Session(const Session&) = delete;
  Session& operator=(const Session&) = delete;

  /// Connects, and returns when this rank has heard from every other one.
  void connect();
  std::unique_ptr<Exchange> prepare(const std::vector<Outgoing>& outgoing,
                                    const std::vector<Incoming>& incoming, Events events);
  std::vector<std::string> all_gather(const std::string& mine);
  std::unique_ptr<Collective> collective();
  /// Throws the job's failure after part of the wire was closed. First waits for a rank that knows
  /// the cause. If no rank reports it, this rank counts as failed, with the text `otherwise`.
  [[noreturn]] void throw_cause(const std::string& otherwise);
  /// Marks the start and the end of a call of any Collective. Throws PeerError if the job has
  /// failed, or if a rank has left before this call.
  void begin_collective();
  void finish_collective();
  void fail(const PeerError& fault) override { fail(fault.culprit, fault.what(), fault.loss); }
  void fail(int culprit, std::string reason, Loss loss = Loss::kFault) {
    fail({culprit, std::move(reason), rank(), loss});
  }
  /// Leaves the job, in good order if it has not failed. Sends and receives nothing afterwards.
  void leave() noexcept;

  int rank() const override { return options_.rank; }
  int size() const override { return options_.size; }
  double timeout_s() const override { return options_.timeout_s; }
  std::optional<PeerError> silence() const override;
  Wire& wire() override { return *wire_; }
  Outbound& to(int peer) override { return peers_[static_cast<std::size_t>(peer)]->out; }
  int new_slot(int peer) override { return ++peers_[static_cast<std::size_t>(peer)]->last_slot; }
  void forget(std::uint32_t exchange) override;
  PeerError left_behind(int peer) const override;
  void wait_closed() override;

 private:
  struct Peer {
    Peer(Wire& wire, int number, std::uint64_t job)
        : rank(number), out(wire, number, job), in(wire, number, job) {}
    const int rank;
    Outbound out;
    Inbound in;
    std::thread receiver;
    std::atomic<Clock::time_point> heard = Clock::now();
    // Used by the watchdog only.
    Clock::time_point broken_since = Clock::time_point::max();
    Clock::time_point silent_since = Clock::time_point::max();  ///< start of a reported silence
    int last_slot = kRingSlot;
    // Guarded by Session::mutex_.
    bool greeted = false;           ///< its hello has arrived
    bool left = false;              ///< its end has arrived
    std::uint64_t collectives = 0;  ///< number of collective calls it had finished when it left
    bool receipt = false;           ///< its abort has arrived, or its connection is over
    bool end_sent = false;
  };
  template <typename Action>
  void for_peers(const Action& action) {
    for (const auto& peer : peers_) {
      if (peer) action(*peer);
    }
  }
  template <typename Action>
  void for_peers(const Action& action) const {
    for (const auto& peer : peers_) {
      if (peer) action(std::as_const(*peer));
    }
  }

  void receive(Peer& peer);
  void handle(Peer& peer, const Record& record, std::span<const std::byte> content);
  void handle_end(Peer& peer, std::uint64_t collectives);
  void lost(Peer& peer);
  /// Aborts the job if the peer has left before a collective that this rank is in.
  void require_collectives(const Peer& peer);
  /// State of an exchange; null once this rank has destroyed it and knows that all others have
  /// begun its last iteration. Posted receives and the manifest may still arrive after that, as
  /// these records only say what a peer can receive. If the two ranks exchange no messages, this
  /// rank may even have destroyed the exchange before the peer prepares it.
  std::shared_ptr<ExchangeState> exchange(std::uint32_t id);
  /// Like exchange(id), for records that imply this rank's participation: throws PeerError, with
  /// this rank as the culprit, instead of returning null.
  std::shared_ptr<ExchangeState> exchange(std::uint32_t id, int sender);

  void guard();
  void look_after(Peer& peer, Clock::time_point now);
  /// Error for the rank that has been silent the longest, if its silence exceeds `limit`.
  std::optional<PeerError> silence(std::chrono::nanoseconds limit, Clock::time_point now) const;
  /// Reports ranks that became silent, or are heard again, to JobOptions::notice.
  void note_silence(Clock::time_point now);
  void end_job(std::unique_lock<std::mutex>& lock);
  void close();
  void fail(Failure failure);
  /// Sends the peer an abort if the job has failed.
  void tell_failure(Peer& peer);
  void say_goodbye();
  void throw_failure() const;

  const JobOptions options_;
  const std::chrono::nanoseconds timeout_;
  const std::chrono::nanoseconds silence_;  ///< silence after which a peer counts as dead
  const std::chrono::nanoseconds noted_;    ///< silence after which a peer is reported
  const std::chrono::nanoseconds beat_;     ///< longest time between two records to a peer
  const std::chrono::nanoseconds grace_;    ///< time for other ranks to report a failure
  std::unique_ptr<Wire> wire_;
  std::vector<std::unique_ptr<Peer>> peers_;  ///< by rank; null for this one
  std::thread watchdog_;

  mutable std::mutex mutex_;
  std::condition_variable changed_;
  std::optional<Failure> failure_;
  bool greeted_all_ = false;  ///< hello has been sent to every peer, so aborts can be sent
  bool stopping_ = false;     ///< the watchdog must return
  bool closed_ = false;       ///< the wire is closed
  bool left_ = false;
  std::uint32_t next_exchange_ = 0;
  std::map<std::uint32_t, std::shared_ptr<ExchangeState>> exchanges_;
  Gathers gathers_;
  std::vector<std::weak_ptr<WireCollective>> collectives_;
  std::uint64_t collectives_begun_ = 0;  ///< number of calls of all Collectives
  std::uint64_t collectives_finished_ = 0;
};

/// Connects, and returns the session as an endpoint.
std::unique_ptr<Endpoint> connect_over(const JobOptions& options, std::unique_ptr<Wire> wire);

}  // namespace hipress::transport
