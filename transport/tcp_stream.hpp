#pragma once

#include <array>
#include <atomic>
#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <mutex>
#include <optional>
#include <span>
#include <string>

#include "transport/socket.hpp"
#include "transport/wire.hpp"

namespace hipress::transport {

// A connection between two ranks carries *frames* in one direction: a header, then the bytes of one
// put. The putting thread writes to the kernel until its buffer is full; the rest of the frame
// follows when the kernel has room again. The thread that waits for a put reads the connection
// itself, straight into the windows, so no other thread must be woken.

/// Header before the bytes of a put; little endian.
struct FrameHeader {
  std::uint64_t window_offset = 0;
  std::uint32_t bytes = 0;
  std::int32_t slot = 0;
};
static_assert(sizeof(FrameHeader) == 16);

/// Sending end. Any thread may call any function.
class OutStream {
 public:
  /// Puts of one writer.
  struct Progress {
    std::uint64_t left = 0;    ///< number of puts whose bytes have left the memory
    std::uint64_t waited = 0;  ///< number of puts that wait() has returned for
  };

  /// Takes a non-blocking socket. If frames wait for room in the kernel's buffer, `wants_room` is
  /// called with a lock held; continue_sending() must be called once there is room.
  void connect(Socket socket, std::function<void()> wants_room);
  /// Starts a put; does not wait. `progress` must live until its puts have left, or forget() has
  /// returned. Throws WireClosed if the connection is over.
  void put(int slot, std::span<const std::byte> source, std::size_t window_offset,
           Progress& progress);
  /// Waits until one more put of `progress` has left. Throws WireClosed when the connection is
  /// over.
  void wait(Progress& progress);
  /// Sends waiting frames until the kernel's buffer is full.
  void continue_sending() noexcept;
  /// Drops the frames of `progress` that have not left; their memory is not read any more.
  void forget(const Progress& progress) noexcept;
  /// Closes the connection and wakes all waits. Bytes already in the kernel still arrive; no other
  /// memory is read any more.
  void close() noexcept;

 private:
  struct Frame {
    FrameHeader header;
    std::span<const std::byte> bytes;
    Progress* progress = nullptr;
    std::size_t sent = 0;  ///< bytes sent, header included

    bool complete() const { return sent == sizeof header + bytes.size(); }
  };

  // The caller holds mutex_.
  void send(Frame& frame);
  void send_waiting();
  void end() noexcept;

  std::mutex mutex_;
  std::condition_variable changed_;
  Socket socket_;
  std::function<void()> wants_room_;
  std::deque<Frame> waiting_;  ///< only the first frame may be partly sent
  bool over_ = false;
};

/// Receiving end. One thread at a time waits; any thread may expose and withdraw windows, and
/// close.
class InStream {
 public:
  /// Takes a blocking socket.
  void connect(Socket socket);
  /// Receives frames for `slot` into `memory` until withdraw().
  void expose(int slot, std::span<std::byte> memory);
  /// Stops writing to the slot's memory. A partly received frame for it ends the connection.
  void withdraw(int slot) noexcept;
  /// Receives until one more put to `slot` is complete. Throws WireClosed if the connection is
  /// over. An invalid frame ends the connection; std::runtime_error then describes it.
  void wait(int slot);
  /// Closes the connection and wakes a wait. After it returns, no window is written to.
  void close() noexcept;

 private:
  struct Exposed {
    std::span<std::byte> memory;
    std::uint64_t puts = 0;  ///< number of complete puts that wait() has not returned for
  };
  /// Size of the staging buffer, into which many small puts, or the beginning of a large one, are
  /// read at once and then copied. A larger one means fewer reads of small puts, but more copying.
  static constexpr std::size_t kStagedBytes = 8 * 1024;

  bool take_put(int slot);
  /// Reads once; waits if there is no data yet.
  void receive();
  /// Splits the staged bytes into frames.
  void parse();
  void begin_frame();
  void end_frame();
  /// Ends the connection because of an invalid frame. Puts that were complete before it can still
  /// be waited for. The first wait that finds none left throws `fault` as std::runtime_error, later
  /// ones throw WireClosed. The caller holds reading_ and state_.
  void end_with(std::string fault);

  std::mutex reading_;  ///< held while reading the connection and writing to windows
  FrameHeader header_;
  std::size_t header_bytes_ = 0;   ///< received bytes of the current frame's header
  std::span<std::byte> expected_;  ///< destination of the rest of the current frame
  std::array<std::byte, kStagedBytes> staged_;
  std::span<const std::byte> unparsed_;  ///< part of staged_
  std::string fault_;                    ///< error of the frame that ended the connection

  std::mutex state_;
  Socket socket_;
  std::atomic<bool> closed_ = true;
  std::map<int, Exposed> windows_;  ///< by slot
  std::optional<int> written_;      ///< slot of the partly received frame
};

}  // namespace hipress::transport
