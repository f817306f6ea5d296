#pragma once

#include <atomic>
#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <mutex>
#include <span>
#include <vector>

#include "transport/record.hpp"
#include "transport/wire.hpp"

namespace hipress::transport {

/// Content to send to one peer.
struct Parcel {
  Record head = {};  ///< fields common to all its records: type, exchange, iteration, tag
  std::span<const std::byte> content = {};
  Writer* writer = nullptr;  ///< writer to the content's own window; null: travels in the ring
  std::shared_ptr<const void> keep_alive = {};  ///< owner of the content, if the parcel keeps it
  /// Called by the thread that sent the last segment, with the number of puts through `writer`.
  std::function<void(int puts)> sent = {};
};

/// Sending half of the connection to one peer: a queue of parcels, and the stream of records in the
/// peer's ring. Records from the peer return credits for ring space in their field `consumed`. Any
/// thread may call any function. Only flush() waits for the peer.
class Outbound {
 public:
  Outbound(Wire& wire, int peer, std::uint64_t job);

  /// Sends the hello record, in a put that is padded to the length of the whole ring. Gloo makes a
  /// connection's send buffer as large as its longest put so far; with a small buffer, every few
  /// records would wait for Gloo's loop thread.
  void hello(int rank);
  /// Appends to the queue; drain() sends it.
  void enqueue(Parcel parcel);
  /// Sends queued parcels in order until the peer's ring is full. One thread at a time drains: if a
  /// second one calls, it returns at once, and the first sends its parcels too.
  void drain();
  /// Sends a record ahead of the queue. Drops it if hello() has not been called yet, or if the ring
  /// has no space. `content` is inline.
  enum class Space { kAny, kKeepSomeForAborts };
  void post(Record record, std::span<const std::byte> content, Space space);
  /// Returns ring credits to the peer once enough of this rank's ring is free.
  void grant(std::uint64_t consumed);
  /// Notes the position up to which the peer has consumed its ring.
  void credit(std::uint64_t consumed);
  /// Waits until all posted records have left or the connection is over.
  void flush() noexcept;
  /// Drops the queue. After it returns, no parcel's content is read.
  void stop() noexcept;
  /// True if a put failed: the connection is over, at least in this direction.
  bool broken() const { return broken_; }

 private:
  bool send_segment();
  bool has_space(std::size_t bytes, std::size_t reserve);
  void post_locked(Record& record, std::span<const std::byte> content);
  void put_in_ring(std::size_t offset, std::size_t bytes);
  std::size_t free_bytes() const {
    return kRingBytes - static_cast<std::size_t>(position_ - freed_);
  }

  const std::uint64_t job_;
  std::atomic<bool> broken_ = false;
  std::atomic<bool> greeted_ = false;          ///< hello() has been sent
  std::atomic<std::uint64_t> consumed_ = 0;    ///< position up to which this rank read its ring
  std::atomic<std::uint64_t> advertised_ = 0;  ///< last such position sent to the peer

  std::mutex queue_mutex_;
  std::deque<Parcel> queue_;
  std::atomic<bool> idle_ = true;  ///< the queue is empty
  std::atomic<unsigned> drains_wanted_ = 0;

  // Progress of the first parcel; used by the draining thread only.
  std::size_t sent_bytes_ = 0;
  int puts_ = 0;

  std::mutex ring_mutex_;
  std::vector<std::byte> staging_;  ///< local copy of the peer's ring
  std::unique_ptr<Writer> ring_;
  std::uint64_t sequence_ = 0;
  std::uint64_t position_ = 0;          ///< next position in the stream of records
  std::uint64_t freed_ = 0;             ///< position up to which the peer has consumed
  std::deque<std::uint64_t> unreaped_;  ///< end positions of records not yet waited for
};

/// Receiving half: the ring that one peer writes to.
class Inbound {
 public:
  Inbound(Wire& wire, int peer, std::uint64_t job);

  /// A record, and its content if inline. Valid until release().
  struct Arrived {
    Record record;
    std::span<const std::byte> content;
  };
  /// Waits for the next record. Throws std::runtime_error with a description of an invalid record,
  /// and WireClosed if no more will arrive.
  Arrived next();
  /// Frees the ring space of the last record. Returns the total freed so far, in bytes.
  std::uint64_t release();

 private:
  Arrived read() const;

  const std::uint64_t job_;
  std::vector<std::byte> memory_;
  std::unique_ptr<Window> window_;
  bool closed_ = false;  ///< the connection is over, but earlier records may still be unread
  std::uint64_t sequence_ = 0;
  std::uint64_t position_ = 0;
  std::size_t last_footprint_ = 0;
};

}  // namespace hipress::transport
