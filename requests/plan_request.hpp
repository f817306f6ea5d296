#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "casync/topology.hpp"
#include "io/yaml.hpp"
#include "planner/advice/request.hpp"
#include "requests/field.hpp"

/// The request "plan", which hipress-plan makes of its command line.
namespace hipress::requests {

/// What job broadcast asks for.
struct BroadcastRequest {
  std::string bytes = {};  ///< of one tensor; empty: `input` says what is sent
  std::optional<std::uint32_t> root = {};
  std::optional<std::int32_t> chunks = {};
  bool lossless = false;
};

struct PlanRequest {
  planner::Request request;
  std::string job = "mean";
  BroadcastRequest broadcast;
  GivenFields given = {};
  /// Kinds of the schedules that are asked for; empty: they are not known yet.
  std::vector<planner::JobKind> kinds = {};
  std::vector<std::string> schedules;  ///< none: ddp
  std::vector<std::string> wraps;      ///< rules of which each becomes `request.wrap`
  std::string shards_by;               ///< Plan::shards_by in any case; empty: a library
  bool required_bandwidth = false;
  std::string utilization;  ///< "50%,95%"; of required_bandwidth
  std::string gpu_memory;   ///< "80GB", of each GPU; empty: whatever is needed
  std::string optimizer = "adamw";
  std::string break_even;  ///< a row of planner::quantities(); empty: not asked for
  bool advise = false;

  std::string today;              ///< baseline that savings are of; empty: the kind's default
  std::string activation_memory;  ///< "20GB", of each GPU, beside the plan's state

  /// Plan::shards_by. std::invalid_argument for what carries no shards.
  std::string known_shards_by() const {
    return shards_by.empty() ? std::string(casync::kLibrary) : casync::known_shards_by(shards_by);
  }
  /// The plan to write; empty: none is, and the plan may be all that a YAML can say.
  std::string output;
  std::string report;  ///< page to write; empty: none is
  bool page = false;   ///< the result has that page as text, too

  bool makes_page() const { return page || !report.empty(); }
  bool is_given(std::string_view field) const { return given.contains(field); }
  bool yaml() const { return output.empty() || io::is_yaml_name(output); }
  planner::PlanForm form() const {
    return yaml() ? planner::PlanForm::kYaml : planner::PlanForm::kText;
  }
};

/// Its fields; they point into the request.
Fields fields(PlanRequest& request);

/// io::InputError for a field that the request cannot have, as far as is known of its kinds.
inline void refuse_unfit(PlanRequest request) { refuse_unfit(fields(request)); }

}  // namespace hipress::requests
