#include "transport/ring_reduce.hpp"

#include <fmt/format.h>
#include <poll.h>
#include <sys/socket.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <chrono>
#include <cstdint>
#include <cstring>
#include <limits>
#include <span>
#include <utility>
#include <vector>

namespace hipress::transport {
namespace {

// Rank r sends a stream: first the length of its values in bytes, then 2·(size − 1) chunks,
// numbered r, r − 1, r − 2 … (mod size). It receives such a stream from rank r − 1, with chunks r −
// 1, r − 2 … After chunk r, a rank therefore passes on what it has received, one chunk behind. It
// adds its own values to the first size − 1 received chunks (reduce-scatter) and takes the others
// as they are (all-gather).

/// Size of the buffer for bytes that are read before they are added. A larger one takes fewer
/// reads; a smaller one stays in the L1 cache.
constexpr std::size_t kStagedBytes = 64 * 1024;

/// Positions of the values in the two streams.
class Streams {
 public:
  Streams(int rank, int size, std::span<std::byte> values, std::size_t value_bytes)
      : rank_(rank), size_(size), values_(values), value_bytes_(value_bytes) {}

  /// Chunk that this rank sends in `step`, and receives in step − 1.
  std::span<std::byte> chunk(int step) const {
    const auto at = static_cast<std::size_t>(((rank_ - step) % size_ + size_) % size_);
    const std::size_t count = values_.size() / value_bytes_;
    const std::size_t ranks = static_cast<std::size_t>(size_);
    const auto begin = [&](std::size_t i) {
      return value_bytes_ * (i * (count / ranks) + std::min(i, count % ranks));
    };
    return values_.subspan(begin(at), begin(at + 1) - begin(at));
  }
  int chunks() const { return 2 * (size_ - 1); }
  bool is_added(int received) const { return received < size_ - 1; }

 private:
  const int rank_, size_;
  const std::span<std::byte> values_;
  const std::size_t value_bytes_;
};

class RingReduce : public WireCollective {
 public:
  RingReduce(int rank, int size, Socket next, Socket previous, double timeout_s)
      : rank_(rank),
        size_(size),
        timeout_(static_cast<std::int64_t>(1000 * timeout_s) + 1),
        next_(std::move(next)),
        previous_(std::move(previous)),
        staged_(kStagedBytes) {}

  void all_reduce(std::span<std::byte> values, const Addition& addition) override;
  void close() noexcept override {
    closed_ = true;
    next_.shut_down();
    previous_.shut_down();
  }

 private:
  void exchange_lengths(std::uint64_t mine);
  /// Waits until a requested socket is ready.
  void wait(bool sends, bool receives);
  /// Returns the number of bytes sent; 0 if it would block.
  std::size_t send(std::span<const std::byte> bytes);
  std::size_t receive(std::span<std::byte> bytes);
  std::size_t moved(ssize_t n) const;
  /// Receives the next bytes of a chunk into its remaining part `left`, and adds or (without an
  /// addition) stores them. Returns the number of bytes that are now in place.
  std::size_t take_in(std::span<std::byte> left, const Addition* addition);

