#include "tools/profile/measure.hpp"

#include <fmt/format.h>

#include <utility>

#include "io/error.hpp"
#include "job/connect.hpp"
#include "kernels/codec/algorithm_list.hpp"
#include "kernels/codec/codec.hpp"
#include "replay/probes.hpp"
#include "replay/replay.hpp"
#include "tools/frame.hpp"

namespace hipress::profiler {

std::uint32_t count_ranks(const CommandLine& line, const std::optional<io::Launch>& launch) {
  constexpr std::uint32_t kThreads = 4;
  if (!launch || launch->size == 1) return line.nodes != 0 ? line.nodes : kThreads;
  return tools::size_of(*launch, line.nodes);
}

int passes_of(const CommandLine& line) { return line.passes.value_or(Options{}.passes); }

Part part_of(const CommandLine& line) {
  if (line.anew == "kernels") return Part::kKernels;
  return line.anew == "cores" ? Part::kCores : Part::kLinks;
}

void check(const CommandLine& line, bool reports) {
  if (!line.anew.empty() && line.base.empty()) {
    throw io::InputError(
        fmt::format("--anew {} measures but that part: give --base PROFILE for the rest, or leave "
                    "out --anew to measure all",
                    line.anew));
  }
  if (!reports) return;
  const bool measures_kernels = line.base.empty() || line.anew == "kernels";
  if (!line.algorithms.empty() && !measures_kernels && line.sample.empty()) {
    tools::warn(
        "--algorithm has no effect: with --base no kernels are measured, unless --anew kernels");
  }
  if (!line.passes) return;
  if (line.device == "cuda") {
    tools::warn("--passes has no effect: it is for a CPU's kernels, not for --device cuda");
  } else if (!measures_kernels) {
    tools::warn(
        "--passes has no effect: with --base no kernels are measured, unless --anew kernels");
  }
}

std::unique_ptr<transport::Endpoint> connect(const CommandLine& line,
                                             const std::optional<io::Launch>& launch,
                                             const std::optional<costs::Profile>& base) {
  if (!launch || launch->size == 1) return nullptr;
  tools::require_rendezvous(*launch, line.job);
  constexpr int kCollectives = 1;
  transport::JobOptions options;
  options.rank = launch->rank;
  options.size = launch->size;
  options.plan = fmt::format("profile {} {} {} {} {} {} {}", fmt::join(line.algorithms, ","),
                             base ? base->fingerprint : "new", line.anew, line.quick,
                             passes_of(line), line.device, line.transport);
  options.timeout_s = line.timeout_s;
  line.job.apply(options);
  return job::connect_rank(
      line.transport == "nccl" ? std::string(transport::kDefaultTransport) : line.transport,
      options, kCollectives);
}

std::function<costs::Probes()> probe_of(const CommandLine& line, const Options& options) {
  using namespace hipress::replay;
  const ProbeOptions probes = {
      .kernels = line.device == "cpu",
      .transport = line.transport == "nccl" ? std::string() : line.transport};
  return [probes, endpoint = options.endpoint] {
    return endpoint == nullptr ? run_probes(probes) : run_probes(probes, *endpoint);
  };
}

std::vector<std::string> algorithms_of(const CommandLine& line) {
  using namespace hipress::kernels;
  std::vector<std::string> names;
  for (const std::string& list : line.algorithms) {
    for (std::string& name : split_algorithms(list)) names.push_back(std::move(name));
  }
  return names.empty() ? split_algorithms(algorithm_names()) : names;
}

}  // namespace hipress::profiler
