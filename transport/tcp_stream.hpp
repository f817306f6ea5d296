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
// put. The thread that puts hands the frame to the kernel itself, as far as the kernel takes it;
// the rest leaves when the kernel has room again. The thread that waits for a put reads the
// connection itself, straight into the windows: no other thread has to be woken on the way.

/// Precedes the bytes of a put; little endian.
struct FrameHeader {
  std::uint64_t window_offset = 0;
  std::uint32_t bytes = 0;
  std::int32_t slot = 0;
};
static_assert(sizeof(FrameHeader) == 16);

/// The sending end. Any thread may call any function.
class OutStream {
 public:
  /// The puts of one writer.
  struct Progress {
    std::uint64_t left = 0;    ///< puts whose bytes have left the memory
    std::uint64_t waited = 0;  ///< of these, those that were waited for
  };

  /// Takes a non-blocking socket. `wants_room` is called, with a lock held, when frames wait for
  /// the kernel to have room; continue_sending() has to be called once it has.
  void connect(Socket socket, std::function<void()> wants_room);
  /// Does not wait. `progress` must live until its puts have left, or forget() has returned.
  /// WireClosed when the connection is over.
  void put(int slot, std::span<const std::byte> source, std::size_t window_offset,
           Progress& progress);
  /// Waits until one more put of `progress` has left. WireClosed when the connection is over.
  void wait(Progress& progress);
  /// Sends waiting frames, as far as the kernel takes them.
  void continue_sending() noexcept;
  /// The frames of `progress` that have not left are dropped, and their memory is read no more.
  void forget(const Progress& progress) noexcept;
  /// Bytes that the kernel has taken still arrive. No other memory is read any more. Wakes all
  /// waits.
  void close() noexcept;

 private:
  struct Frame {
    FrameHeader header;
    std::span<const std::byte> bytes;
    Progress* progress = nullptr;
    std::size_t sent = 0;  ///< of header and bytes together

    bool complete() const { return sent == sizeof header + bytes.size(); }
  };

  // With mutex_ held.
  void send(Frame& frame);
  void send_waiting();
  void end() noexcept;

  std::mutex mutex_;
  std::condition_variable changed_;
  Socket socket_;
  std::function<void()> wants_room_;
  std::deque<Frame> waiting_;  ///< only the first may have left in part
  bool over_ = false;
};

/// The receiving end. One thread at a time waits; any thread may expose and withdraw windows, and
/// close.
class InStream {
 public:
  /// Takes a blocking socket.
  void connect(Socket socket);
  /// `memory` is where frames for `slot` go, until withdraw().
  void expose(int slot, std::span<std::byte> memory);
  /// Nothing is written to that memory any more. A frame for it that is under way ends the
  /// connection.
  void withdraw(int slot) noexcept;
  /// Receives until one more put to `slot` is complete. WireClosed when the connection is over;
  /// std::runtime_error saying what is wrong with a frame, which ends the connection.
  void wait(int slot);
  /// When it returns no window is written to any more. Wakes a wait.
  void close() noexcept;

 private:
  struct Exposed {
    std::span<std::byte> memory;
    std::uint64_t puts = 0;  ///< complete and not waited for
  };
  /// Small puts are read many at a time into a buffer of this size, and then copied. So is the
  /// beginning of a large put. A larger buffer saves reads of small puts and copies more of large
  /// ones.
  static constexpr std::size_t kStagedBytes = 8 * 1024;

  bool take_put(int slot);
  /// Reads once, and waits if there is nothing yet.
  void receive();
  /// Takes the staged bytes apart into frames.
  void parse();
  void begin_frame();
  void end_frame();
  /// Ends the connection, for a wait that finds no put before it. With both mutexes held.
  void end_with(std::string fault);

  std::mutex reading_;  ///< held while the connection is read and windows are written to
  FrameHeader header_;
  std::size_t header_bytes_ = 0;   ///< of the current frame's header that have come
  std::span<std::byte> expected_;  ///< where the rest of the current frame goes
  std::array<std::byte, kStagedBytes> staged_;
  std::span<const std::byte> unparsed_;  ///< part of staged_
  std::string fault_;                    ///< what is wrong with the frame that ended the connection

  std::mutex state_;
  Socket socket_;
  std::atomic<bool> closed_ = true;
  std::map<int, Exposed> windows_;  ///< by slot
  std::optional<int> written_;      ///< the slot of the frame that is under way
};

}  // namespace hipress::transport
