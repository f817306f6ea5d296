// Functions of Session that detect failures, report them to all ranks, and choose the culprit.

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "transport/session.hpp"

namespace hipress::transport {
namespace {

/// Maximum length of an abort's reason, which must fit into a ring's reserve.
constexpr std::size_t kReasonBytes = 1024;

using std::chrono::nanoseconds;

double to_s(nanoseconds duration) { return std::chrono::duration<double>(duration).count(); }

}  // namespace

void Session::throw_cause(const std::string& otherwise) {
  {
    std::unique_lock lock(mutex_);
    // A rank that knows the cause may report it only at the end of its own wait in the collective.
    changed_.wait_for(lock, timeout_ / 2 + grace_, [this] { return failure_ || closed_; });
  }
  if (const auto silent = silence()) fail(*silent);
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
      // If this process itself was stopped or starved, it has received nothing meanwhile: restart
      // every peer's silence, so that the receivers can catch up.
      if (now > next_beat + noted_) for_peers([now](Peer& peer) { peer.heard = now; });
      for_peers([&](Peer& peer) { look_after(peer, now); });
      if (const auto dead = silence(silence_, now)) fail(*dead);
      note_silence(now);
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
  // Do not fail at once: if both directions are broken, this peer's receiver thread soon reports a
  // better reason (the peer closed the connection).
  if (peer.out.broken()) peer.broken_since = std::min(peer.broken_since, now);
  if (peer.broken_since != Clock::time_point::max() && now - peer.broken_since > grace_) {
    fail(peer.rank, fmt::format("rank {} does not take data any more", peer.rank));
  }
}

std::optional<PeerError> Session::silence() const {
  // At least eight heartbeats are due within a timeout, so two are missing after a quarter of it.
  return silence(timeout_ / 4, Clock::now());
}

std::optional<PeerError> Session::silence(nanoseconds limit, Clock::time_point now) const {
  const Peer* longest = nullptr;
  bool all = size() > 2;
  {
    const std::lock_guard lock(mutex_);
    for_peers([&](const Peer& peer) {
      if (peer.left) return;
      all = all && now - peer.heard.load() > limit / 2;
      if (longest == nullptr || peer.heard.load() < longest->heard.load()) longest = &peer;
    });
  }
  if (longest == nullptr || now - longest->heard.load() <= limit) return std::nullopt;
  // Report silence_ itself if that is the limit; for a shorter limit, the measured silence.
  const double silent_s = to_s(limit == silence_ ? limit : now - longest->heard.load());
  if (all) {
    return PeerError(rank(), fmt::format("rank {} has heard of no other rank for {:.3g} s: its "
                                         "network is down, or all of theirs are",
                                         rank(), silent_s));
  }
  return PeerError(longest->rank,
                   fmt::format("rank {} was silent for {:.3g} s: its machine or network is down, "
                               "or its process was stopped",
                               longest->rank, silent_s));
}

void Session::note_silence(Clock::time_point now) {
  if (!options_.notice) return;
  for_peers([&](Peer& peer) {
    const bool was_noted = peer.silent_since != Clock::time_point::max();
    const bool is_silent = now - peer.heard.load() > noted_;
    if (is_silent == was_noted) return;
    {
      const std::lock_guard lock(mutex_);
      if (peer.left || failure_) return;
    }
    if (is_silent) {
      peer.silent_since = peer.heard;
      options_.notice(fmt::format(
          "rank {} has been silent for {:.3g} s: its machine or network is down, or its process "
          "was stopped; after {:.3g} s of silence the job ends",
          peer.rank, to_s(now - peer.silent_since), to_s(silence_)));
    } else {
      options_.notice(fmt::format("rank {} is back, after {:.3g} s of silence", peer.rank,
                                  to_s(peer.heard.load() - peer.silent_since)));
      peer.silent_since = Clock::time_point::max();
    }
  });
}

void Session::end_job(std::unique_lock<std::mutex>& lock) {
  const auto all = exchanges_;
  const Failure failure = *failure_;
  lock.unlock();
  for (const auto& [id, state] : all) state->report_failure(failure);
  lock.lock();
  changed_.wait_for(lock, silence_, [this] { return greeted_all_; });  // all peers have been told
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
