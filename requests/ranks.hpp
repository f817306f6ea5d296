#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "io/environment.hpp"
#include "requests/field.hpp"
#include "requests/hooks.hpp"
#include "transport/endpoint.hpp"

/// Ranks of a request: processes that a launcher started, or else threads of this process.
namespace hipress::requests {

/// Rendezvous of a job's processes, and their secret.
struct RankOptions {
  std::string job;  ///< distinguishes jobs with the same rendezvous
  std::string rendezvous = {}, interface = {};
  std::optional<std::string> secret_file = {};
  bool insecure = false;
  double silence_s = transport::kDefaultSilence_s;
};

/// Help texts of fields whose meaning depends on the request.
struct RankHelp {
  std::string_view rendezvous, interface;
};

/// Adds the fields of RankOptions. Without a launcher, ranks are threads and the fields have no
/// effect (Field::idle()), except that NCCL uses `interface` among threads, too.
void add(Fields& fields, RankOptions& options, const std::string& transport, const RankHelp& help);

/// Options for joining the job's other processes; `plan` and `timeout_s` are left to the caller.
/// Reads the secret's file, so call it before any work. Throws io::InputError for an unusable
/// secret.
transport::JobOptions job_options(const RankOptions& options,
                                  const std::optional<io::Launch>& launch, const Hooks& hooks);

/// Number of ranks that the launcher started. Throws io::InputError if `nnodes` (0: not given)
/// differs from it, or if several ranks have no rendezvous.
std::uint32_t size_of(const io::Launch& launch, std::uint32_t nnodes, const RankOptions& options);

/// True if this process is one of several ranks; false if all ranks are threads of this process.
inline bool meets(const std::optional<io::Launch>& launch) { return launch && launch->size > 1; }

/// True for the process that reports and writes the result.
inline bool reports(const std::optional<io::Launch>& launch) {
  return !launch || launch->rank == 0;
}

}  // namespace hipress::requests
