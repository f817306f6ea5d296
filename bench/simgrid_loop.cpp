#include "bench/simgrid_loop.hpp"

#include <deque>
#include <simgrid/s4u.hpp>
#include <string>
#include <vector>

namespace hipress::bench {
namespace {

namespace s4u = simgrid::s4u;
using casync::Kind;
using casync::TaskGraph;
using casync::TaskId;

/// Sets the model and the precision: SimGrid's default of 1e-5 s is too coarse for microseconds.
void configure() {
  for (const char* setting :
       {"network/model:CM02", "network/bandwidth-factor:1", "network/latency-factor:1",
        "network/weight-S:0", "network/TCP-gamma:0", "network/crosstraffic:0",
        "surf/precision:1e-12", "maxmin/precision:1e-9"}) {
    s4u::Engine::set_config(setting);
  }
}

class Loop : public SimGridLoop {
 public:
  Loop(std::uint32_t nodes, double bytes_per_s, std::int64_t overhead_bytes)
      : engine_(&count_, arguments_), overhead_bytes_(overhead_bytes), queues_(nodes) {
    configure();
    s4u::NetZone* zone = s4u::create_star_zone("cluster");
    for (std::uint32_t node = 0; node < nodes; ++node) {
      const std::string name = std::to_string(node);
      s4u::Host* host = zone->create_host(name, 1e9)->seal();
      s4u::Link* up = zone->create_link("up " + name, bytes_per_s)->set_latency(0)->seal();
      s4u::Link* down = zone->create_link("down " + name, bytes_per_s)->set_latency(0)->seal();
      zone->add_route(host->get_netpoint(), nullptr, nullptr, nullptr, {s4u::LinkInRoute(up)},
                      false);
      zone->add_route(nullptr, host->get_netpoint(), nullptr, nullptr, {s4u::LinkInRoute(down)},
                      false);
      hosts_.push_back(host);
    }
    zone->seal();
    s4u::Activity::on_completion_cb(
        [this](const s4u::Activity& activity) { finish_activity(slot_of(activity)); });
  }

  double run(const TaskGraph& graph, Sends sends) override {
    graph_ = &graph;
    sends_ = sends;
    waiting_ = graph.predecessors;
    std::vector<TaskId> sources;
    for (TaskId id = 0; id < graph.tasks(); ++id) {
      if (waiting_[id] == 0) sources.push_back(id);
    }
    const double begin = s4u::Engine::get_clock();
    for (const TaskId id : sources) make_ready(id);
    engine_.run();
    return s4u::Engine::get_clock() - begin;
  }

 private:
  struct Queue {
    bool busy = false;
    std::deque<TaskId> waiting;
  };

  /// A message that is being sent. SimGrid's activities must be kept until they end.
  struct Slot {
    s4u::CommPtr comm;
    TaskId send = 0;
  };

  static std::uint32_t slot_of(const s4u::Activity& activity) {
    const auto& comm = dynamic_cast<const s4u::Comm&>(activity);
    return static_cast<std::uint32_t>(reinterpret_cast<std::uintptr_t>(comm.get_data<void>()));
  }

  void finish_activity(std::uint32_t slot) {
    finish_send(slots_[slot].send);
    free_.push_back(slot);  // not earlier, since its activity is in use until here
  }

  std::uint32_t take_slot() {
    if (free_.empty()) {
      slots_.emplace_back();
      return static_cast<std::uint32_t>(slots_.size() - 1);
    }
    const std::uint32_t slot = free_.back();
    free_.pop_back();
    return slot;
  }

  void make_ready(TaskId id) {
    const casync::Task& task = (*graph_)[id];
    if (task.kind != Kind::kSend) return finish(id);
    if (sends_ == Sends::kAtOnce) return start(id);
    Queue& queue = queues_[task.node];
    if (queue.busy) return queue.waiting.push_back(id);
    queue.busy = true;
    start(id);
  }

  void start(TaskId id) {
    const casync::Task& send = (*graph_)[id];
    s4u::CommPtr comm = s4u::Comm::sendto_init(hosts_[send.node], hosts_[graph_->peer(send)]);
    comm->set_payload_size(static_cast<std::uint64_t>(send.amount + overhead_bytes_));
    const std::uint32_t slot = take_slot();
    comm->set_data(reinterpret_cast<void*>(static_cast<std::uintptr_t>(slot)));
    slots_[slot] = {comm, id};
    comm->vetoable_start();
  }

  void finish_send(TaskId id) {
    if (sends_ == Sends::kOneByOne) {
      Queue& queue = queues_[(*graph_)[id].node];
      queue.busy = !queue.waiting.empty();
      if (queue.busy) {
        const TaskId next = queue.waiting.front();
        queue.waiting.pop_front();
        start(next);
      }
    }
    finish(id);
  }

  void finish(TaskId id) {
    for (const TaskId next : casync::successors(*graph_, id)) {
      if (--waiting_[next] == 0) make_ready(next);
    }
  }

  int count_ = 2;
  char name_[10] = "bench_sim";
  char quiet_[30] = "--log=root.threshold:error";
  char* arguments_[3] = {name_, quiet_, nullptr};
  s4u::Engine engine_;
  std::int64_t overhead_bytes_;
  std::vector<s4u::Host*> hosts_;
  std::vector<Queue> queues_;
  std::vector<Slot> slots_;
  std::vector<std::uint32_t> free_;
  const TaskGraph* graph_ = nullptr;
  Sends sends_ = Sends::kAtOnce;
  std::vector<std::uint32_t> waiting_;
};

}  // namespace

std::unique_ptr<SimGridLoop> make_simgrid_loop(std::uint32_t nodes, double bytes_per_s,
                                               std::int64_t overhead_bytes) {
  return std::make_unique<Loop>(nodes, bytes_per_s, overhead_bytes);
}

}  // namespace hipress::bench
