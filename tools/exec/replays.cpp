#include "tools/exec/replays.hpp"

#include <fmt/format.h>

#include <memory>

#include "io/memory.hpp"
#include "job/clock.hpp"
#include "job/connect.hpp"
#include "job/gather.hpp"
#include "replay/probes.hpp"
#include "replay/room.hpp"
#include "runtime/program.hpp"
#include "tools/frame.hpp"

namespace hipress::replay {
namespace {

/// This process's end of the job that a launcher started; null where ranks are threads.
std::unique_ptr<transport::Endpoint> connect(const CommandLine& line,
                                             const std::optional<io::Launch>& launch,
                                             const std::string& transport, const Job& job) {
  if (!launch || launch->size == 1) return nullptr;
  const std::string plan =
      fmt::format("{} {}+{} iterations, seed {}, {} {}, backward {}",
                  plans::plan_fingerprint(job.model, job.plan.plan), line.replay.warmup,
                  line.replay.iterations, line.replay.seed, line.device, line.transport,
                  line.backward + (line.gradients.empty() ? "" : ", given gradients"));
  const auto node = static_cast<std::uint32_t>(launch->rank);
  require_room(room_of(job.graph, job.model, job.plan, {&node, 1}, true), 1,
               io::available_memory());
  transport::JobOptions options;
  options.rank = launch->rank;
  options.size = launch->size;
  options.plan = plan;
  options.timeout_s = line.replay.timeout_s;
  line.job.apply(options);
  return job::connect_rank(transport, options, runtime::collectives_of(job.graph));
}

}  // namespace

Outcome run_replays(const CommandLine& line, const std::optional<io::Launch>& launch,
                    const std::string& transport, const Job& job, const Watching& wanted) {
  const auto endpoint = connect(line, launch, transport, job);
  Outcome outcome;
  outcome.threads = endpoint == nullptr;
  outcome.machines = endpoint ? endpoint->all_gather(job::machine_clock().boot)
                              : std::vector<std::string>(job.graph.nodes, "this one");
  const auto replay_once = [&] {
    outcome.replayed = endpoint
                           ? replay(*endpoint, job.model, job.plan, job.graph, line.replay)
                           : replay_threads(transport, job.model, job.plan, job.graph, line.replay);
  };
  const Watching watching = endpoint ? job::gather(*endpoint, wanted).front() : wanted;
  if (!watching.wanted) {
    replay_once();
    return outcome;
  }
  const ProbeOptions probes = {
      .kernels = line.device == "cpu",
      .transport = line.transport == "nccl" ? std::string() : line.transport};
  outcome.watched =
      watch([&] { return endpoint ? run_probes(probes, *endpoint) : run_probes(probes); },
            [&] {
              replay_once();
              return watching.spread;
            },
            watching.again);
  return outcome;
}

}  // namespace hipress::replay
