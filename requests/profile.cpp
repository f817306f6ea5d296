#include "requests/profile.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <exception>
#include <functional>
#include <memory>
#include <utility>

#include "io/error.hpp"
#include "io/file.hpp"
#include "job/connect.hpp"
#include "kernels/codec/algorithm_list.hpp"
#include "kernels/codec/codec.hpp"
#include "profiler/profiler.hpp"
#include "profiler/sample.hpp"
#include "replay/device_choice.hpp"
#include "replay/probes.hpp"

namespace hipress::requests {
namespace {

using profiler::Part;

/// True if the length of the algorithm's messages varies with the data.
bool is_lossless(const std::string& algorithm) {
  const kernels::AlgorithmRow* const row = kernels::find_algorithm(algorithm);
  return row != nullptr && row->lossless;
}

std::vector<std::string> algorithms_of(const ProfileRequest& request) {
  std::vector<std::string> names;
  for (const std::string& list : request.algorithms) {
    for (std::string& name : kernels::split_algorithms(list)) names.push_back(std::move(name));
  }
  return names.empty() ? kernels::split_algorithms(kernels::algorithm_names()) : names;
}

std::uint32_t count_ranks(const ProfileRequest& request, const std::optional<io::Launch>& launch) {
  constexpr std::uint32_t kThreads = 4;
  if (meets(launch)) return size_of(*launch, request.nnodes, request.ranks);
  return request.nnodes != 0 ? request.nnodes : kThreads;
}

Part part_of(const ProfileRequest& request) {
  if (request.anew == "kernels") return Part::kKernels;
  return request.anew == "cores" ? Part::kCores : Part::kLinks;
}

/// Reads the numbers of a sample; empty without one. Throws io::InputError for an invalid file.
std::vector<float> read_sample(const std::string& path) {
  if (path.empty()) return {};
  const std::string bytes = io::read_file(path);
  if (bytes.empty() || bytes.size() % sizeof(float) != 0) {
    throw io::InputError(path, 0,
                         fmt::format("has {} bytes; a sample is fp32 numbers as they lie in "
                                     "memory, 4 bytes each, as numpy's tensor.tofile writes them",
                                     bytes.size()));
  }
  std::vector<float> values(bytes.size() / sizeof(float));
  std::memcpy(values.data(), bytes.data(), bytes.size());
  return values;
}

/// Measures message shares on the sample, for every algorithm with messages of varying length.
/// Throws io::InputError if the profile has no such algorithm.
void apply_sample(const std::vector<float>& values, costs::Profile& profile, const Hooks& hooks) {
  bool found = false;
  for (auto& [name, costs] : profile.codecs) {
    if (!is_lossless(name)) continue;
    costs.message_share = profiler::message_share(*kernels::make_codec(name), values);
    inform(hooks, fmt::format("{}: messages come to {:.1f} % of the longest", name,
                              100 * costs.message_share));
    found = true;
  }
  if (found) return;
  throw io::InputError(
      "`sample`: the profile has no algorithm whose messages vary with the data; measure one: "
      "`algorithm` lossless");
}

/// Connects to the launcher's job, which rejects ranks with a different base. Null without a job.
std::unique_ptr<transport::Endpoint> connect(const ProfileRequest& request,
                                             transport::JobOptions options, int passes,
                                             const std::optional<costs::Profile>& base,
                                             const std::string& transport) {
  if (options.size == 1) return nullptr;
  constexpr int kCollectives = 1;
  options.plan = fmt::format("profile {} {} {} {} {} {} {}", fmt::join(request.algorithms, ","),
                             base ? base->fingerprint : "new", request.anew, request.quick, passes,
                             request.device, request.transport);
  options.timeout_s = request.timeout_s;
  return job::connect_rank(transport, options, kCollectives);
}

/// Returns a function that runs the probes. In a job, all ranks must call it.
std::function<costs::Probes()> probe_of(const ProfileRequest& request,
                                        transport::Endpoint* endpoint) {
  const replay::ProbeOptions probes = {
      .kernels = request.device == "cpu",
      .transport = request.transport == "nccl" ? std::string() : request.transport};
  return [probes, endpoint] {
    return endpoint == nullptr ? run_probes(probes) : run_probes(probes, *endpoint);
  };
}

/// Measures all parts of a profile or, with a base, the parts to renew.
costs::Profile measure(const ProfileRequest& request, const std::optional<io::Launch>& launch,
                       const transport::JobOptions& job, const std::optional<costs::Profile>& base,
                       const Hooks& hooks) {
  profiler::Options options;
  options.algorithms = algorithms_of(request);
  options.nodes = count_ranks(request, launch);
  options.effort = request.quick ? profiler::Effort::kQuick : profiler::Effort::kFull;
  options.passes = request.passes.value_or(options.passes);
  const replay::DeviceChoice choice =
      replay::choose_device({.device = request.device,
                             .transport = request.transport,
                             .interface = request.ranks.interface,
                             .ranks = static_cast<int>(options.nodes)},
                            launch);
  options.transport = choice.transport;
  options.device = choice.device;
  options.nccl = choice.nccl;
  options.timeout_s = request.timeout_s;
  options.base = base ? &*base : nullptr;
  options.anew = part_of(request);
  const auto endpoint = connect(request, job, options.passes, base, choice.transport);
  options.endpoint = endpoint.get();
  const auto progress = [&](const std::string& what) {
    look_for_interrupt(hooks);
    if (reports(launch)) inform(hooks, fmt::format("measuring {}", what));
  };
  return profiler::measure_while_steady(
      options, progress, probe_of(request, endpoint.get()),
      request.again.value_or(request.quick ? kAgainQuick : kAgain));
}

void write(const ProfileRequest& request, Profiled& profiled) {
  if (!profiled.reports || request.output.empty()) return;
  costs::write_profile(request.output, profiled.profile);
  profiled.output = request.output;
}

Profiled run(const ProfileRequest& request, const Hooks& hooks) {
  const std::optional<io::Launch> launch = io::read_launch();
  Profiled made{.reports = reports(launch), .profile = {}, .output = {}};
  ProfileRequest known = request;
  const Fields all = fields(known);
  refuse_unfit(all);
  if (made.reports) warn_of_idle(all, hooks);
  if (made.reports && !request.output.empty()) io::require_writable(request.output);
  const std::vector<float> sample = read_sample(request.sample);
  const std::vector<std::string> algorithms = algorithms_of(request);
  if (!sample.empty() && request.base.empty() && std::ranges::none_of(algorithms, is_lossless)) {
    throw io::InputError(
        "`sample` needs an algorithm whose messages vary with the data, and `algorithm` names "
        "none: add lossless");
  }
  const transport::JobOptions job = job_options(request.ranks, launch, hooks);
  std::optional<costs::Profile> base;
  if (!request.base.empty()) base = costs::read_profile(request.base);
  const bool measures = sample.empty() || !base || !request.anew.empty();
  made.profile = measures ? measure(request, launch, job, base, hooks) : *base;
  for (std::string& note : made.profile.notes) note = sentence(note);
  if (!sample.empty()) apply_sample(sample, made.profile, made.reports ? hooks : Hooks{});
  const bool new_cores = !base || part_of(request) != Part::kKernels;
  if (made.reports && measures && new_cores && made.profile.cores > 0 &&
      made.profile.link.core_s_per_byte == 0) {
    warn(hooks,
         "core times of transfers could not be measured, so predictions assume that transfers need "
         "no core time: measure again while nothing else runs, or take one machine's profile as "
         "`base`");
  }
  write(request, made);
  return made;
}

}  // namespace

Profiled profile(const ProfileRequest& request, const Hooks& hooks) {
  return interruptible(hooks, [&] { return run(request, hooks); });
}

io::Document answer(const ProfileRequest& request, const Hooks& hooks) {
  return document(profile(request, hooks));
}

}  // namespace hipress::requests
