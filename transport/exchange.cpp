#include "transport/exchange.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <set>
#include <stdexcept>
#include <utility>

namespace hipress::transport {
namespace {

/// Maximum number of tags that an error names.
constexpr std::size_t kTagsNamed = 1;

/// Throws std::invalid_argument if a peer is this rank or does not exist, or if two messages have
/// the same peer and tag.
template <typename Message>
void check_messages(const std::vector<Message>& messages, int rank, int size) {
  std::set<std::pair<int, std::uint32_t>> names;
  for (const Message& message : messages) {
    if (message.peer < 0 || message.peer >= size || message.peer == rank) {
      throw std::invalid_argument(fmt::format("a message between rank {} and rank {} of {} ranks",
                                              rank, message.peer, size));
    }
    if (!names.insert({message.peer, message.tag}).second) {
      throw std::invalid_argument(fmt::format(
          "two messages with tag {} between rank {} and rank {}", message.tag, rank, message.peer));
    }
  }
}

}  // namespace

ExchangeState::ExchangeState(ExchangeHost& host, std::uint32_t id)
    : host_(host), id_(id), others_(static_cast<std::size_t>(host.size())) {}

// -------------------------------------------------------------------------------------- owner

void ExchangeState::define(const std::vector<Outgoing>& outgoing,
                           const std::vector<Incoming>& incoming, Events events) {
  check_messages(outgoing, host_.rank(), host_.size());
  check_messages(incoming, host_.rank(), host_.size());
  {
    const std::unique_lock delivering(delivery_);
    std::unique_lock lock(mutex_);
    events_ = std::move(events);
    owned_ = true;
    for (const Outgoing& message : outgoing) {
      other(message.peer).outgoing.push_back(departures_.size());
      departures_.push_back({.message = message, .writer = nullptr});
    }
    for (const Incoming& message : incoming) {
      Arrival& arrival = other(message.peer).incoming[message.tag];
      arrival.destination = message.destination;
      other(message.peer).tags.push_back(message.tag);
    }
    for (Other& each : others_) std::ranges::sort(each.tags);
    lock.unlock();
    if (failed()) deliver_failure();
  }
  for (int peer = 0; peer < host_.size(); ++peer) {
    if (peer != host_.rank()) publish_manifest(peer);
  }
  const std::lock_guard lock(mutex_);
  defined_ = true;  // from now on, receivers call reconcile()
  for (int peer = 0; peer < host_.size(); ++peer) {
    if (other(peer).manifest_complete) reconcile(peer);
  }
}

void ExchangeState::publish_manifest(int peer) {
  const auto entries = std::make_shared<std::vector<ManifestEntry>>();
  for (const std::uint32_t tag : other(peer).tags) {
    Arrival& arrival = other(peer).incoming.at(tag);
    ManifestEntry entry{.tag = tag, .capacity = arrival.destination.size()};
    if (entry.capacity > kInlineBytes) {
      entry.slot = host_.new_slot(peer);
      arrival.window = host_.wire().expose(peer, entry.slot, arrival.destination);
    }
    entries->push_back(entry);
  }
  host_.to(peer).enqueue({.head = {.type = RecordType::kManifest, .exchange = id_},
                          .content = std::as_bytes(std::span(*entries)),
                          .keep_alive = entries});
  host_.to(peer).drain();
}

void ExchangeState::begin(std::uint64_t iteration) {
  try {
    {
      const std::unique_lock delivering(delivery_);  // early messages are reported first
      start(iteration);
      send_to_all(RecordType::kBegin, iteration, begun_);  // precedes the sends that early messages
                                                           // trigger
      deliver_early();
    }
    const std::lock_guard lock(mutex_);
    for (int peer = 0; peer < host_.size(); ++peer) check_not_left(peer);
  } catch (const PeerError& fault) {
    host_.fail(fault);
    throw;
  }
}

void ExchangeState::start(std::uint64_t iteration) {
  const std::lock_guard lock(mutex_);
  if (failure_) throw error();
  if (active_) throw std::logic_error("an iteration begins before the last one is finished");
  active_ = true;
  iteration_ = iteration;
  progress_ = Clock::now();
  ++begun_;
  for (Departure& departure : departures_) departure.sent = false;
  if (!std::exchange(posted_, false)) reset_arrivals();
  for (int peer = 0; peer < host_.size(); ++peer) {
    other(peer).given = 0;
    if (other(peer).begun == begun_) check_same_iteration(peer, other(peer).begun_iteration);
  }
}

void ExchangeState::deliver_early() {
  for (const Early& early : early_) {
    if (!over_ && events_.arrived) events_.arrived(early.tag, early.bytes, early.at);
  }
  early_.clear();
}

void ExchangeState::reset_arrivals() {
  awaited_ = 0;
  for (Other& each : others_) {
    for (auto& [tag, arrival] : each.incoming) {
      arrival.received = 0;
      arrival.done = false;
    }
    each.awaited = each.incoming.size();
    awaited_ += each.awaited;
  }
}

void ExchangeState::send_to_all(RecordType type, std::uint64_t iteration, std::uint64_t count) {
  for (int peer = 0; peer < host_.size(); ++peer) {
    if (other(peer).incoming.empty() && other(peer).outgoing.empty()) continue;
    host_.to(peer).enqueue({.head = {.type = type,
                                     .iteration = iteration,
                                     .exchange = id_,
                                     .tag = static_cast<std::uint32_t>(count)}});
    host_.to(peer).drain();
  }
}

void ExchangeState::post() {
  if (!host_.wire().takes_windows_back()) return;
  {
    const std::lock_guard lock(mutex_);
    if (failure_) return;
    if (active_ || posted_) {
      throw std::logic_error("receives are posted in an iteration, or twice before one");
    }
    posted_ = true;
    reset_arrivals();
  }
  send_to_all(RecordType::kPosted, 0, begun_ + 1);
}

void ExchangeState::send(std::size_t index, std::int64_t bytes) {
  const Outgoing& message = departures_.at(index).message;
  if (bytes < 0 || static_cast<std::size_t>(bytes) > message.source.size()) {
    throw std::invalid_argument(
        fmt::format("{} bytes of message {}, which has {}", bytes, index, message.source.size()));
  }
  try {
    const std::lock_guard lock(mutex_);
    if (failure_) return;
    if (!active_) throw std::logic_error("a message is sent outside of an iteration");
    if (std::exchange(departures_[index].sent, true)) {
      throw std::logic_error(fmt::format("message {} is sent twice in an iteration", index));
    }
    ++unsent_;
    ++other(message.peer).unsent;
    ++other(message.peer).given;
    check_not_left(message.peer);
    if (!can_receive(message.peer)) {
      return other(message.peer).held.push_back({index, bytes});
    }
    enqueue(index, bytes);
  } catch (const PeerError& fault) {
    return host_.fail(fault);
  }
  host_.to(message.peer).drain();
}

void ExchangeState::finish() {
  std::unique_lock lock(mutex_);
  const Clock::time_point called = Clock::now();
  const auto timeout =
      std::chrono::duration_cast<Clock::duration>(std::chrono::duration<double>(host_.timeout_s()));
  while (!failure_ && (awaited_ > 0 || unsent_ > 0)) {
    const Clock::time_point deadline = std::max(called, progress_) + timeout;
    if (Clock::now() < deadline) {
      changed_.wait_until(lock, deadline);
    } else {
      const PeerError late = stall();
      lock.unlock();
      host_.fail(host_.silence().value_or(late));
      lock.lock();
    }
  }
  if (failure_) throw error();
  lock.unlock();
  try {
    for (Departure& departure : departures_) {
      for (; departure.puts > 0; --departure.puts) departure.writer->wait();
    }
    lock.lock();
  } catch (const WireClosed&) {
    // The connection ended before the last bytes left; the receiver is about to report why.
    lock.lock();
    changed_.wait(lock, [this] { return failure_.has_value(); });
    throw error();
  }
  active_ = false;
}

void ExchangeState::retire() noexcept {
  std::unique_lock lock(mutex_);
  retired_ = true;  // on_begin() now refuses a peer that begins a further iteration
  const std::optional<PeerError> fault = fault_of_leaving();
  const bool nobody_is_late = heard_from_all();
  lock.unlock();
  if (fault) {
    host_.fail(*fault);
    host_.wait_closed();
  }
  if (fault || nobody_is_late) host_.forget(id_);
  const std::unique_lock last_delivery(delivery_);
  const std::lock_guard last(mutex_);
  over_ = true;
  events_ = {};
  for (Departure& departure : departures_) departure.writer.reset();
  for (Other& each : others_) {
    for (auto& [tag, arrival] : each.incoming) arrival.window.reset();
  }
}

bool ExchangeState::heard_from_all() const {
  return std::ranges::all_of(others_, [this](const Other& each) {
    return each.begun >= begun_ || (each.incoming.empty() && each.outgoing.empty());
  });
}

std::optional<PeerError> ExchangeState::fault_of_leaving() const {
  const int rank = host_.rank();
  if (active_ || failure_) {
    return PeerError(rank, fmt::format("rank {} gave up in iteration {}", rank, iteration_));
  }
  for (int peer = 0; posted_ && peer < host_.size(); ++peer) {
    if (others_[static_cast<std::size_t>(peer)].begun > begun_) {
      return host_.left_behind(peer);
    }
  }
  return std::nullopt;
}

// ---------------------------------------------------------------------------------- receivers

void ExchangeState::on_manifest(int peer, const Record& record,
                                std::span<const std::byte> content) {
  const std::lock_guard lock(mutex_);
  if (retired_) return;
  Other& sender = other(peer);
  if (sender.manifest_complete || record.offset != sender.manifest.size()) {
    throw PeerError(peer, fmt::format("rank {} sent a piece of its manifest out of place", peer));
  }
  sender.manifest.insert(sender.manifest.end(), content.begin(), content.end());
  sender.manifest_complete = sender.manifest.size() == record.length;
  if (sender.manifest_complete && defined_) reconcile(peer);
}

/// Matches the peer's expected messages against this rank's outgoing ones; throws PeerError if they
/// differ.
void ExchangeState::reconcile(int peer) {
  Other& receiver = other(peer);
  std::vector<ManifestEntry> entries(receiver.manifest.size() / sizeof(ManifestEntry));
  if (!entries.empty()) {
    std::memcpy(entries.data(), receiver.manifest.data(), entries.size() * sizeof(ManifestEntry));
  }
  receiver.manifest = {};
  std::unordered_map<std::uint32_t, ManifestEntry> expected;
  for (const ManifestEntry& entry : entries) expected[entry.tag] = entry;
  const auto differs = [&](const char* what, std::uint32_t tag) {
    return PeerError(
        host_.rank(),
        fmt::format("rank {} {} tag {}, rank {} {}: their plans differ", peer, what, tag,
                    host_.rank(),
                    what == std::string_view("expects") ? "does not send it" : "sends it"));
  };
  for (const std::size_t index : receiver.outgoing) {
    Departure& departure = departures_[index];
    const auto found = expected.find(departure.message.tag);
    if (found == expected.end()) throw differs("does not expect", departure.message.tag);
    departure.capacity = found->second.capacity;
    if (found->second.slot > kRingSlot && departure.message.source.size() > kInlineBytes) {
      departure.writer = host_.wire().open(peer, found->second.slot, departure.message.source);
    }
    expected.erase(found);
  }
  if (!expected.empty()) throw differs("expects", expected.begin()->first);
}

void ExchangeState::on_begin(int peer, const Record& record) {
  bool was_last = false;
  {
    const std::lock_guard lock(mutex_);
    if (retired_ && record.tag > begun_) throw host_.left_behind(peer);
    other(peer).begun = record.tag;
    other(peer).begun_iteration = record.iteration;
    was_last = retired_ && heard_from_all();
    if (!was_last) {
      if (!active_ || failure_ || !can_receive(peer)) return;
      release_held(peer);
    }
  }
  if (was_last) return host_.forget(id_);
  host_.to(peer).drain();
}

void ExchangeState::on_posted(int peer, const Record& record) {
  {
    const std::lock_guard lock(mutex_);
    other(peer).posted = record.tag;
    if (!active_ || failure_ || !can_receive(peer)) return;
    release_held(peer);
  }
  host_.to(peer).drain();
}

bool ExchangeState::can_receive(int peer) {
  const Other& receiver = other(peer);
  if (receiver.begun != begun_) return receiver.posted == begun_;
  check_same_iteration(peer, receiver.begun_iteration);
  return true;
}

void ExchangeState::check_same_iteration(int peer, std::uint64_t theirs) const {
  if (theirs == iteration_) return;
  throw PeerError(std::max(peer, host_.rank()),
                  fmt::format("rank {} is in iteration {}, rank {} in iteration {}", peer, theirs,
                              host_.rank(), iteration_));
}

void ExchangeState::release_held(int peer) {
  for (const Held& held : std::exchange(other(peer).held, {})) enqueue(held.index, held.bytes);
}

void ExchangeState::enqueue(std::size_t index, std::int64_t bytes) {
  Departure& departure = departures_[index];
  const Outgoing& message = departure.message;
  const auto length = static_cast<std::uint64_t>(bytes);
  if (length > departure.capacity) {
    throw PeerError(
        host_.rank(),
        fmt::format("rank {} has {} bytes for tag {}, of which rank {} takes {} at most",
                    host_.rank(), length, message.tag, message.peer, departure.capacity));
  }
  host_.to(message.peer)
      .enqueue({.head = {.type = RecordType::kMessage,
                         .iteration = iteration_,
                         .exchange = id_,
                         .tag = message.tag},
                .content = message.source.first(length),
                .writer = length > kInlineBytes ? departure.writer.get() : nullptr,
                .keep_alive = shared_from_this(),
                .sent = [this, index](int puts) {
                  const std::lock_guard lock(mutex_);
                  departures_[index].puts = puts;
                  --other(departures_[index].message.peer).unsent;
                  --unsent_;
                  progress_ = Clock::now();
                  changed_.notify_all();
                }});
}

void ExchangeState::on_segment(int peer, const Record& record, std::span<const std::byte> content) {
  const std::shared_lock delivering(delivery_);
  if (over_) return;
  Arrival* const arrival = accept(peer, record);
  if (arrival == nullptr) return;
  const auto segment = arrival->destination.subspan(record.offset, record.segment_bytes);
  if (record.is_inline != 0) {
    if (!content.empty()) std::memcpy(segment.data(), content.data(), content.size());
  } else if (crc32c(segment) != record.segment_crc) {
    throw PeerError(
        peer, fmt::format("rank {} sent tag {} with bytes {} to {} damaged on the way (CRC32C)",
                          peer, record.tag, record.offset, record.offset + record.segment_bytes));
  }
  arrival->received += record.segment_bytes;
  if (arrival->received < record.length) return;
  const auto bytes = static_cast<std::int64_t>(record.length);
  const Clock::time_point now = Clock::now();
  std::unique_lock lock(mutex_);
  if (!active_) {
    early_.push_back({record.tag, bytes, now});
  } else if (events_.arrived) {
    lock.unlock();
    events_.arrived(record.tag, bytes, now);
    lock.lock();
  }
  arrival->done = true;
  --other(peer).awaited;
  --awaited_;
  progress_ = now;
  if (awaited_ == 0) changed_.notify_all();
}

ExchangeState::Arrival* ExchangeState::accept(int peer, const Record& record) {
  const auto fault = [&](const std::string& what) {
    return PeerError(peer, fmt::format("rank {} sent tag {} of iteration {}, {}", peer, record.tag,
                                       record.iteration, what));
  };
  const std::lock_guard lock(mutex_);
  if (failure_) return nullptr;
  if (!active_ && !posted_) throw fault(fmt::format("but rank {} is in none", host_.rank()));
  const std::uint64_t expected = active_ ? iteration_ : other(peer).begun_iteration;
  if (record.iteration != expected) {
    if (other(peer).begun == begun_) check_same_iteration(peer, other(peer).begun_iteration);
    throw fault(
        fmt::format("but rank {} is in iteration {}", active_ ? host_.rank() : peer, expected));
  }
  const auto found = other(peer).incoming.find(record.tag);
  if (found == other(peer).incoming.end()) {
    throw fault(fmt::format("which rank {} does not expect", host_.rank()));
  }
  Arrival& arrival = found->second;
  if (arrival.done) throw fault("twice");
  if (record.length > arrival.destination.size()) {
    throw fault(fmt::format("{} bytes long; {} fit", record.length, arrival.destination.size()));
  }
  if (record.offset != arrival.received) throw fault("with a segment out of place");
  return &arrival;
}

void ExchangeState::on_left(int peer) {
  const std::lock_guard lock(mutex_);
  other(peer).left = true;
  if (active_ && !failure_) check_not_left(peer);
}

void ExchangeState::check_not_left(int peer) {
  const Other& each = other(peer);
  // A rank that left in good order has received everything sent to it, even if that is not yet
  // recorded here. Messages for an iteration that it has posted but not begun are the exception.
  const bool lost = each.given > 0 && each.begun != begun_;
  if (!each.left || (each.awaited == 0 && each.held.empty() && !lost)) return;
  throw PeerError(peer, fmt::format("rank {} left the job in iteration {}", peer, iteration_), {},
                  Loss::kLeft);
}

// ------------------------------------------------------------------------------------ session

void ExchangeState::wake(const Failure& failure) {
  const std::lock_guard lock(mutex_);
  if (!failure_) failure_ = failure;
  changed_.notify_all();
}

bool ExchangeState::active() const {
  const std::lock_guard lock(mutex_);
  return active_;
}

void ExchangeState::report_failure(const Failure& failure) {
  wake(failure);
  const std::unique_lock last_delivery(delivery_);
  if (owned_) deliver_failure();  // otherwise define() delivers it
}

bool ExchangeState::failed() const {
  const std::lock_guard lock(mutex_);
  return failure_.has_value();
}

void ExchangeState::deliver_failure() {
  if (std::exchange(over_, true) || !events_.failed) return;
  std::unique_lock lock(mutex_);
  const PeerError why = error();
  lock.unlock();
  events_.failed(why);
}

PeerError ExchangeState::error() const {
  std::string text = failure_->reason;
  if (failure_->reporter != host_.rank())
    text += fmt::format(" (reported by rank {})", failure_->reporter);
  std::vector<std::uint32_t> awaited;
  if (active_ && failure_->culprit != host_.rank()) {
    const Other& culprit = others_[static_cast<std::size_t>(failure_->culprit)];
    std::ranges::copy_if(culprit.tags, std::back_inserter(awaited),
                         [&](std::uint32_t tag) { return !culprit.incoming.at(tag).done; });
  }
  if (!awaited.empty()) {
    text += fmt::format("; rank {} awaits tag {}", host_.rank(), awaited.front());
    if (awaited.size() > kTagsNamed)
      text += fmt::format(" and {} more", awaited.size() - kTagsNamed);
    text += " from it";
  }
  return {failure_->culprit, text, awaited, failure_->loss};
}

PeerError ExchangeState::stall() {
  int culprit = host_.rank();
  for (int peer = host_.size() - 1; peer >= 0; --peer) {
    if (other(peer).unsent > 0) culprit = peer;
  }
  for (int peer = host_.size() - 1; peer >= 0; --peer) {
    if (other(peer).awaited > 0) culprit = peer;
  }
  return {culprit, fmt::format("rank {} sent nothing for {} s in iteration {}", culprit,
                               host_.timeout_s(), iteration_)};
}

}  // namespace hipress::transport
