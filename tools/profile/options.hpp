#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "tools/options/job.hpp"
#include "transport/endpoint.hpp"

namespace CLI {
class App;
}

namespace hipress::profiler {

inline constexpr int kAgain = 3, kAgainQuick = 1;

/// The command line of hipress-profile.
struct CommandLine {
  std::string device = "cpu", transport{transport::kDefaultTransport};
  std::vector<std::string> algorithms;
  std::uint32_t nodes = 0;  ///< 0: the launcher's, or four threads
  std::string output = "profile.yaml";
  std::string base, anew;  ///< no part: links, with a base
  std::string sample;      ///< a file of fp32 numbers
  tools::JobOptions job{.name = "hipress-profile"};
  double timeout_s = 60;
  bool quick = false;
  std::optional<int> passes;
  std::optional<int> again;
  bool json = false;

  /// How often all is measured again where the machine's speed changed.
  int again_at_most() const { return again.value_or(quick ? kAgainQuick : kAgain); }
};

/// Adds the options to the command line.
void declare(CLI::App& app, CommandLine& line);

}  // namespace hipress::profiler
