#include "transport/session.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <new>
#include <system_error>
#include <utility>

#include "io/thread_variables.hpp"
#include "transport/rendezvous.hpp"

namespace hipress::transport {
namespace {

using std::chrono::nanoseconds;

nanoseconds seconds(double s) {
  return std::chrono::duration_cast<nanoseconds>(std::chrono::duration<double>(s));
}

}  // namespace

Session::Session(const JobOptions& options, std::unique_ptr<Wire> wire)
    : options_(options),
      timeout_(seconds(options.timeout_s)),
      silence_(seconds(options.silence_s)),
      noted_(std::min(silence_ / 2, seconds(kNotedSilence_s))),
      // Several heartbeats must fit into both limits; more than one a second is of no use.
      beat_(std::clamp(std::min(timeout_, silence_) / 8, nanoseconds(std::chrono::milliseconds(5)),
                       nanoseconds(std::chrono::seconds(1)))),
      // Limited, as an abort queues behind pending data and may never reach a stalled peer.
      grace_(std::min(timeout_ / 4, nanoseconds(std::chrono::seconds(1)))),
      wire_(std::move(wire)),
      peers_(static_cast<std::size_t>(options.size)),
      gathers_(static_cast<std::size_t>(options.size)) {
  for (int rank = 0; rank < size(); ++rank) {
    if (rank == options.rank) continue;
    peers_[static_cast<std::size_t>(rank)] =
        std::make_unique<Peer>(*wire_, rank, job_hash(options));
  }
}

Session::~Session() { leave(); }

void Session::connect() {
  wire_->connect();
  if (size() == 1) return;
  for_peers([](Peer& peer) { peer.heard = Clock::now(); });
  for_peers(
      [this](Peer& peer) { peer.receiver = io::start_thread([this, &peer] { receive(peer); }); });
  watchdog_ = io::start_thread([this] { guard(); });
  for_peers([this](Peer& peer) {
    try {
      peer.out.hello(rank());
    } catch (const WireClosed&) {
      lost(peer);
    }
    tell_failure(peer);  // sends a failure that happened before this connection
  });
  {
    const std::lock_guard lock(mutex_);
    greeted_all_ = true;
    changed_.notify_all();
  }
  const auto deadline = Clock::now() + timeout_;
  for_peers([&](Peer& peer) {
    std::unique_lock lock(mutex_);
    if (!changed_.wait_until(lock, deadline, [&] { return failure_ || peer.greeted; })) {
      lock.unlock();
      fail(peer.rank, fmt::format("rank {} connected, but said nothing for {} s", peer.rank,
                                  options_.timeout_s));
      lock.lock();
    }
    throw_failure();
  });
  wire_->connected();
}

std::unique_ptr<Exchange> Session::prepare(const std::vector<Outgoing>& outgoing,
                                           const std::vector<Incoming>& incoming, Events events) {
  std::shared_ptr<ExchangeState> state;
  std::vector<int> left;
  {
    const std::lock_guard lock(mutex_);
    throw_failure();
    for_peers([&](const Peer& peer) {
      if (peer.left) left.push_back(peer.rank);
    });
    const std::uint32_t id = next_exchange_++;
    auto& place = exchanges_[id];
    if (!place) place = std::make_shared<ExchangeState>(*this, id);
    state = place;
  }
  auto handle = std::make_unique<SessionExchange>(shared_from_this(), state);
  try {
    state->define(outgoing, incoming, std::move(events));
  } catch (const PeerError& error) {
    fail(error);  // the first begin() reports it
  }
  for (const int peer : left) state->on_left(peer);
  return handle;
}

std::vector<std::string> Session::all_gather(const std::string& mine) {
  std::uint64_t number = 0;
  {
    const std::lock_guard lock(mutex_);
    throw_failure();
    number = gathers_.next();
  }
  const auto text = std::make_shared<const std::string>(mine);
  for_peers([&](Peer& peer) {
    peer.out.enqueue({.head = {.type = RecordType::kGather, .iteration = number},
                      .content = std::as_bytes(std::span(*text)),
                      .keep_alive = text});
    peer.out.drain();
  });
  std::unique_lock lock(mutex_);
  gathers_.add(number, rank(), mine);
  for (int missing = gathers_.missing(number); missing < size();
       missing = gathers_.missing(number)) {
    const Peer& peer = *peers_[static_cast<std::size_t>(missing)];
    throw_failure();
    const auto deadline = gathers_.progress(number) + timeout_;
    if (peer.left || Clock::now() >= deadline) {
      lock.unlock();
      if (peer.left) {
        fail(peer.rank, fmt::format("rank {} left before an all_gather", peer.rank), Loss::kLeft);
      } else if (const auto silent = silence()) {
        fail(*silent);
      } else {
        fail(peer.rank, fmt::format("rank {} did not take part in an all_gather for {} s",
                                    peer.rank, options_.timeout_s));
      }
      lock.lock();
    } else {
      changed_.wait_until(lock, deadline);
    }
  }
  return gathers_.take(number);
}

namespace {

/// Collective that translates the wire's errors into PeerError with a culprit.
class SessionCollective : public Collective, private ShardCollectives {
 public:
  SessionCollective(std::shared_ptr<Session> session, std::shared_ptr<WireCollective> collective)
      : session_(std::move(session)), collective_(std::move(collective)) {}

