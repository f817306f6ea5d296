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

/// One rank's part in a job, over any wire. Its threads:
///   one *receiver* per peer takes the peer's records in their order, verifies segments and reports
///   messages; the *watchdog* sends beats, notices peers that are silent, and ends the job after a
///   failure.
/// Whoever notices a failure first, on any thread, publishes it to all ranks with abort records;
/// each rank passes it on once, which serves as a receipt. When all receipts are in, or after a
/// grace time, the watchdog closes the wire.
/// Locks: session before exchange; neither is held while events are delivered.
class Session : public ExchangeHost, public std::enable_shared_from_this<Session> {
 public:
  Session(const JobOptions& options, std::unique_ptr<Wire> wire);
  ~Session() override;
  Session(const Session&) = delete;
  Session& operator=(const Session&) = delete;

  /// Returns when this rank has heard from every other one.
  void connect();
  std::unique_ptr<Exchange> prepare(const std::vector<Outgoing>& outgoing,
                                    const std::vector<Incoming>& incoming, Events events);
  std::vector<std::string> all_gather(const std::string& mine);
  std::unique_ptr<Collective> collective();
  /// Something of the wire's was closed, which says that the job has failed, but not why: waits for
  /// who knows better, and throws that. Without any such rank, this one has failed.
  [[noreturn]] void throw_cause(const std::string& otherwise);
  /// This rank begins, or has finished, a call of any Collective. PeerError if the job has
  /// failed, or a rank has left without this one.
  void begin_collective();
  void finish_collective();
  void fail(const PeerError& fault) override { fail(fault.culprit, fault.what(), fault.loss); }
  void fail(int culprit, std::string reason, Loss loss = Loss::kFault) {
    fail({culprit, std::move(reason), rank(), loss});
  }
  /// Leaves the job, in good order if it has not failed. Nothing is sent or received afterwards.
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
    Clock::time_point silent_since = Clock::time_point::max();  ///< noted start of silence
    int last_slot = kRingSlot;
    // Guarded by Session::mutex_.
    bool greeted = false;           ///< its hello is here
    bool left = false;              ///< its end is here
    std::uint64_t collectives = 0;  ///< that it had finished when it left
    bool receipt = false;           ///< its abort is here, or its connection is over
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
  /// Ends the job if this rank is in a collective that the peer left before.
  void require_collectives(const Peer& peer);
  /// Null if this rank has prepared and destroyed the exchange, and has heard that all others began
  /// its last iteration. Two kinds of records may still come after that, because they only say what
  /// a peer could receive: its posted receives, and its manifest. If the two ranks send each other
  /// nothing, this rank may have destroyed the exchange before the peer has prepared it.
  std::shared_ptr<ExchangeState> exchange(std::uint32_t id);
  /// The same, for what `sender` only says of an iteration that this rank has to take part in:
  /// PeerError, with this rank as the culprit.
  std::shared_ptr<ExchangeState> exchange(std::uint32_t id, int sender);

  void guard();
  void look_after(Peer& peer, Clock::time_point now);
  /// Error of the rank that has been silent for longest, if that is longer than `limit`.
  std::optional<PeerError> silence(std::chrono::nanoseconds limit, Clock::time_point now) const;
  /// Tells JobOptions::notice which ranks have become silent, and which are back.
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
  const std::chrono::nanoseconds silence_;  ///< of a peer that means that it is dead
  const std::chrono::nanoseconds noted_;    ///< silence that is worth a notice
  const std::chrono::nanoseconds beat_;     ///< between two records to a peer, at most
  const std::chrono::nanoseconds grace_;    ///< to hear of a failure
  std::unique_ptr<Wire> wire_;
  std::vector<std::unique_ptr<Peer>> peers_;  ///< by rank; none for this one
  std::thread watchdog_;

  mutable std::mutex mutex_;
  std::condition_variable changed_;
  std::optional<Failure> failure_;
  bool greeted_all_ = false;  ///< every peer was sent this rank's hello, and may be sent an abort
  bool stopping_ = false;     ///< the watchdog is to return
  bool closed_ = false;       ///< the wire is
  bool left_ = false;
  std::uint32_t next_exchange_ = 0;
  std::map<std::uint32_t, std::shared_ptr<ExchangeState>> exchanges_;
  Gathers gathers_;
  std::vector<std::weak_ptr<WireCollective>> collectives_;
  std::uint64_t collectives_begun_ = 0;  ///< calls of all Collectives
  std::uint64_t collectives_finished_ = 0;
};

/// Connects, and wraps the session up as an endpoint.
std::unique_ptr<Endpoint> connect_over(const JobOptions& options, std::unique_ptr<Wire> wire);

}  // namespace hipress::transport
