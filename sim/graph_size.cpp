#include "sim/graph_size.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "casync/folding.hpp"
#include "io/error.hpp"
#include "io/quantity.hpp"

namespace hipress::sim {
namespace {

// Bytes per task, measured as the largest memory of hipress-sim over its tasks.
constexpr double kBytes = 170;          // with the critical path, which takes most
constexpr double kBytesInSteps = 340;   // without pipelining, a Join included
constexpr double kBytesOfReplica = 60;  // what waits, and its timeline back to back
constexpr double kBytesOfGraph = 110;   // while it is made
constexpr double kBytesPerReady = 8;    // of what a node knows of a gradient
constexpr double kBytesPerEnds = 64;    // the same for the next iteration, or for a node's GPUs
constexpr double kEdgesPerTask = 1.25;

}  // namespace

GraphSize graph_size(const Scenario& scenario, casync::Folding folding, const Beside& beside) {
  const casync::Plan& plan = scenario.plan;
  const double orbits = folding == casync::Folding::kFolded ? 1 : plan.nodes;
  const auto gradients = static_cast<double>(scenario.model.gradients.size());
  GraphSize size;
  size.tasks = casync::whole_tasks(scenario.model, plan) * orbits / plan.nodes;
  if (scenario.iterations > 1) {
    size.tasks = (size.tasks + orbits * gradients) * scenario.iterations;  // forward in parts
  }
  double per_task = kBytes;
  if (!plan.pipelining) {
    size.tasks *= 2;  // a Join for each at most
    per_task = kBytesInSteps / 2;
  }
  per_task += beside.replicas * kBytesOfReplica + (beside.changed_graph ? kBytesOfGraph : 0);
  const bool keeps_ends = scenario.iterations > 1 || plan.gpus_per_node > 1;
  size.bytes = size.tasks * per_task +
               gradients * plan.nodes * (keeps_ends ? kBytesPerEnds : kBytesPerReady);
  return size;
}

void require_room(const GraphSize& size, std::int64_t memory_bytes, const std::string& remedy) {
  const auto refuse = [&](const std::string& why) {
    throw io::InputError(fmt::format("the graph of this plan has about {:.2g} tasks, {}; {}",
                                     size.tasks, why, remedy));
  };
  if (size.tasks * kEdgesPerTask > static_cast<double>(casync::kMostTasks)) {
    refuse(fmt::format("more than the {:.2g} that one can have",
                       static_cast<double>(casync::kMostTasks) / kEdgesPerTask));
  }
  if (size.bytes > static_cast<double>(memory_bytes)) {
    refuse(fmt::format("which need about {} of memory, and {} are available",
                       io::format_size(static_cast<std::int64_t>(size.bytes), 3),
                       io::format_size(memory_bytes, 3)));
  }
}

}  // namespace hipress::sim