  void all_reduce(std::span<std::byte> values, const Addition& addition) override {
    run("reduce", [&] { collective_->all_reduce(values, addition); });
  }
  ShardCollectives* shards() override { return collective_->shards() == nullptr ? nullptr : this; }
  void interrupt() noexcept override { collective_->close(); }

 private:
  void all_gather(std::span<const std::byte> shard, std::span<std::byte> all) override {
    require_shards(shard.size(), all.size());
    run("gather", [&] { collective_->shards()->all_gather(shard, all); });
  }
  void reduce_scatter(std::span<std::byte> all, std::span<std::byte> shard,
                      const Addition& addition) override {
    require_shards(shard.size(), all.size());
    run("reduce", [&] { collective_->shards()->reduce_scatter(all, shard, addition); });
  }
  void all_to_all(std::span<const std::byte> from, std::span<std::byte> into) override {
    require_shards(from.size() / ranks(), into.size());
    require_shards(into.size() / ranks(), from.size());
    run("exchange shards", [&] { collective_->shards()->all_to_all(from, into); });
  }

  std::size_t ranks() const { return static_cast<std::size_t>(session_->size()); }
  void require_shards(std::size_t shard_bytes, std::size_t all_bytes) const {
    if (shard_bytes * ranks() == all_bytes) return;
    throw std::invalid_argument(
        fmt::format("{} shards of {} bytes are not {} bytes", ranks(), shard_bytes, all_bytes));
  }
  /// Runs a collective call; `what` is its verb in errors.
  template <class Call>
  void run(const char* what, const Call& call) {
    session_->begin_collective();
    try {
      call();
    } catch (const WireClosed& closed) {
      session_->throw_cause(
          fmt::format("rank {} cannot {}: {}", session_->rank(), what, closed.what()));
    }
    session_->finish_collective();
  }

