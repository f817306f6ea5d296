#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "io/environment.hpp"
#include "requests/field.hpp"
#include "requests/hooks.hpp"
#include "transport/endpoint.hpp"

/// Ranks of a request, which a launcher may have started as processes; else they are threads.
namespace hipress::requests {

/// Meeting place of processes, and their secret.
struct RankOptions {
  std::string job;  ///< tells jobs apart that meet in one place
  std::string rendezvous = {}, interface = {};
  std::optional<std::string> secret_file = {};
  bool insecure = false;
  double silence_s = transport::kDefaultSilence_s;
};

/// Help of fields that mean somewhat different things to each request.
struct RankHelp {
  std::string_view rendezvous, interface;
};

/// Adds the fields, which have no effect where no launcher started this process. NCCL, a value of
/// `transport`, is bound to the interface in any case.
void add(Fields& fields, RankOptions& options, const std::string& transport, const RankHelp& help);

/// Options with which this process joins the others, less `plan` and `timeout_s`. Reads the file of
/// the secret: to be called before any work. io::InputError for a secret that is of no use.
transport::JobOptions job_options(const RankOptions& options,
                                  const std::optional<io::Launch>& launch, const Hooks& hooks);

/// Number of ranks that the launcher started. io::InputError if `nnodes` says another number (0:
/// none), or if several ranks do not know where to meet.
std::uint32_t size_of(const io::Launch& launch, std::uint32_t nnodes, const RankOptions& options);

/// True for processes that meet others; false for ranks that are threads of this process.
inline bool meets(const std::optional<io::Launch>& launch) { return launch && launch->size > 1; }

/// True for the process whose result is reported and written.
inline bool reports(const std::optional<io::Launch>& launch) {
  return !launch || launch->rank == 0;
}

}  // namespace hipress::requests
