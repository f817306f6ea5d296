#include "sim/graph_size.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "casync/folding.hpp"
#include "io/error.hpp"
#include "io/quantity.hpp"

namespace hipress::sim {
namespace {

// Bytes per task. Measured: peak memory of hipress-sim, divided by its number of tasks, was 116 to
// 176 (VGG19, ps and ring of 48 to 96 nodes, with and without pipelining, batches and `steady`),
// most of it for the critical path. With `sensitivity` it was 160, 24 more than without. Since
// then, graphs also keep the number of predecessors (4 bytes).
constexpr double kBytes = 174;
constexpr double kBytesOfChanged = 30;
// Bytes per task of the graph and its timeline, which stay in memory while replicas run. Each
// replica adds kBytesOfReplica: counts of predecessors, queues, and a timeline of back-to-back
// iterations.
constexpr double kBytesKept = 60;
constexpr double kBytesOfTimeline = 16;  // part of kBytesKept: start and end
constexpr double kBytesOfReplica = 40;
// Bytes per gradient and node, for the id of the task after which the gradient is ready.
// kBytesPerEnds also includes ids of its last tasks on the node, for which the next iteration or
// the node's GPUs wait.
constexpr double kBytesPerReady = 8;
constexpr double kBytesPerEnds = 64;
constexpr double kEdgesPerTask = 1.25;

}  // namespace

GraphSize graph_size(const Scenario& scenario, casync::Folding folding, const Beside& beside) {
  const casync::Plan& plan = scenario.plan;
  const double representatives = folding == casync::Folding::kFolded ? 1 : plan.nodes;
  const auto gradients = static_cast<double>(scenario.model.gradients.size());
  GraphSize size;
  size.tasks = casync::whole_tasks(scenario.model, plan) * representatives / plan.nodes;
  const casync::Timetable table = plan.schedule.timetable(scenario.model);
  const bool goes_on = scenario.iterations > 1 || !table.is_uniform();
  if (goes_on) {
    // Forward tasks, one per gradient. If a period has several steps, also the computing tasks of
    // the steps around each synchronisation, counted as 6.
    const double around =
        table.is_uniform() ? 0 : 6 * static_cast<double>(table.synchronisations.size());
    size.tasks += representatives * (gradients + around);
    size.tasks *= scenario.iterations;
  }
  if (!plan.pipelining) size.tasks *= 2;  // at most one Join per task
  const double per_task = std::max(kBytes + (beside.changed_graph ? kBytesOfChanged : 0),
                                   kBytesKept + beside.replicas * kBytesOfReplica);
  const bool keeps_ends = goes_on || plan.gpus_per_node > 1;
  size.bytes = size.tasks * per_task +
               gradients * plan.nodes * (keeps_ends ? kBytesPerEnds : kBytesPerReady);
  return size;
}

// With kBytesOfReplica for a simulation, 84 bytes per task. Measured: 85 to 87 at the peak of
// sweeps, while the graph was made (BERT-large, ps and ring of 64 unlike nodes).
double bytes_of_graph(double tasks) { return tasks * (kBytesKept - kBytesOfTimeline); }

double bytes_of_simulation(double tasks) { return tasks * kBytesOfReplica; }

void require_room(const GraphSize& size, std::int64_t memory_bytes, const std::string& remedy) {
  const auto refuse = [&](const std::string& why) {
    throw io::InputError(fmt::format("the graph of this plan has about {:.2g} tasks, {}; {}",
                                     size.tasks, why, remedy));
  };
  if (size.tasks * kEdgesPerTask > static_cast<double>(casync::kMaxTasks)) {
    refuse(fmt::format("more than the {:.2g} that one can have",
                       static_cast<double>(casync::kMaxTasks) / kEdgesPerTask));
  }
  if (size.bytes > static_cast<double>(memory_bytes)) {
    refuse(fmt::format("which need about {} of memory, and {} are available",
                       io::format_size(static_cast<std::int64_t>(size.bytes), 3),
                       io::format_size(memory_bytes, 3)));
  }
}

}  // namespace hipress::sim
