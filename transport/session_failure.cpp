// How a job ends for a session: who notices, who is told, and who is believed.

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "transport/session.hpp"

namespace hipress::transport {
namespace {

/// What fits into an abort, which has to find space in a ring's reserve.
constexpr std::size_t kReasonBytes = 1024;

}  // namespace

void Session::throw_cause(const std::string& otherwise) {
  {
    std::unique_lock lock(mutex_);
    changed_.wait_for(lock, silence_ + grace_, [this] { return failure_ || closed_; });
  }
  fail(rank(), otherwise);
  const std::lock_guard lock(mutex_);
  throw_failure();
  throw PeerError(rank(), otherwise);
}

void Session::throw_failure() const {
  if (!failure_) return;
  const std::string reported =
      failure_->reporter == rank() ? "" : fmt::format(" (reported by rank {})", failure_->reporter);
  throw PeerError(failure_->culprit, failure_->reason + reported, {}, failure_->loss);
}

void Session::lost(Peer& peer) {
  {
    const std::lock_guard lock(mutex_);
    peer.receipt = true;
    changed_.notify_all();
    if (peer.left || left_) return;
  }
  fail(peer.rank, fmt::format("rank {} closed the connection", peer.rank));
}

void Session::guard() {
  std::unique_lock lock(mutex_);
  Clock::time_point next_beat = Clock::now() + beat_;
  while (!stopping_) {
    const auto due = [this] { return stopping_ || (failure_ && !closed_); };
    if (closed_) {
      changed_.wait(lock, due);
    } else if (changed_.wait_until(lock, next_beat, due)) {
      if (failure_) end_job(lock);
    } else {
      lock.unlock();
      const auto now = Clock::now();
      // If this process itself was stopped or starved, its receivers need a chance to catch up
      // before silence proves anything.
      if (now > next_beat + silence_ / 2) for_peers([now](Peer& peer) { peer.heard = now; });
      for_peers([&](Peer& peer) { look_after(peer, now); });
      next_beat = now + beat_;
      lock.lock();
    }
  }
}

void Session::look_after(Peer& peer, Clock::time_point now) {
  {
    const std::lock_guard lock(mutex_);
    if (peer.left) return;
  }
  peer.out.post({.type = RecordType::kBeat}, {}, Outbound::Space::kKeepSomeForAborts);
  if (now - peer.heard.load() > silence_) {
    const double silence_s = std::chrono::duration<double>(silence_).count();
    return fail(peer.rank, fmt::format("rank {} was silent for {} s", peer.rank, silence_s));
  }
  // Its receiver knows better why, a little later; unless only this direction is broken.
  if (peer.out.broken()) peer.broken_since = std::min(peer.broken_since, now);
  if (peer.broken_since != Clock::time_point::max() && now - peer.broken_since > grace_) {
    fail(peer.rank, fmt::format("rank {} does not take data any more", peer.rank));
  }
}

void Session::end_job(std::unique_lock<std::mutex>& lock) {
  const auto all = exchanges_;
  const Failure failure = *failure_;
  lock.unlock();
  for (const auto& [id, state] : all) state->report_failure(failure);
  lock.lock();
  changed_.wait_for(lock, silence_, [this] { return greeted_all_; });  // all are told
  changed_.wait_for(lock, grace_, [this] {
    return std::ranges::all_of(peers_, [](const auto& peer) { return !peer || peer->receipt; });
  });
  lock.unlock();
  close();
  lock.lock();
}

void Session::fail(Failure failure) {
  std::map<std::uint32_t, std::shared_ptr<ExchangeState>> all;
  {
    const std::lock_guard lock(mutex_);
    if (failure_ || closed_) return;
    failure.reason.resize(std::min(failure.reason.size(), kReasonBytes));
    failure_ = failure;
    all = exchanges_;
  }
  for_peers([this](Peer& peer) { tell_failure(peer); });
  for (const auto& [id, state] : all) state->wake(failure);
  changed_.notify_all();
}

void Session::tell_failure(Peer& peer) {
  std::optional<Failure> failure;
  {
    const std::lock_guard lock(mutex_);
    failure = failure_;
  }
  if (!failure) return;
  const Record abort{.type = RecordType::kAbort,
                     .iteration = static_cast<std::uint64_t>(failure->loss),
                     .tag = static_cast<std::uint32_t>(failure->culprit)};
  peer.out.post(abort, std::as_bytes(std::span(failure->reason)), Outbound::Space::kAny);
}

}  // namespace hipress::transport