  std::shared_ptr<Session> session_;
  std::shared_ptr<WireCollective> collective_;
};

}  // namespace

std::unique_ptr<Collective> Session::collective() {
  std::shared_ptr<WireCollective> made;
  try {
    made = wire_->collective([this](const std::string& mine) { return all_gather(mine); });
  } catch (const WireClosed& closed) {
    throw_cause(fmt::format("rank {} cannot connect for collectives: {}", rank(), closed.what()));
  } catch (const PeerError& error) {
    fail(error);
    const std::lock_guard lock(mutex_);
    throw_failure();  // the failure may be known already
    throw;
  }
  {
    const std::lock_guard lock(mutex_);
    throw_failure();
    std::erase_if(collectives_, [](const auto& other) { return other.expired(); });
    collectives_.push_back(made);
  }
  return std::make_unique<SessionCollective>(shared_from_this(), std::move(made));
}

void Session::begin_collective() {
  {
    const std::lock_guard lock(mutex_);
    throw_failure();
    ++collectives_begun_;
  }
  for_peers([this](const Peer& peer) { require_collectives(peer); });
  const std::lock_guard lock(mutex_);
  throw_failure();
}

void Session::finish_collective() {
  const std::lock_guard lock(mutex_);
  ++collectives_finished_;
}

void Session::require_collectives(const Peer& peer) {
  {
    // A collective needs every rank, so a rank that has left has finished at most the calls that
    // this rank has begun. If it has finished all of them, this rank already has all the data that
    // it needs from that rank.
    const std::lock_guard lock(mutex_);
    if (!peer.left || peer.collectives >= collectives_begun_) return;
  }
  fail(peer.rank, fmt::format("rank {} left the job before a collective", peer.rank), Loss::kLeft);
}

void Session::forget(std::uint32_t exchange) {
  const std::lock_guard lock(mutex_);
  exchanges_.erase(exchange);
}

void Session::wait_closed() {
  std::unique_lock lock(mutex_);
  changed_.wait(lock, [this] { return closed_ || size() == 1; });
}

void Session::leave() noexcept {
  std::map<std::uint32_t, std::shared_ptr<ExchangeState>> all;
  {
    const std::lock_guard lock(mutex_);
    if (std::exchange(left_, true)) return;
    all = exchanges_;
  }
  for (const auto& [id, state] : all) {
    if (state->active())
      fail(rank(), fmt::format("rank {} left in the middle of an iteration", rank()), Loss::kLeft);
  }
  if (watchdog_.joinable()) {
    say_goodbye();
    {
      std::unique_lock lock(mutex_);
      changed_.wait(lock, [this] { return !failure_ || closed_; });
      stopping_ = true;
      changed_.notify_all();
    }
    watchdog_.join();
  }
  close();
  for_peers([](Peer& peer) {
    if (peer.receiver.joinable()) peer.receiver.join();
  });
  for (const auto& [id, state] : all) {
    state->wake({rank(), fmt::format("rank {} has left the job", rank()), rank(), Loss::kLeft});
  }
}

void Session::say_goodbye() {
  std::uint64_t collectives = 0;
  {
    const std::lock_guard lock(mutex_);
    if (failure_) return;
    collectives = collectives_finished_;
  }
  for_peers([&](Peer& peer) {
    peer.out.enqueue(
        {.head = {.type = RecordType::kEnd, .iteration = collectives}, .sent = [this, &peer](int) {
           const std::lock_guard lock(mutex_);
           peer.end_sent = true;
           changed_.notify_all();
         }});
    peer.out.drain();
  });
  for_peers([this](Peer& peer) {
    std::unique_lock lock(mutex_);
    changed_.wait(lock, [&] { return failure_ || peer.end_sent || peer.left || peer.receipt; });
    lock.unlock();
    peer.out.flush();
  });
}

void Session::close() {
  std::vector<std::weak_ptr<WireCollective>> collectives;
  {
    const std::lock_guard lock(mutex_);
    collectives = collectives_;
  }
  for (const auto& weak : collectives) {
    if (const auto collective = weak.lock()) collective->close();
  }
  for_peers([](Peer& peer) { peer.out.stop(); });
  wire_->close();
  const std::lock_guard lock(mutex_);
  closed_ = true;
  changed_.notify_all();
}

// ---------------------------------------------------------------------------------- receivers

void Session::receive(Peer& peer) {
  for (;;) {
    try {
      const auto [record, content] = peer.in.next();
      peer.heard = Clock::now();
      peer.out.credit(record.consumed);
      handle(peer, record, content);
      peer.out.grant(peer.in.release());
    } catch (const WireClosed&) {
      return lost(peer);
    } catch (const PeerError& error) {
      fail(error);
      peer.in.release();  // the peer's receipt for the abort may follow
    } catch (const std::bad_alloc&) {
      return fail(rank(), fmt::format("rank {} has run out of memory", rank()));
    } catch (const std::system_error& error) {
      return fail(rank(), fmt::format("rank {} cannot go on: {}", rank(), error.what()));
    } catch (const std::exception& error) {
      return fail(peer.rank, fmt::format("rank {} sent {}", peer.rank, error.what()));
    }
  }
}

void Session::handle(Peer& peer, const Record& record, std::span<const std::byte> content) {
  switch (record.type) {
    case RecordType::kHello: {
      if (record.tag != static_cast<std::uint32_t>(peer.rank)) break;
      const std::lock_guard lock(mutex_);
      peer.greeted = true;
      changed_.notify_all();
      return;
    }
    case RecordType::kManifest:
      if (const auto state = exchange(record.exchange)) {
        state->on_manifest(peer.rank, record, content);
      }
      return;
    case RecordType::kPosted:
      if (const auto state = exchange(record.exchange)) state->on_posted(peer.rank, record);
      return;
    case RecordType::kBegin:
      return exchange(record.exchange, peer.rank)->on_begin(peer.rank, record);
    case RecordType::kMessage:
      return exchange(record.exchange, peer.rank)->on_segment(peer.rank, record, content);
    case RecordType::kGather: {
      const std::lock_guard lock(mutex_);
      gathers_.add(peer.rank, record, content);
      changed_.notify_all();
      return;
    }
    case RecordType::kBeat:
      return;
    case RecordType::kAbort: {
      if (record.tag >= static_cast<std::uint32_t>(size())) break;
      {
        const std::lock_guard lock(mutex_);
        peer.receipt = true;
        changed_.notify_all();
      }
      const bool has_left = record.iteration == static_cast<std::uint64_t>(Loss::kLeft);
      return fail({static_cast<int>(record.tag), text_of(content), peer.rank,
                   has_left ? Loss::kLeft : Loss::kFault});
    }
    case RecordType::kEnd:
      return handle_end(peer, record.iteration);
  }
  throw PeerError(peer.rank, fmt::format("rank {} sent a record without meaning", peer.rank));
}

void Session::handle_end(Peer& peer, std::uint64_t collectives) {
  std::vector<std::shared_ptr<ExchangeState>> all;
  {
    const std::lock_guard lock(mutex_);
    peer.left = true;
    peer.receipt = true;
    peer.collectives = collectives;
    changed_.notify_all();
    for (const auto& [id, state] : exchanges_) all.push_back(state);
  }
  for (const auto& state : all) state->on_left(peer.rank);
  require_collectives(peer);
}

std::shared_ptr<ExchangeState> Session::exchange(std::uint32_t id) {
  const std::lock_guard lock(mutex_);
  if (id < next_exchange_ && !exchanges_.contains(id)) return nullptr;
  auto& place = exchanges_[id];
  if (!place) place = std::make_shared<ExchangeState>(*this, id);
  return place;
}

std::shared_ptr<ExchangeState> Session::exchange(std::uint32_t id, int sender) {
  auto state = exchange(id);
  if (state) return state;
  throw left_behind(sender);
}

PeerError Session::left_behind(int peer) const {
  return {rank(),
          fmt::format("rank {} left an exchange that rank {} goes on with", rank(), peer),
          {},
          Loss::kLeft};
}

// ----------------------------------------------------------------------------------- endpoint

namespace {

class SessionEndpoint : public Endpoint {
 public:
  explicit SessionEndpoint(std::shared_ptr<Session> session) : session_(std::move(session)) {}
  ~SessionEndpoint() override { session_->leave(); }
  SessionEndpoint(const SessionEndpoint&) = delete;
  SessionEndpoint& operator=(const SessionEndpoint&) = delete;

  int rank() const override { return session_->rank(); }
  int size() const override { return session_->size(); }
  std::unique_ptr<Exchange> prepare(std::vector<Outgoing> outgoing, std::vector<Incoming> incoming,
                                    Events events) override {
    return session_->prepare(outgoing, incoming, std::move(events));
  }
  std::unique_ptr<Collective> collective() override { return session_->collective(); }
  std::vector<std::string> all_gather(const std::string& mine) override {
    return session_->all_gather(mine);
  }
  void abort(int culprit, const std::string& reason) noexcept override {
    session_->fail(culprit, reason);
  }
  std::optional<PeerError> silence() const override { return session_->silence(); }

 private:
  std::shared_ptr<Session> session_;
};

}  // namespace

std::unique_ptr<Endpoint> connect_over(const JobOptions& options, std::unique_ptr<Wire> wire) {
  auto session = std::make_shared<Session>(options, std::move(wire));
  try {
    session->connect();
  } catch (const PeerError& error) {
    throw PeerError(error.culprit,
                    fmt::format("{}; rank {} was connecting", error.what(), options.rank),
                    error.awaited, error.loss);
  }
  return std::make_unique<SessionEndpoint>(std::move(session));
}

}  // namespace hipress::transport
