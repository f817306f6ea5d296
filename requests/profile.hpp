#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "costs/profile.hpp"
#include "io/document.hpp"
#include "requests/field.hpp"
#include "requests/hooks.hpp"
#include "requests/ranks.hpp"
#include "requests/record.hpp"
#include "transport/endpoint.hpp"

/// The request "profile"; hipress-profile makes it from its command line.
namespace hipress::requests {

/// Numbers of repetitions if the machine's speed changed: the default, and with `quick`.
inline constexpr std::int32_t kAgain = 3, kAgainQuick = 1;

struct ProfileRequest {
  std::string device = "cpu", transport{transport::kDefaultTransport};
  std::vector<std::string> algorithms;  ///< lists separated by commas; empty: all
  std::uint32_t nnodes = 0;             ///< 0: the launcher's number, or four threads
  std::string output;                   ///< empty: no file is written
  std::string base;
  std::string anew;    ///< parts to measure again; empty: links, if a base is given
  std::string sample;  ///< file of fp32 numbers
  RankOptions ranks{.job = "hipress-profile"};
  double timeout_s = 60;
  bool quick = false;
  std::optional<std::int32_t> passes;
  std::optional<std::int32_t> again;
  GivenFields given = {};
};

/// Fields of the request; they point into it.
Fields fields(ProfileRequest& request);

/// Result of a measurement. All ranks have the same.
struct Profiled {
  bool reports = true;  ///< this process's result is the job's
  costs::Profile profile;
  std::optional<std::string> output;  ///< file written
};

/// Measures a profile, as one rank of a job if a launcher started this process. Writes the profile
/// if an output is named and this process reports. Throws io::InputError for contradictory fields.
Profiled profile(const ProfileRequest& request, const Hooks& hooks);

/// Document that --json prints.
io::Document document(const Profiled& profiled);
void fill(Record& record, const Profiled& profiled);

io::Document answer(const ProfileRequest& request, const Hooks& hooks);

}  // namespace hipress::requests
