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

/// Content on its way to one peer.
struct Parcel {
  Record head = {};  ///< type, exchange, iteration and tag of all its records
  std::span<const std::byte> content = {};
  Writer* writer = nullptr;  ///< to the content's own window; null: it travels in the ring
  std::shared_ptr<const void> keep_alive = {};  ///< owns the content, if nobody else does
  /// Called by the thread that sent the last segment, with the number of puts through `writer`.
  std::function<void(int puts)> sent = {};
};

/// The sending half of the connection to one peer: a queue of parcels, and the stream of records in
/// the peer's ring. Records from the peer free ring space: their field `consumed` brings credits.
/// Any thread may call any function. Only flush() waits for the peer.
class Outbound {
 public:
  Outbound(Wire& wire, int peer, std::uint64_t job);

  /// Tells the peer who this rank is, in a put that is padded to the length of the whole ring: Gloo
  /// makes a connection's send buffer as large as its longest put so far, and with a small buffer
  /// every few records would wait for Gloo's loop thread.
  void hello(int rank);
  /// Appends to the queue; drain() sends.
  void enqueue(Parcel parcel);
  /// Sends queued parcels, in order, as far as the peer's ring has space. One thread at a time does
  /// that: a second one returns at once, and the first sends for it.
  void drain();
  /// Sends a record past the queue, if hello() has been and the ring has space for it. `content` is
  /// inline.
  enum class Space { kAny, kKeepSomeForAborts };
  void post(Record record, std::span<const std::byte> content, Space space);
  /// Tells the peer how much of the ring of this rank it may write again, when that has become
  /// much.
  void grant(std::uint64_t consumed);
  /// The peer has consumed its ring up to here.
  void credit(std::uint64_t consumed);
  /// Waits until all records posted have left, or the connection is over.
  void flush() noexcept;
  /// Drops the queue; when it returns, no content of a parcel is read any more, nor will be.
  void stop() noexcept;
  /// A put failed: the connection is over, at least in this direction.
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
  std::atomic<bool> greeted_ = false;          ///< hello() is through
  std::atomic<std::uint64_t> consumed_ = 0;    ///< of the ring that the peer writes to
  std::atomic<std::uint64_t> advertised_ = 0;  ///< what of that the peer was told

  std::mutex queue_mutex_;
  std::deque<Parcel> queue_;
  std::atomic<bool> idle_ = true;  ///< the queue is empty
  std::atomic<unsigned> drains_wanted_ = 0;

  // Of the parcel in front; touched by the draining thread only.
  std::size_t sent_bytes_ = 0;
  int puts_ = 0;

  std::mutex ring_mutex_;
  std::vector<std::byte> staging_;  ///< the peer's ring, as written by this rank
  std::unique_ptr<Writer> ring_;
  std::uint64_t sequence_ = 0;
  std::uint64_t position_ = 0;          ///< in the stream of records
  std::uint64_t freed_ = 0;             ///< up to here the peer has consumed
  std::deque<std::uint64_t> unreaped_;  ///< positions at which records end that were not waited for
};

/// The receiving half: the ring that one peer writes to.
class Inbound {
 public:
  Inbound(Wire& wire, int peer, std::uint64_t job);

  /// The next record, and its content if that is inline. Valid until release().
  struct Arrived {
    Record record;
    std::span<const std::byte> content;
  };
  /// Waits for it. std::runtime_error saying what is wrong with it; WireClosed when no more will
  /// come.
  Arrived next();
  /// Gives the ring space of the last record back, and returns all that was given back so far.
  std::uint64_t release();

 private:
  Arrived read() const;

  const std::uint64_t job_;
  std::vector<std::byte> memory_;
  std::unique_ptr<Window> window_;
  bool closed_ = false;  ///< only what had arrived before is left
  std::uint64_t sequence_ = 0;
  std::uint64_t position_ = 0;
  std::size_t last_footprint_ = 0;
};

}  // namespace hipress::transport
