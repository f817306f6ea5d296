#pragma once

#include <array>
#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <vector>

#include "runtime/device.hpp"
#include "runtime/program.hpp"

namespace hipress::runtime {

/// Up to which of its entries each stream is known to have come, counted from 1.
using StreamClock = std::array<std::uint32_t, kStreams>;

/// The graph's edges as a device sees them: an *entry* of a stream starts when the entries of other
/// streams that its tasks wait for are done. Waits for what the stream knows already, through its
/// own order or an earlier wait, are left out. Has no locks, and reads no clock.
class StreamSchedule {
 public:
  StreamSchedule(Device& device, const Program& program);

  /// Before an iteration, with all streams idle.
  void begin();

  /// Enqueues an entry that does the work of `tasks`: waits, `work`, and an event behind it; and
  /// one before it, so that it is timed.
  void enqueue(Stream stream, std::span<const std::uint32_t> tasks,
               const std::function<void()>& work);

  /// The task needs no device: it is done when what it waits for is.
  void pass(std::uint32_t task);

  /// Whether the task depends, however indirectly, on an entry of the stream.
  bool follows(std::uint32_t task, Stream stream) const;

  /// All that was enqueued in this iteration is done.
  bool done();
  /// The task's entry is done; false if it has none.
  bool is_done(std::uint32_t task);
  /// Of a task that has passed: when the last entry that it depends on was done, in seconds after
  /// the origin, 0 if there is none; nothing as long as one is not done.
  std::optional<double> reached_s(std::uint32_t task);
  /// The first task of an entry that is not done; kNoIndex if there is none.
  std::uint32_t first_undone();

  /// The device's time of a task, as seconds after the origin; false if it had no entry.
  struct Times {
    bool timed = false;
    double start_s = 0, end_s = 0;
  };
  Times times(std::uint32_t task);
  /// What times count from; everything enqueued later is later.
  Event origin() const { return origin_; }

 private:
  struct Entry {
    Event start = 0, end = 0;
    StreamClock known{};  ///< when it is done
    std::uint32_t task = kNoIndex;
  };
  struct Place {
    Stream stream = Stream::kOwnCodec;
    std::uint32_t entry = 0;  ///< from 1; 0: none
  };

  Entry& next_entry(Stream stream);
  void catch_up(Stream stream, const StreamClock& needed);
  void add_predecessors(std::uint32_t task, StreamClock& clock) const;

  Device& device_;
  std::vector<std::uint32_t> first_predecessor_;  ///< per task, and one more
  std::vector<std::uint32_t> predecessors_;
  Event origin_;
  std::array<std::vector<Entry>, kStreams> entries_;  ///< kept for the next iteration
  StreamClock used_{};                                ///< entries in use
  std::array<StreamClock, kStreams> known_{};         ///< per stream
  std::vector<StreamClock> clocks_;                   ///< per task
  std::vector<Place> places_;                         ///< per task
};

}  // namespace hipress::runtime
