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

/// The request "profile", which hipress-profile makes of its command line.
namespace hipress::requests {

/// Times that all is measured again where the machine's speed changed, and with `quick`.
inline constexpr std::int32_t kAgain = 3, kAgainQuick = 1;

struct ProfileRequest {
  std::string device = "cpu", transport{transport::kDefaultTransport};
  std::vector<std::string> algorithms;  ///< lists, separated by commas; none: all
  std::uint32_t nnodes = 0;             ///< 0: the launcher's, or four threads
  std::string output;                   ///< empty: no profile is written
  std::string base;
  std::string anew;    ///< empty: links, with a base
  std::string sample;  ///< a file of fp32 numbers
  RankOptions ranks{.job = "hipress-profile"};
  double timeout_s = 60;
  bool quick = false;
  std::optional<std::int32_t> passes;
  std::optional<std::int32_t> again;
  GivenFields given = {};
};

/// Its fields; they point into the request.
Fields fields(ProfileRequest& request);

/// What was measured. All ranks have the same.
struct Profiled {
  bool reports = true;  ///< this process's result is the job's
  costs::Profile profile;
  std::optional<std::string> output;  ///< the file that was written
};

/// Measures, as one rank of a job if a launcher started this process, and writes the profile if an
/// output is named and this process reports. io::InputError for fields that contradict each other.
Profiled profile(const ProfileRequest& request, const Hooks& hooks);

/// What --json prints.
io::Document document(const Profiled& profiled);
void fill(Record& record, const Profiled& profiled);

/// Answers the request.
io::Document answer(const ProfileRequest& request, const Hooks& hooks);

}  // namespace hipress::requests
