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

/// Vector clock: number of entries of each stream that are known to be done.
using StreamClock = std::array<std::uint32_t, kStreams>;

/// Maps the graph's edges to a device. An *entry* is the work of one or more tasks on a stream. It
/// starts when the entries of other streams that its tasks depend on are done. Omits waits that are
/// implied by the stream's order or by an earlier wait. Has no locks and reads no clock.
class StreamSchedule {
 public:
  StreamSchedule(Device& device, const Program& program);

  /// Starts an iteration; all streams must be idle.
  void begin();

  /// Enqueues an entry for `tasks`: the missing waits, then a start event, `work` and an end event.
  void enqueue(Stream stream, std::span<const std::uint32_t> tasks,
               const std::function<void()>& work);

  /// Marks a task without device work: it is done when its predecessors are.
  void pass(std::uint32_t task);

  /// True if the task depends, directly or indirectly, on an entry of the stream.
  bool follows(std::uint32_t task, Stream stream) const;

  /// True if all entries of this iteration are done.
  bool done();
  /// True if the task's entry is done; false if it has no entry.
  bool is_done(std::uint32_t task);
  /// For a task that pass() was called for: completion time, in seconds after the origin, of the
  /// last entry that it depends on; 0 if it depends on no entry, nullopt while one is not done.
  std::optional<double> reached_s(std::uint32_t task);
  /// First task of an unfinished entry; kNoIndex if all are done.
  std::uint32_t first_undone();

  /// Device times of a task in seconds after the origin; `timed` is false if it had no entry.
  struct Times {
    bool timed = false;
    double start_s = 0, end_s = 0;
  };
  Times times(std::uint32_t task);
  /// Origin of times: an event before all entries of the iteration.
  Event origin() const { return origin_; }

 private:
  struct Entry {
    Event start = 0, end = 0;
    StreamClock known{};  ///< entries known to be done when this one is
    std::uint32_t task = kNoIndex;
  };
  struct Place {
    Stream stream = Stream::kOwnCodec;
    std::uint32_t entry = 0;  ///< number of the entry, from 1; 0: no entry
  };

  Entry& next_entry(Stream stream);
  void catch_up(Stream stream, const StreamClock& needed);
  void add_predecessors(std::uint32_t task, StreamClock& clock) const;

  Device& device_;
  std::vector<std::uint32_t> first_predecessor_;  ///< per task, plus the end
  std::vector<std::uint32_t> predecessors_;
  Event origin_;
  std::array<std::vector<Entry>, kStreams> entries_;  ///< reused in the next iteration
  StreamClock used_{};                                ///< entries in use
  std::array<StreamClock, kStreams> known_{};         ///< per stream
  std::vector<StreamClock> clocks_;                   ///< per task
  std::vector<Place> places_;                         ///< per task
};

}  // namespace hipress::runtime
