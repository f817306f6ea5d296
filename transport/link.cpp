#include "transport/link.hpp"

#include <algorithm>
#include <cstring>
#include <string>
#include <thread>
#include <utility>

namespace hipress::transport {

Outbound::Outbound(Wire& wire, int peer, std::uint64_t job)
    : job_(job), staging_(kRingBytes), ring_(wire.open(peer, kRingSlot, staging_)) {}

void Outbound::hello(int rank) {
  const std::lock_guard lock(ring_mutex_);
  Record record{.type = RecordType::kHello, .job = job_, .tag = static_cast<std::uint32_t>(rank)};
  seal(record);
  std::memcpy(staging_.data(), &record, sizeof record);
  ring_->put(0, kRingBytes, 0);
  ring_->wait();
  ++sequence_;
  position_ = footprint(0);
  greeted_ = true;
}

void Outbound::enqueue(Parcel parcel) {
  const std::lock_guard lock(queue_mutex_);
  queue_.push_back(std::move(parcel));
  idle_ = false;
}

void Outbound::drain() {
  // Each caller adds one to the count of requested drains. The caller that raises it from zero
  // drains until it has covered all requests made meanwhile, so no request is lost.
  if (drains_wanted_.fetch_add(1) != 0) return;
  for (unsigned covered = 1; covered != 0;) {
    covered = drains_wanted_;
    while (send_segment()) {
    }
    covered = drains_wanted_.fetch_sub(covered) - covered;
  }
}

bool Outbound::send_segment() {
  Parcel* parcel = nullptr;
  {
    const std::lock_guard lock(queue_mutex_);
    if (queue_.empty() || broken_) return false;
    parcel = &queue_.front();  // stays in place: only this thread removes parcels
  }
  const std::size_t limit = parcel->writer != nullptr ? kSegmentBytes : kInlineBytes;
  const auto rest = parcel->content.subspan(sent_bytes_);
  const auto segment = rest.first(std::min(rest.size(), limit));
  const auto in_ring = parcel->writer != nullptr ? std::span<const std::byte>() : segment;
  Record record = parcel->head;
  record.is_inline = parcel->writer != nullptr ? 0 : 1;
  record.length = parcel->content.size();
  record.offset = sent_bytes_;
  record.segment_bytes = static_cast<std::uint32_t>(segment.size());
  try {
    if (!has_space(footprint(in_ring.size()), kRingReserve)) return false;
    record.segment_crc = crc32c(segment);
    if (parcel->writer != nullptr) {
      parcel->writer->put(sent_bytes_, segment.size(), sent_bytes_);
      ++puts_;
    }
    const std::lock_guard lock(ring_mutex_);
    post_locked(record, in_ring);
  } catch (const WireClosed&) {
    broken_ = true;
    return false;
  }
  sent_bytes_ += segment.size();
  if (sent_bytes_ < parcel->content.size()) return true;
  if (parcel->sent) parcel->sent(puts_);
  sent_bytes_ = 0;
  puts_ = 0;
  const std::lock_guard lock(queue_mutex_);
  queue_.pop_front();
  idle_ = queue_.empty();
  return true;
}

bool Outbound::has_space(std::size_t bytes, std::size_t reserve) {
  const std::lock_guard lock(ring_mutex_);
  return free_bytes() >= place_at(position_).skipped + bytes + reserve;
}

void Outbound::post(Record record, std::span<const std::byte> content, Space space) {
  if (!greeted_) return;  // checked without waiting for the lock, which hello() may hold for long
  const std::lock_guard lock(ring_mutex_);
  if (broken_) return;
  const std::size_t kept = space == Space::kAny ? 0 : kRingReserve / 2;
  if (free_bytes() < place_at(position_).skipped + footprint(content.size()) + kept) return;
  record.length = content.size();
  record.segment_bytes = static_cast<std::uint32_t>(content.size());
  record.segment_crc = crc32c(content);
  try {
    post_locked(record, content);
  } catch (const WireClosed&) {
    broken_ = true;
  }
}

void Outbound::post_locked(Record& record, std::span<const std::byte> content) {
  const Place place = place_at(position_);
  record.job = job_;
  record.sequence = sequence_++;
  record.consumed = consumed_;
  advertised_ = record.consumed;
  seal(record);
  position_ += place.skipped;
  std::byte* const at = staging_.data() + place.offset;
  std::memcpy(at, &record, sizeof record);
  if (!content.empty()) std::memcpy(at + sizeof record, content.data(), content.size());
  position_ += footprint(content.size());
  put_in_ring(place.offset, footprint(content.size()));
}

void Outbound::put_in_ring(std::size_t offset, std::size_t bytes) {
  // Records that the peer has consumed have left, so waiting for them returns at once.
  for (; !unreaped_.empty() && unreaped_.front() <= freed_; unreaped_.pop_front()) ring_->wait();
  ring_->put(offset, bytes, offset);
  unreaped_.push_back(position_);
}

void Outbound::grant(std::uint64_t consumed) {
  consumed_ = consumed;
  if (consumed - advertised_ >= kRingBytes / 4) post({.type = RecordType::kBeat}, {}, Space::kAny);
}

void Outbound::credit(std::uint64_t consumed) {
  {
    const std::lock_guard lock(ring_mutex_);
    freed_ = std::clamp(consumed, freed_, position_);
  }
  if (!idle_) drain();
}

void Outbound::flush() noexcept {
  int puts = 0;
  {
    // Wait without the lock: heartbeats must continue, so that a stalled peer is noticed.
    const std::lock_guard lock(ring_mutex_);
    puts = static_cast<int>(unreaped_.size());
    unreaped_.clear();
  }
  try {
    for (; puts > 0; --puts) ring_->wait();
  } catch (const WireClosed&) {
    broken_ = true;
  }
}

void Outbound::stop() noexcept {
  broken_ = true;
  while (drains_wanted_ != 0) std::this_thread::yield();
  const std::lock_guard lock(queue_mutex_);
  queue_.clear();
  idle_ = true;
}

Inbound::Inbound(Wire& wire, int peer, std::uint64_t job)
    : job_(job), memory_(kRingBytes), window_(wire.expose(peer, kRingSlot, memory_)) {}

Inbound::Arrived Inbound::next() {
  if (!closed_) {
    try {
      window_->wait();
    } catch (const WireClosed&) {
      closed_ = true;
    }
  }
  const Arrived arrived = read();
  std::string_view wrong = fault(arrived.record, job_, sequence_);
  if (wrong.empty() && arrived.record.is_inline != 0 &&
      crc32c(arrived.content) != arrived.record.segment_crc) {
    wrong = "a segment that does not match its CRC";
  }
  // Once the connection is over, the number of unread records is unknown; a wrong sequence number
  // marks their end.
  if (!wrong.empty() && closed_) throw WireClosed("no more records");
  if (!wrong.empty()) throw std::runtime_error(std::string(wrong));
  last_footprint_ = footprint(arrived.content.size());
  return arrived;
}

Inbound::Arrived Inbound::read() const {
  const std::byte* const at = memory_.data() + place_at(position_).offset;
  Record record;
  std::memcpy(&record, at, sizeof record);
  const std::size_t follows =
      record.is_inline != 0 ? std::min<std::size_t>(record.segment_bytes, kInlineBytes) : 0;
  return {record, {at + sizeof record, follows}};
}

std::uint64_t Inbound::release() {
  position_ += place_at(position_).skipped + last_footprint_;
  ++sequence_;
  return position_;
}

}  // namespace hipress::transport
