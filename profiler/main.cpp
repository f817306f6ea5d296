#include <fmt/format.h>
#include <spdlog/spdlog.h>

#include <nlohmann/json.hpp>

#include "io/error.hpp"
#include "io/quantity.hpp"
#include "io/tool.hpp"
#include "kernels/codec.hpp"
#include "profiler/profiler.hpp"

namespace {

using hipress::costs::Curve;
using hipress::costs::Profile;

struct Arguments {
  std::string device = "cpu";
  std::vector<std::string> algorithms;
  std::uint32_t nodes = 4;
  std::string output = "profile.yaml";
  bool quick = false;
  bool json = false;
};

void declare(CLI::App& app, Arguments& arguments) {
  app.add_option("--device", arguments.device, "cpu; measuring on cuda is not part of this version")
      ->capture_default_str();
  app.add_option(
         "--algorithm", arguments.algorithms,
         "what to measure, comma-separated (default: " + hipress::kernels::algorithm_names() + ")")
      ->delimiter(',');
  app.add_option("--nnodes", arguments.nodes,
                 "ranks that share this machine when links are measured")
      ->capture_default_str();
  app.add_option("--output", arguments.output, "where to write the profile")->capture_default_str();
  app.add_flag("--quick", arguments.quick,
               "fewer sizes and repetitions: a quarter of a minute for two algorithms");
  app.add_flag("--json", arguments.json, "print one JSON object instead of the table");
}

/// Gradient bytes per second at 2^22 elements, the slice size at which most of the time goes.
double rate(const Curve& curve) {
  constexpr std::int64_t kElements = 1 << 22;
  return 4.0 * kElements / curve(kElements);
}

nlohmann::json to_json(const Profile& profile, const std::string& path) {
  nlohmann::json codecs = nlohmann::json::object();
  for (const auto& [name, costs] : profile.codecs) {
    codecs[name] = {{"encode_Bps", rate(costs.encode)},
                    {"decode_Bps", rate(costs.decode)},
                    {"decode_add_Bps", rate(costs.decode_add)}};
  }
  return {{"profile", path},
          {"hardware", profile.hardware},
          {"codecs", codecs},
          {"link",
           {{"bandwidth_Bps", profile.link.bandwidth},
            {"overhead_s", profile.link.overhead_s},
            {"latency_s", profile.link.latency_s},
            {"core_s_per_byte", profile.link.core_s_per_byte},
            {"core_s_per_message", profile.link.core_s_per_message}}}};
}

void print(const Profile& profile, const std::string& path) {
  fmt::print("{}\n\n{:12} {:>12} {:>12} {:>12}   GB/s of gradient, slices of 2^22 elements\n",
             profile.hardware, "codec", "encode", "decode", "decode+add");
  for (const auto& [name, costs] : profile.codecs) {
    fmt::print("{:12} {:12.2f} {:12.2f} {:12.2f}\n", name, rate(costs.encode) / 1e9,
               rate(costs.decode) / 1e9, rate(costs.decode_add) / 1e9);
  }
  using hipress::io::format_bandwidth, hipress::io::format_duration;
  fmt::print("{:12} {:>12} {:>12} {:12.2f}\n\n", "raw merge", "", "", rate(profile.merge) / 1e9);
  fmt::print("one flow {}, per message {} and {} of latency\n",
             format_bandwidth(profile.link.bandwidth), format_duration(profile.link.overhead_s),
             format_duration(profile.link.latency_s));
  fmt::print("a byte costs {:.3f} ns of a core, a message {}; {} cores\n",
             profile.link.core_s_per_byte * 1e9, format_duration(profile.link.core_s_per_message),
             profile.cores);
  fmt::print("written to {}\n", path);
}

int run(const Arguments& arguments) {
  using namespace hipress;
  if (arguments.device != "cpu") {
    throw io::InputError(
        fmt::format("--device '{}': this version measures on cpu alone; for a GPU use a shipped "
                    "profile (--profile v100_100g)",
                    arguments.device));
  }
  profiler::Options options;
  options.algorithms = arguments.algorithms;
  if (options.algorithms.empty()) {
    for (const kernels::AlgorithmRow& row : kernels::algorithms())
      options.algorithms.emplace_back(row.name);
  }
  options.nodes = arguments.nodes;
  options.effort = arguments.quick ? profiler::Effort::kQuick : profiler::Effort::kFull;
  const Profile profile = profiler::measure(
      options, [](const std::string& what) { spdlog::info("measuring {}", what); });
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
  return hipress::io::run_tool(
      argc, argv,
      {"hipress-profile",
       "Measures compression kernels and links of this machine through the executor, and writes "
       "profile.yaml.",
       "hipress-profile --quick --algorithm onebit,fp16 --output profile.yaml"},
      [&](CLI::App& app) { declare(app, arguments); }, [&] { return run(arguments); });
}
