#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "casync/topology.hpp"
#include "io/yaml.hpp"
#include "planner/advice/request.hpp"
#include "requests/field.hpp"

/// The request "plan"; hipress-plan makes it from its command line.
namespace hipress::requests {

/// Fields of job broadcast.
struct BroadcastRequest {
  std::string bytes = {};  ///< size of one tensor; empty: `input` gives the tensors
  std::optional<std::uint32_t> root = {};
  std::optional<std::int32_t> chunks = {};
  bool lossless = false;
};

struct PlanRequest {
  planner::Request request;
  std::string job = "mean";
  BroadcastRequest broadcast;
  GivenFields given = {};
  /// Kinds of the requested schedules; empty while unknown.
  std::vector<planner::JobKind> kinds = {};
  /// Numbers of hosts of the machine. If there are several, they are compared and no plan is made
  /// (requests/hosts.hpp).
  std::vector<std::uint32_t> hosts = {};
  std::vector<std::string> schedules;  ///< none: ddp
  std::vector<std::string> wraps;      ///< rules for layers to compare; see `request.wrap`
  std::string shards_by;               ///< value for Plan::shards_by; empty: a library
  bool required_bandwidth = false;
  std::string utilization;  ///< "50%,95%", for required_bandwidth
  std::string gpu_memory;   ///< "80GB", for each GPU; empty: unlimited
  std::string optimizer = "adamw";
  std::string break_even;  ///< row of planner::quantities(); empty: not requested
  bool advise = false;

  std::string today;              ///< baseline for savings; empty: default of the schedule's kind
  std::string activation_memory;  ///< "20GB", for each GPU, beside the plan's state

  /// Value for Plan::shards_by. Throws std::invalid_argument if the topology cannot carry shards.
  std::string known_shards_by() const {
    return shards_by.empty() ? std::string(casync::kLibrary) : casync::known_shards_by(shards_by);
  }
  /// File for the plan; empty: no file, and the plan may use all features of the YAML format.
  std::string output;
  std::string report;  ///< file for the page; empty: none
  bool page = false;   ///< includes the page in the result

  bool makes_page() const { return page || !report.empty(); }
  /// Options for machines, including `hosts` if it is one number.
  costs::MachineOptions machines() const {
    costs::MachineOptions made = request.machines;
    if (hosts.size() == 1) made.hosts = hosts.front();
    return made;
  }
  bool is_given(std::string_view field) const { return given.contains(field); }
  bool yaml() const { return output.empty() || io::is_yaml_name(output); }
  planner::PlanForm form() const {
    return yaml() ? planner::PlanForm::kYaml : planner::PlanForm::kText;
  }
};

/// Fields of the request; they point into it.
Fields fields(PlanRequest& request);

/// Throws io::InputError for a field that does not fit the requested kinds, as known so far.
inline void refuse_unfit(PlanRequest request) { refuse_unfit(fields(request)); }

}  // namespace hipress::requests
