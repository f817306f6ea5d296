#include "profiler/profiler.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <cmath>
#include <fstream>

#include "io/error.hpp"
#include "io/processors.hpp"
#include "io/version.hpp"
#include "job/gather.hpp"
#include "kernels/codec/codec.hpp"
#include "profiler/codecs.hpp"
#include "profiler/device_kernels.hpp"
#include "profiler/device_overlap.hpp"
#include "profiler/hosts.hpp"
#include "profiler/links.hpp"
#include "profiler/sampling.hpp"
#include "profiler/variation.hpp"
#include "replay/drift.hpp"
#include "replay/probes.hpp"
#include "runtime/scheduling.hpp"

namespace hipress::profiler {
namespace {

std::string processor() {
  std::ifstream cpuinfo("/proc/cpuinfo");
  for (std::string line; std::getline(cpuinfo, line);) {
    if (line.starts_with("model name")) return line.substr(line.find(':') + 2);
  }
  return "unknown processor";
}

}  // namespace

std::string this_machine() {
  return fmt::format("{}, {} cores", processor(), io::usable_cores().size());
}

namespace {

/// Memory bandwidth of copies by all cores together, which kernels cannot exceed. Only rank 0
/// measures it, since processes that measured at once would share it.
double measure_memory_once(const Options& options) {
  constexpr std::size_t kBytes = std::size_t{96} << 20;
  constexpr int kRounds = 3;
  const auto measure_here = [] {
    return replay::copy_bandwidth(static_cast<int>(io::usable_cores().size()), kBytes, kRounds);
  };
  if (options.endpoint == nullptr) return measure_here();
  const bool mine = options.endpoint->rank() == 0;
  return job::gather(*options.endpoint, mine ? measure_here() : 0.0).front();
}

void check_options(const Options& options) {
  if (options.nodes < 2) {
    throw io::InputError(
        fmt::format("`nnodes` must be at least 2 to measure links, got {}", options.nodes));
  }
  if (options.endpoint != nullptr && options.endpoint->size() != static_cast<int>(options.nodes)) {
    throw io::InputError(fmt::format("`nnodes` is {}, but the job has {} ranks", options.nodes,
                                     options.endpoint->size()));
  }
  const bool measures_kernels = options.base == nullptr || options.anew == Part::kKernels;
  if (measures_kernels && options.algorithms.empty()) {
    throw io::InputError("no algorithm is given for measuring kernels: give at least one");
  }
  if (options.base != nullptr && options.anew == Part::kCores) {
    if (options.nccl != nullptr)
      throw io::InputError("NCCL does not use the cores, so there are none to measure anew");
    if (options.endpoint == nullptr) {
      throw io::InputError(
          "CPU times of transfers are measured anew between the processes of a job: start them by "
          "a launcher, or leave out `anew` cores");
    }
  }
  for (const std::string& algorithm : options.algorithms) {
    try {
      kernels::make_codec(algorithm);
    } catch (const std::invalid_argument& error) {
      throw io::InputError(error.what());
    }
  }
}

/// True if measure_links() makes a series of samples of that name.
bool is_of_links(const std::string& series) {
  return std::ranges::any_of(
      std::array{"link.", "fan_", "all_reduce.", "all_gather.", "reduce_scatter.", "all_to_all."},
      [&](const char* prefix) { return series.starts_with(prefix); });
}

/// The base without the parts that are measured anew.
costs::Profile kept_of(const costs::Profile& base, Part anew) {
  costs::Profile profile = base;
  const auto drop_series = [&](auto of) {
    std::erase_if(profile.samples,
                  [&](const costs::Profile::Series& series) { return of(series.name); });
  };
  switch (anew) {
    case Part::kLinks:
      drop_series([](const std::string& name) { return name != kCoreSeries && is_of_links(name); });
      for (auto* const curves : {&profile.fan_in, &profile.fan_out, &profile.all_reduce,
                                 &profile.all_gather, &profile.reduce_scatter, &profile.all_to_all})
        curves->clear();
      break;
    case Part::kKernels:
      drop_series([](const std::string& name) { return !is_of_links(name); });
      profile.codecs.clear();
      profile.estimate.reset();
      std::erase_if(profile.notes,
                    [](const std::string& note) { return note.starts_with(kOverlapNote); });
      break;
    case Part::kCores:
      drop_series([](const std::string& name) { return name.starts_with(kPacedCoreSeries); });
      break;
  }
  return profile;
}

/// True if transfers use cores: NCCL's do not.
bool takes_cores(const Options& options) { return options.nccl == nullptr; }

/// Profile with everything but links, measured on this machine or taken from the base.
costs::Profile measure_machine(const Options& options, const Hosts& hosts, const Progress& progress,
                               Variations& variations) {
  costs::Profile profile;
  if (options.base != nullptr) {
    profile = kept_of(*options.base, options.anew);
    if (options.anew != Part::kKernels) return profile;
  }
  if (options.base == nullptr) profile.cores = takes_cores(options) ? hosts.cores() : 0;
  // Codecs on a device leave the cores to threads that move messages.
  const bool takes_turns = takes_cores(options) && !options.device;
  profile.core_turn_s = takes_turns ? std::chrono::duration<double>(runtime::kTurn).count() : 0;
  if (options.device) {
    profile.device = "cuda";
    measure_device_kernels(options, progress, profile);
    profile.overlap = measure_overlap(options, progress, profile.notes);
    return profile;
  }
  profile.device = "cpu";
  progress("memory bandwidth");
  profile.memory_bandwidth = profile.kernels_measured_at = measure_memory_once(options);
  measure_codecs(options, hosts, progress, profile, variations);
  return profile;
}

/// Name of the hardware that runs codecs: the device, or the processor.
std::string machine(const Options& options, const Hosts& hosts) {
  if (options.device) return options.device(own_rank(options))->name();
  return fmt::format("{}, {} cores", processor(), hosts.cores());
}

std::string hardware(const Options& options, const Hosts& hosts) {
  std::string where = options.nccl != nullptr       ? "over NCCL"
                      : options.endpoint != nullptr ? "of a job"
                                                    : "on loopback";
  if (hosts.count() > 1) where += fmt::format(" on {} machines", hosts.count());
  return fmt::format("{}, {} ranks {}", machine(options, hosts), options.nodes, where);
}

/// Sets name, source, hardware and notes of the profile. With a base, the hardware is that of the
/// links, and a note names the hardware of the kernels.
void tell_origin(const Options& options, const Hosts& hosts, costs::Profile& profile) {
  constexpr std::string_view kNote = "kernels were measured on: ";
  profile.name = "measured";
  profile.source = fmt::format("measured by hipress-profile {}", io::version());
  profile.fingerprint.clear();  // no file yet
  const bool new_links = options.base == nullptr || options.anew == Part::kLinks;
  if (new_links) profile.hardware = hardware(options, hosts);
  if (options.base == nullptr) return;
  const costs::Profile& base = *options.base;
  const std::string_view kept = options.anew == Part::kLinks     ? "kernels"
                                : options.anew == Part::kKernels ? "links"
                                                                 : "all but cores";
  profile.source += fmt::format("; {} of profile {} {}", kept, base.name, base.fingerprint);
  if (options.anew == Part::kCores) return;
  const auto is_note = [&](const std::string& note) { return note.starts_with(kNote); };
  if (!new_links) std::erase_if(profile.notes, is_note);
  if (std::ranges::none_of(profile.notes, is_note)) {
    profile.notes.push_back(
        fmt::format("{}{}", kNote, new_links ? base.hardware : machine(options, hosts)));
  }
}

/// Probes of the profile: those of `now` for parts that were measured, the base's for kept parts.
costs::Probes probes_of(const Options& options, const costs::Probes& now) {
  if (options.base == nullptr) return now;
  costs::Probes probes = options.base->probes;
  if (options.anew == Part::kKernels) {
    probes.copy = now.copy;
    probes.codec = now.codec;
  } else {
    probes.transport = now.transport;
  }
  return probes;
}

}  // namespace

costs::Profile measure(const Options& options, const Progress& progress) {
  check_options(options);
  const Hosts hosts(options);
  Variations variations;
  costs::Profile profile = measure_machine(options, hosts, progress, variations);
  tell_origin(options, hosts, profile);
  if (options.base != nullptr && options.anew == Part::kCores) {
    measure_transfer_cores(options, hosts, progress, profile, variations);
  } else if (options.base == nullptr || options.anew == Part::kLinks) {
    profile.shared_host = takes_cores(options) && hosts.count() == 1;
    measure_links(options, hosts, progress, profile, variations);
  }
  profile.spread = variations.spread(options);
  return profile;
}

costs::Profile measure_while_steady(const Options& options, const Progress& progress,
                                    const std::function<costs::Probes()>& probe, int again) {
  costs::Profile profile;
  int times = 0;
  std::chrono::duration<double> took{0};
  const replay::Watched watched = replay::watch(
      probe,
      [&] {
        if (times++ > 0) {
          progress(
              fmt::format("all of it again, since the machine's speed varied meanwhile: {:.0f} s "
                          "more (`again` 0: "
                          "no second attempt)",
                          took.count()));
        }
        const auto start = std::chrono::steady_clock::now();
        profile = measure(options, progress);
        took = std::chrono::steady_clock::now() - start;
        return *profile.spread;
      },
      again);
  profile.probes = probes_of(options, watched.probes);
  profile.spread = replay::widened(*profile.spread, watched.moved);
  if (watched.moved > 0) {
    std::erase_if(profile.notes,
                  [](const std::string& note) { return note.starts_with(replay::kMoved); });
    profile.notes.push_back(replay::describe_movement(watched, "profiling"));
  }
  return profile;
}

}  // namespace hipress::profiler
