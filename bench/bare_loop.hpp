#pragma once

#include <cstdint>
#include <vector>

#include "casync/task_graph.hpp"

namespace hipress::bench {

/// Does only the work that every discrete-event simulation of a task graph must do, to see how far
/// the simulator's time is above that. Durations and resources are computed beforehand. A resource
/// serves its tasks in the order of their arrival. A Send occupies only its sender.
class BareLoop {
 public:
  /// A message takes `overhead` + bytes × `ps_per_byte`, in ps. Merges take no time.
  BareLoop(const casync::TaskGraph& graph, std::int64_t overhead, std::int64_t ps_per_byte);

  /// Runs the graph once. Returns the time at which the last task ends, in ps.
  std::int64_t run();

 private:
  void make_ready(casync::TaskId id, std::int64_t now);
  void start(casync::TaskId id, std::int64_t now);

  struct Event {
    std::int64_t time;
    casync::TaskId task;
    bool operator<(const Event& other) const { return time > other.time; }
  };
  struct Queue {
    bool busy = false;
    casync::TaskId head = 0, tail = 0;  // a list linked by next_; empty if head == kNoIndex
  };

  const casync::TaskGraph& graph_;
  std::vector<std::int64_t> duration_;
  std::vector<std::uint32_t> resource_;
  std::vector<std::uint32_t> waiting_;
  std::vector<casync::TaskId> next_;
  std::vector<Queue> queues_;
  std::vector<Event> events_;
};

}  // namespace hipress::bench