  const int rank_, size_;
  const std::chrono::milliseconds timeout_;
  Socket next_, previous_;
  std::vector<std::byte> staged_;
  std::size_t staged_bytes_ = 0;  ///< bytes of a partly received value
  std::atomic<bool> closed_ = false;
};

std::size_t RingReduce::moved(ssize_t n) const {
  if (n > 0) return static_cast<std::size_t>(n);
  if (n < 0 && (errno == EAGAIN || errno == EWOULDBLOCK || errno == EINTR)) return 0;
  throw WireClosed(n < 0 ? std::strerror(errno) : "the connection is closed");
}

std::size_t RingReduce::send(std::span<const std::byte> bytes) {
  return moved(::send(next_.number(), bytes.data(), bytes.size(), MSG_NOSIGNAL | MSG_DONTWAIT));
}

std::size_t RingReduce::receive(std::span<std::byte> bytes) {
  return moved(::recv(previous_.number(), bytes.data(), bytes.size(), MSG_DONTWAIT));
}

void RingReduce::wait(bool sends, bool receives) {
  pollfd polled[2] = {{.fd = sends ? next_.number() : -1, .events = POLLOUT, .revents = 0},
                      {.fd = receives ? previous_.number() : -1, .events = POLLIN, .revents = 0}};
  const int ready = ::poll(
      polled, 2,
      static_cast<int>(std::min<std::int64_t>(timeout_.count(), std::numeric_limits<int>::max())));
  if (closed_) throw WireClosed("closed");
  if (ready == 0) throw WireClosed(fmt::format("nothing moved for {} s", timeout_.count() / 1e3));
}

void RingReduce::exchange_lengths(std::uint64_t mine) {
  std::uint64_t theirs = 0;
  std::size_t sent = 0, received = 0;
  while (sent < sizeof mine || received < sizeof theirs) {
    wait(sent < sizeof mine, received < sizeof theirs);
    if (sent < sizeof mine) sent += send(std::as_bytes(std::span(&mine, 1)).subspan(sent));
    if (received < sizeof theirs) {
      received += receive(std::as_writable_bytes(std::span(&theirs, 1)).subspan(received));
    }
  }
  if (theirs != mine) {
    throw WireClosed(
        fmt::format("rank {} reduces {} bytes, the rank before it {}", rank_, mine, theirs));
  }
}

std::size_t RingReduce::take_in(std::span<std::byte> left, const Addition* addition) {
  if (addition == nullptr) return receive(left);
  const std::size_t room = std::min(left.size(), staged_.size()) - staged_bytes_;
  staged_bytes_ += receive(std::span(staged_).subspan(staged_bytes_, room));
  const std::size_t values = staged_bytes_ / addition->value_bytes;
  const std::size_t whole = values * addition->value_bytes;
  addition->add(left.data(), staged_.data(), values);
  staged_bytes_ -= whole;
  std::memmove(staged_.data(), staged_.data() + whole, staged_bytes_);
  return whole;
}

void RingReduce::all_reduce(std::span<std::byte> values, const Addition& addition) {
  if (closed_) throw WireClosed("closed");
  if (size_ == 1 || values.empty()) return;
  exchange_lengths(values.size());
  const Streams streams(rank_, size_, values, addition.value_bytes);
  int sending = 0, receiving = 0;   // steps; the chunk received in step s is sent in step s + 1
  std::size_t sent = 0, taken = 0;  // bytes of the current chunks
  while (sending < streams.chunks() || receiving < streams.chunks()) {
    const std::span<std::byte> out = streams.chunk(sending), in = streams.chunk(receiving + 1);
    // The part of a chunk that has been received can be sent on.
    const std::size_t sendable = sending <= receiving       ? out.size()
                                 : sending == receiving + 1 ? taken
                                                            : 0;
    const bool sends = sending < streams.chunks() && sent < sendable;
    const bool receives = receiving < streams.chunks();
    std::size_t progress = 0;
    if (sends) {
      const std::size_t n = send(out.subspan(sent, sendable - sent));
      sent += n;
      progress += n;
    }
    if (receives && taken < in.size()) {
      const Addition* const added = streams.is_added(receiving) ? &addition : nullptr;
      const std::size_t n = take_in(in.subspan(taken), added);
      taken += n;
      progress += n;
    }
    if (sending < streams.chunks() && sent == out.size() && sending <= receiving) {
      ++sending;
      sent = 0;
      progress = 1;
    }
    if (receives && taken == in.size()) {
      ++receiving;
      taken = 0;
      progress = 1;
    }
    if (progress == 0) wait(sends, receives);
  }
}

}  // namespace

std::shared_ptr<WireCollective> make_ring_reduce(int rank, int size, Socket next, Socket previous,
                                                 double timeout_s) {
  return std::make_shared<RingReduce>(rank, size, std::move(next), std::move(previous), timeout_s);
}

}  // namespace hipress::transport
