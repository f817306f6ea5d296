#include <fmt/format.h>
#include <spdlog/spdlog.h>

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <cstring>
#include <functional>
#include <iostream>
#include <nlohmann/json.hpp>
#include <optional>
#include <utility>

#include "costs/traffic.hpp"
#include "io/environment.hpp"
#include "io/error.hpp"
#include "io/file.hpp"
#include "io/quantity.hpp"
#include "kernels/codec/algorithm_list.hpp"
#include "kernels/codec/codec.hpp"
#include "profiler/nccl_table.hpp"
#include "profiler/profiler.hpp"
#include "profiler/sample.hpp"
#include "replay/device_choice.hpp"
#include "replay/probes.hpp"
#include "replay/replay.hpp"
#include "tools/frame.hpp"
#include "tools/options/secret.hpp"
#include "transport/endpoint.hpp"

namespace {

using hipress::costs::CodecCosts;
using hipress::costs::Curve;
using hipress::costs::Profile;
namespace profiler = hipress::profiler;

constexpr int kAgain = 3, kAgainQuick = 1;

struct Arguments {
  std::string device = "cpu", transport{hipress::transport::kDefaultTransport};
  std::vector<std::string> algorithms;
  std::uint32_t nodes = 0;  ///< 0: the launcher's, or four threads
  std::string output = "profile.yaml";
  std::string base, anew;  ///< no part: links, with a base
  std::string sample;      ///< a file of fp32 numbers
  std::string rendezvous, interface, job = "hipress-profile";
  hipress::tools::SecretOptions secret;
  double timeout_s = 60;
  bool quick = false;
  std::optional<int> passes;
  std::optional<int> again;
  bool json = false;
};

void declare(CLI::App& app, Arguments& arguments) {
  app.add_option("--device", arguments.device, "where codecs run: cpu, or cuda")
      ->check(CLI::IsMember({"cpu", "cuda"}))
      ->capture_default_str();
  app.add_option("--transport", arguments.transport,
                 "what links are measured of: " + hipress::transport::describe_transports() +
                     "; nccl (between GPUs)")
      ->capture_default_str();
  app.add_option("--algorithm", arguments.algorithms,
                 "what to measure, comma-separated; staged ones at several ranks, whichever is "
                 "given (default: " +
                     hipress::kernels::algorithm_names() + ")");
  app.add_option(
         "--nnodes", arguments.nodes,
         "ranks between which links are measured; default: the launcher's, else 4 that share "
         "this machine")
      ->check(hipress::tools::count_from(1, 1024));
  app.add_option("--output", arguments.output, "where to write the profile")->capture_default_str();
  app.add_option(
      "--base", arguments.base,
      "a profile of which but a part is measured anew (--anew); the rest holds here too");
  app.add_option(
         "--anew", arguments.anew,
         "with --base: links, for a network too slow to show what a transfer costs the CPU, "
         "or kernels, for a machine whose memory is not always as fast, or cores, what transfers "
         "cost these on links that are known, for such a machine, too (default: links)")
      ->check(CLI::IsMember({"links", "kernels", "cores"}));
  app.add_option(
         "--sample", arguments.sample,
         "a file of fp32 numbers (one of your tensors, as it lies in memory): what messages "
         "of algorithms come to whose length varies with the data; with --base and without "
         "--anew, nothing else is measured")
      ->check(CLI::ExistingFile);
  app.add_option(
      "--rendezvous", arguments.rendezvous,
      "where the processes of a job meet that a launcher started, to measure the links "
      "between them: file:///shared/folder, redis://host:port or, with TLS, rediss://host:port");
  app.add_option("--interface", arguments.interface,
                 "network interface or address of this process in a job; default: loopback");
  app.add_option("--job", arguments.job, "tells jobs apart that meet in one place")
      ->capture_default_str();
  arguments.secret.declare(app);
  app.add_option("--timeout", arguments.timeout_s,
                 "seconds without progress after which the job ends")
      ->check(hipress::tools::number_from(hipress::transport::kMinTimeout_s,
                                          hipress::transport::kMaxTimeout_s))
      ->capture_default_str();
  app.add_flag(
      "--quick", arguments.quick,
      "fewer sizes and repetitions: a quarter of a minute for two algorithms on an idle machine");
  app.add_option(
         "--passes", arguments.passes,
         fmt::format(
             "how often a CPU's kernels are measured, seconds apart: more where a machine is "
             "shared (default: {})",
             profiler::Options{}.passes))
      ->check(hipress::tools::count_from(1, 1000));
  app.add_option(
         "--again", arguments.again,
         fmt::format("measure again, so many times at most, where probes before and after say "
                     "that the machine's speed changed meanwhile (default: {}, with --quick {})",
                     kAgain, kAgainQuick))
      ->check(hipress::tools::count_from(0, 1000));
  app.add_flag("--json", arguments.json, "print one JSON object instead of the table");
}

/// Gradient bytes per second at 2^22 elements, the slice size at which most of the time goes.
constexpr std::int64_t kElements = 1 << 22;
double rate_of(double seconds) { return 4.0 * kElements / seconds; }
double rate(const Curve& curve) { return rate_of(curve(kElements)); }

/// What stages are told of: a square matrix of kElements, and that rank.
constexpr std::int64_t kRows = 1 << 11;
constexpr int kRank = 4;
constexpr std::int64_t kFactor = kRows * kRank;

/// All encodes of a step, of factors of kFactor values.
double encode_rate(const CodecCosts& costs) {
  if (!costs.is_staged()) return rate(costs.encode);
  double seconds = 0;
  for (const auto& stage : costs.stages)
    seconds += hipress::costs::stage_seconds(stage, kElements, kFactor, kRank);
  return rate_of(seconds);
}

double decode_rate(const CodecCosts& costs) {
  if (!costs.is_staged()) return rate(costs.decode);
  const auto factors = static_cast<std::int64_t>(costs.stages.size()) * kFactor;
  return rate_of(hipress::costs::stage_seconds(costs.decode_stages, kElements, factors, kRank));
}

nlohmann::json to_json_staged(const CodecCosts& costs) {
  return {{"encode_Bps", encode_rate(costs)},
          {"decode_Bps", decode_rate(costs)},
          {"stages", costs.stages.size()},
          {"rank", kRank}};
}

nlohmann::json to_json(const Profile& profile, const std::string& path) {
  nlohmann::json codecs = nlohmann::json::object();
  for (const auto& [name, costs] : profile.codecs) {
    if (costs.is_staged()) {
      codecs[name] = to_json_staged(costs);
      continue;
    }
    codecs[name] = {{"encode_Bps", rate(costs.encode)},
                    {"decode_Bps", rate(costs.decode)},
                    {"decode_add_Bps", rate(costs.decode_add)},
                    {"encode_factor_quotients", costs.encode_factor_quotients},
                    {"message_share", costs.message_share}};
    // A CPU measures no slices that are too large for its caches.
    if (profile.device != "cuda") continue;
    const auto traffic = hipress::costs::least_traffic(name);
    if (!traffic) continue;
    const auto share = [&](const Curve& work, double bytes_per_element) {
      return hipress::costs::share_of_bandwidth(work, bytes_per_element, profile.memory_bandwidth);
    };
    codecs[name]["encode_of_ceiling"] = share(costs.encode, traffic->encode);
    codecs[name]["decode_of_ceiling"] = share(costs.decode, traffic->decode);
  }
  nlohmann::json links = nlohmann::json::array();
  for (const profiler::NcclRow& row : profiler::nccl_rows(profile)) {
    links.push_back({{"test", row.test},
                     {"ranks", row.ranks},
                     {"size_bytes", row.size_bytes},
                     {"time_s", row.time_s},
                     {"algbw_Bps", row.algbw},
                     {"busbw_Bps", row.busbw}});
  }
  return {{"profile", path},
          {"hardware", profile.hardware},
          {"device", profile.device},
          {"memory_bandwidth_Bps", profile.memory_bandwidth},
          {"codecs", codecs},
          {"overlap",
           {{"compute_codec", profile.overlap.compute_codec},
            {"compute_transfer", profile.overlap.compute_transfer},
            {"codec_transfer", profile.overlap.codec_transfer}}},
          {"nccl_tests", links},
          {"spread",
           {{"host", profile.spread->host},
            {"links", profile.spread->links},
            {"compute", profile.spread->compute},
            {"model", profile.spread->model},
            {"iterations", profile.spread->iterations}}},
          {"probes",
           {{"copy_Bps", profile.probes.copy},
            {"codec_Bps", profile.probes.codec},
            {"transport_Bps", profile.probes.transport}}},
          {"notes", profile.notes},
          {"link",
           {{"bandwidth_Bps", profile.link.bandwidth},
            {"overhead_s", profile.link.overhead_s},
            {"latency_s", profile.link.latency_s},
            {"core_s_per_byte", profile.link.core_s_per_byte},
            {"core_factor_interrupting", profile.link.core_factor_interrupting},
            {"core_s_per_message", profile.link.core_s_per_message}}}};
}

void print_spread(const Profile& profile) {
  const hipress::costs::Spread& spread = *profile.spread;
  fmt::print(
      "\ntwo runs in three are within {:.0f} % of these host costs and {:.0f} % of these links, "
      "two iterations in three within {:.0f} % of their run\n",
      100 * std::expm1(spread.host), 100 * std::expm1(spread.links),
      100 * std::expm1(spread.iterations));
  for (const std::string& note : profile.notes) fmt::print("note: {}\n", note);
}

void print(const Profile& profile, const std::string& path) {
  fmt::print("{}\n\n{:12} {:>12} {:>12} {:>12}   GB/s of gradient, slices of 2^22 elements\n",
             profile.hardware, "codec", "encode", "decode", "decode+add");
  for (const auto& [name, costs] : profile.codecs) {
    const double encode = encode_rate(costs) / 1e9, decode = decode_rate(costs) / 1e9;
    if (costs.is_staged()) {
      fmt::print(
          "{:12} {:12.2f} {:12.2f} {:>12}   {} x {}, rank {}, {} of encode\n", name, encode, decode,
          "", kRows, kRows, kRank,
          costs.stages.size() == 1 ? "one stage" : fmt::format("{} stages", costs.stages.size()));
      continue;
    }
    fmt::print("{:12} {:12.2f} {:12.2f} {:12.2f}\n", name, encode, decode,
               rate(costs.decode_add) / 1e9);
  }
  using hipress::io::format_bit_rate, hipress::io::format_duration;
  fmt::print("{:12} {:>12} {:>12} {:12.2f}\n\n", "raw merge", "", "", rate(profile.merge) / 1e9);
  if (profile.device == "cuda") {
    fmt::print(
        "memory moves {:.1f} GB/s in a copy, reads and writes counted; slower together: "
        "compute and codec {:.2f} times, compute and transfer {:.2f}, codec and transfer "
        "{:.2f}\n\n",
        profile.memory_bandwidth / 1e9, profile.overlap.compute_codec,
        profile.overlap.compute_transfer, profile.overlap.codec_transfer);
  }
  fmt::print("one flow {}, per message {} and {} of latency\n",
             format_bit_rate(profile.link.bandwidth), format_duration(profile.link.overhead_s),
             format_duration(profile.link.latency_s));
  fmt::print("a byte costs {:.3f} ns of a core, a message {}; {} cores\n",
             profile.link.core_s_per_byte * 1e9, format_duration(profile.link.core_s_per_message),
             profile.cores);
  if (profile.link.core_factor_interrupting > 1) {
    fmt::print("and {:.2f} times as much where it interrupts long codec tasks\n",
               profile.link.core_factor_interrupting);
  }
  const std::vector<profiler::NcclRow> rows = profiler::nccl_rows(profile);
  fmt::print("\nlinks, in the terms of nccl-tests:\n");
  std::fflush(stdout);
  profiler::print_nccl_table(std::cout, rows);
  std::cout.flush();
  print_spread(profile);
  fmt::print("written to {}\n", path);
}

/// How many ranks measure; the launcher and --nnodes must agree.
std::uint32_t count_ranks(const Arguments& arguments,
                          const std::optional<hipress::io::Launch>& launch) {
  constexpr std::uint32_t kThreads = 4;
  if (!launch || launch->size == 1) return arguments.nodes != 0 ? arguments.nodes : kThreads;
  const auto size = static_cast<std::uint32_t>(launch->size);
  if (arguments.nodes != 0 && arguments.nodes != size) {
    throw hipress::io::InputError(fmt::format("--nnodes is {}, but {} started {} ranks",
                                              arguments.nodes, launch->launcher, size));
  }
  return size;
}

int passes_of(const Arguments& arguments) {
  return arguments.passes.value_or(profiler::Options{}.passes);
}

profiler::Part part_of(const Arguments& arguments) {
  if (arguments.anew == "kernels") return profiler::Part::kKernels;
  return arguments.anew == "cores" ? profiler::Part::kCores : profiler::Part::kLinks;
}

/// io::InputError for options that contradict each other, and a warning of what has no effect.
void check(const Arguments& arguments, bool reports) {
  if (!arguments.anew.empty() && arguments.base.empty()) {
    throw hipress::io::InputError(
        fmt::format("--anew {} measures but that part: give --base PROFILE for the rest, or leave "
                    "out --anew to measure all",
                    arguments.anew));
  }
  if (!arguments.passes || !reports) return;
  if (arguments.device == "cuda") {
    spdlog::warn("--passes has no effect: it is for a CPU's kernels, not for --device cuda");
  } else if (!arguments.base.empty() && arguments.anew != "kernels") {
    spdlog::warn(
        "--passes has no effect: with --base no kernels are measured, unless --anew kernels");
  }
}

/// This process's end of the job that a launcher started, which ranks with another base do not
/// join; null without one.
std::unique_ptr<hipress::transport::Endpoint> connect(
    const Arguments& arguments, const std::optional<hipress::io::Launch>& launch,
    const std::optional<Profile>& base) {
  using namespace hipress;
  if (!launch || launch->size == 1) return nullptr;
  if (arguments.rendezvous.empty()) {
    throw io::InputError(
        fmt::format("rank {} of {} started by {} needs --rendezvous: file:///shared/folder, "
                    "redis://host:port or rediss://host:port",
                    launch->rank, launch->size, launch->launcher));
  }
  constexpr int kCollectives = 1;
  transport::JobOptions options{
      .rank = launch->rank,
      .size = launch->size,
      .job = arguments.job,
      .plan = fmt::format("profile {} {} {} {} {} {} {}", fmt::join(arguments.algorithms, ","),
                          base ? base->fingerprint : "new", arguments.anew, arguments.quick,
                          passes_of(arguments), arguments.device, arguments.transport),
      .rendezvous = arguments.rendezvous,
      .interface = arguments.interface,
      .timeout_s = arguments.timeout_s};
  arguments.secret.apply(options);
  return replay::connect_rank(arguments.transport == "nccl"
                                  ? std::string(transport::kDefaultTransport)
                                  : arguments.transport,
                              options, kCollectives);
}

/// Collective in a job.
std::function<hipress::costs::Probes()> probe_of(const Arguments& arguments,
                                                 const profiler::Options& options) {
  using namespace hipress::replay;
  const ProbeOptions probes = {
      .kernels = arguments.device == "cpu",
      .transport = arguments.transport == "nccl" ? std::string() : arguments.transport};
  return [probes, endpoint = options.endpoint] {
    return endpoint == nullptr ? run_probes(probes) : run_probes(probes, *endpoint);
  };
}

bool is_lossless(const std::string& algorithm) {
  const hipress::kernels::AlgorithmRow* const row = hipress::kernels::find_algorithm(algorithm);
  return row != nullptr && row->lossless;
}

/// What to measure: the lists that are given, or all.
std::vector<std::string> algorithms_of(const Arguments& arguments) {
  using namespace hipress::kernels;
  std::vector<std::string> names;
  for (const std::string& list : arguments.algorithms) {
    for (std::string& name : split_algorithms(list)) names.push_back(std::move(name));
  }
  return names.empty() ? split_algorithms(algorithm_names()) : names;
}

/// The numbers of a sample; none without one. io::InputError for a file that holds none.
std::vector<float> read_sample(const std::string& path) {
  using namespace hipress;
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

/// Puts what the sample comes to into every row of an algorithm whose messages vary. io::InputError
/// if there is none.
void apply_sample(const std::vector<float>& values, Profile& profile) {
  bool found = false;
  for (auto& [name, costs] : profile.codecs) {
    if (!is_lossless(name)) continue;
    costs.message_share = profiler::message_share(*hipress::kernels::make_codec(name), values);
    fmt::print(stderr, "{}: messages come to {:.1f} % of the longest\n", name,
               100 * costs.message_share);
    found = true;
  }
  if (found) return;
  throw hipress::io::InputError(
      "--sample: the profile has no algorithm whose messages vary with the data; measure one: "
      "--algorithm lossless");
}

/// One number of a profile is replaced, so nothing is measured.
int run_sample(const Arguments& arguments, const std::vector<float>& sample) {
  using namespace hipress;
  Profile profile = costs::read_profile(arguments.base);
  apply_sample(sample, profile);
  costs::write_profile(arguments.output, profile);
  fmt::print("written to {}\n", arguments.output);
  return 0;
}

int run(Arguments& arguments) {
  using namespace hipress;
  profiler::Options options;
  options.algorithms = algorithms_of(arguments);
  const std::optional<io::Launch> launch = io::read_launch();
  const bool reports = !launch || launch->rank == 0;
  check(arguments, reports);
  if (reports) io::require_writable(arguments.output);
  const std::vector<float> sample = read_sample(arguments.sample);
  if (!sample.empty() && !arguments.base.empty() && arguments.anew.empty()) {
    return reports ? run_sample(arguments, sample) : 0;
  }
  if (!sample.empty() && arguments.base.empty() &&
      std::ranges::none_of(options.algorithms, is_lossless)) {
    throw io::InputError(
        "--sample is of algorithms whose messages vary with the data, and "
        "--algorithm names none: add lossless");
  }
  arguments.secret.read();
  options.nodes = count_ranks(arguments, launch);
  options.effort = arguments.quick ? profiler::Effort::kQuick : profiler::Effort::kFull;
  options.passes = passes_of(arguments);
  const replay::DeviceChoice choice =
      replay::choose_device({.device = arguments.device,
                             .transport = arguments.transport,
                             .interface = arguments.interface,
                             .ranks = static_cast<int>(options.nodes)},
                            launch);
  options.device = choice.device;
  options.nccl = choice.nccl;
  options.timeout_s = arguments.timeout_s;
  std::optional<Profile> base;
  if (!arguments.base.empty()) options.base = &base.emplace(costs::read_profile(arguments.base));
  const auto endpoint = connect(arguments, launch, base);
  options.endpoint = endpoint.get();
  options.anew = part_of(arguments);
  const auto progress = [&](const std::string& what) {
    if (reports) spdlog::info("measuring {}", what);
  };
  Profile profile = profiler::measure_while_steady(
      options, progress, probe_of(arguments, options),
      arguments.again.value_or(arguments.quick ? kAgainQuick : kAgain));
  if (!reports) return 0;
  if (!sample.empty()) apply_sample(sample, profile);
  const bool new_cores = !base || options.anew != profiler::Part::kKernels;
  if (new_cores && profile.cores > 0 && profile.link.core_s_per_byte == 0) {
    spdlog::warn(
        "no core time of transfers could be told, so that predictions take them to cost the cores "
        "nothing: measure again while nothing else runs, or take one machine's profile as --base");
  }
  costs::write_profile(arguments.output, profile);
  if (arguments.json) {
    fmt::print("{}\n", to_json(profile, arguments.output).dump(2));
  } else {
    print(profile, arguments.output);
  }
  return 0;
}

}  // namespace

int main(int argc, char** argv) {
  Arguments arguments;
  return hipress::tools::run_tool(
      argc, argv,
      {"hipress-profile",
       "Measures compression kernels and links of this machine through the executor, and writes "
       "profile.yaml.",
       "hipress-profile --quick --algorithm onebit,fp16 --output profile.yaml"},
      [&](CLI::App& app) { declare(app, arguments); }, [&] { return run(arguments); });
}
