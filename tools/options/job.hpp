#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "io/environment.hpp"
#include "transport/endpoint.hpp"

namespace CLI {
class App;
}

namespace hipress::tools {

/// The options of tools whose ranks a launcher may start: where these meet, and how they know each
/// other.
struct JobOptions {
  std::string name;  ///< tells jobs apart that meet in one place
  std::string rendezvous = {}, interface = {};
  std::optional<std::string> secret_file = {};
  bool insecure = false;
  double silence_s = transport::kDefaultSilence_s;
  std::string secret = {};  ///< what the file holds

  /// Reads the file, if one is given: to be called before any work. io::InputError with the remedy
  /// if it is of no use.
  void read_secret();
  /// Where no launcher started this process, warns of each option that differs from `untouched`,
  /// the tool's defaults: ranks are then threads. NCCL, where it is used, is bound to the interface
  /// in any case.
  void warn_of_unused(const std::optional<io::Launch>& launch, const JobOptions& untouched,
                      bool nccl) const;
  /// Sets all that is given.
  void apply(transport::JobOptions& job) const;
};

/// What a tool's help says of options that mean somewhat different things to each.
struct JobHelp {
  std::string_view rendezvous, interface;
};

/// Adds the options to a tool's command line.
void declare(CLI::App& app, JobOptions& options, const JobHelp& help);

/// How many ranks the launcher started; io::InputError if --nnodes says another number (0: none).
std::uint32_t size_of(const io::Launch& launch, std::uint32_t nnodes);

/// io::InputError unless several ranks that a launcher started know where to meet.
void require_rendezvous(const io::Launch& launch, const JobOptions& options);

}  // namespace hipress::tools
