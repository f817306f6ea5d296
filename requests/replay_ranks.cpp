#include "requests/replay_ranks.hpp"

#include <fmt/format.h>

#include "io/memory.hpp"
#include "job/connect.hpp"
#include "replay/room.hpp"
#include "runtime/program.hpp"

namespace hipress::requests {

std::unique_ptr<transport::Endpoint> connect(const ReplayRequest& request, const ReplayJob& job,
                                             const std::string& transport,
                                             transport::JobOptions options) {
  if (options.size == 1) return nullptr;
  options.plan = fmt::format(
      "{}{} {}+{} iterations, seed {}, {} {}, backward {}", request.automatic ? "automatic " : "",
      plans::plan_fingerprint(job.model, job.plan.plan), request.replay.warmup,
      request.replay.iterations, request.replay.seed, request.device, request.transport,
      request.backward + (request.gradients.empty() ? "" : ", given gradients"));
  options.timeout_s = request.replay.timeout_s;
  const auto node = static_cast<std::uint32_t>(options.rank);
  replay::require_room(replay::room_of(job.graph, job.model, job.plan, {&node, 1}, true), 1,
                       io::available_memory());
  return job::connect_rank(transport, options, runtime::collectives_of(job.graph));
}

std::function<void(int rank, int iteration)> progress_of(int all, bool threads,
                                                         const Hooks& hooks) {
  return [=, &hooks](int rank, int iteration) {
    look_for_interrupt(hooks);
    if (!hooks.progress || (threads && rank != 0)) return;
    hooks.progress({.stage = "iterations",
                    .share = static_cast<double>(iteration) / all,
                    .done = iteration,
                    .all = all});
  };
}

}  // namespace hipress::requests
