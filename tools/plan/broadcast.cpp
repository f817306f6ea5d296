#include "tools/plan/broadcast.hpp"

#include <fmt/format.h>
#include <fmt/ostream.h>

#include <iostream>
#include <string>

#include "costs/description.hpp"
#include "io/interrupts.hpp"
#include "io/quantity.hpp"
#include "io/spelling.hpp"
#include "requests/broadcast.hpp"

namespace hipress::planner {
namespace {

constexpr std::string_view kBroadcastOutput = "broadcast.yaml";

/// Says how certain it is that the chunk count is the best.
std::string note(const BroadcastChoice& choice) {
  return choice.proven
             ? fmt::format("the best of all {} chunk counts", choice.counts)
             : fmt::format("the best of {} of {} chunk counts", choice.simulations, choice.counts);
}

void print_report(const requests::PlannedBroadcast& broadcast) {
  const BroadcastResult& found = broadcast.found;
  const std::optional<sim::Interval>& range = broadcast.range;
  const BroadcastChoice& best = found.best;
  const std::string codec =
      best.algorithm.empty() ? "uncompressed" : "compressed with " + best.algorithm;
  fmt::print(std::cout, "{}, {}, in {} chunk{} of {} elements: {}{}\n", best.topology, codec,
             best.chunks, best.chunks == 1 ? "" : "s", best.chunk_elements,
             io::format_duration(best.seconds),
             range ? fmt::format(" ({} … {})", io::format_duration(range->p10_s),
                                 io::format_duration(range->p90_s))
                   : "");
  fmt::print(std::cout, "from node {} to {} others; {}\n", found.plan.root, found.plan.nodes - 1,
             io::as_command_line(costs::describe_machines(
                 broadcast.loaded.profile, broadcast.loaded.cluster, broadcast.model)));
  fmt::print(std::cout, "  {:<18} {:<16} {:>7} {:>10}\n", "topology", "codec", "chunks", "time");
  for (const BroadcastChoice& choice : found.choices) {
    fmt::print(std::cout, "  {:<18} {:<16} {:>7} {:>10}  {}\n", choice.topology,
               requests::codec_name(choice), choice.chunks, io::format_duration(choice.seconds),
               note(choice));
  }
  fmt::print(std::cout, "{}: written\n", broadcast.output);
}

}  // namespace

void run_broadcast(const Options& options, const requests::Hooks& hooks) {
  const io::InterruptScope scope;
  requests::PlanRequest request = options.request;
  if (request.output == kDefaultOutput) request.output = kBroadcastOutput;
  const auto planned = requests::plan_broadcast(request, hooks);
  if (options.json) {
    fmt::print(std::cout, "{}\n", document(*planned).print());
  } else {
    print_report(*planned);
  }
}

}  // namespace hipress::planner
