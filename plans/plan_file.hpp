#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "casync/plan.hpp"
#include "kernels/codec/codec.hpp"
#include "models/model.hpp"
#include "plans/trust.hpp"

namespace hipress::plans {

/// How a plan's sparse gradients are sent at a density that is too high for it.
struct DenseFallback {
  double above = 1;  ///< gradients of a higher density (kernels::kDensity) are sent dense
  std::string algorithm = "none";  ///< "none": raw
  std::int32_t partitions = 1;     ///< K
  bool operator==(const DenseFallback&) const = default;
};

/// A plan whose algorithms are resolved: `codecs[i]` is the codec of `plan.algorithms[i]`.
struct ResolvedPlan {
  casync::Plan plan;
  std::vector<std::shared_ptr<const kernels::Codec>> codecs;
  /// That a plan YAML was made for; none: it does not say.
  std::optional<casync::TransferOrder> transfer_order = {};
  std::optional<DenseFallback> dense = {};
};

/// What a plan is resolved against.
struct PlanContext {
  const models::Model& model;
  std::string topology = "ps";
  std::uint32_t nodes = 1;
  std::string algorithm =
      "onebit";      ///< codec of entries that are compressed but name none: "tbq(tau=0.25)"
  Trust trust = {};  ///< besides `algorithm`, the programs that a plan file may bring
  double compile_timeout_s = kernels::kCompileTimeout_s;
  std::string other_names = {};  ///< of plans that the caller makes itself: "ddp, best"
};

/// Reads a plan file, or makes a named plan: "none" (all raw), "all" (all compressed), "fp16" or
/// another algorithm's name, with or without parameters (all with that algorithm), "threshold" or
/// "threshold:262144" (compressed from that many elements on). Named plans have K = N. A name wins
/// over a file of that name. A file is a SeCoPaPlan.txt, with lines
/// `name,elements,y|n,K[,algorithm]` or `name,y|n,K`, or a plan YAML (*.yaml, *.yml), whose own
/// topology and nodes must agree with the context and whose algorithms are its own. A raw gradient
/// of a half-precision dtype is resolved to that cast. An algorithm's name in the resolved plan is
/// its whole text ("tbq(tau=0.25)"). InputError with file and line for a malformed line, a gradient
/// that the model lacks (named), one that is missing or listed twice, other elements than the
/// model's, K outside 1 … 2^20, an unknown algorithm, or a program (x.pse) that the context does
/// not trust. InputError also for N = 0.
ResolvedPlan resolve_plan(const std::string& path_or_name, const PlanContext& context);

/// Whether this names a plan, such as none, and no file. InputError as resolve_plan() for a
/// threshold that is no number.
bool is_named_plan(const std::string& path_or_name, const PlanContext& context);

/// How many nodes a plan YAML says that it is for; none for other files and for named plans.
/// InputError as resolve_plan().
std::optional<std::uint32_t> nodes_of_plan(const std::string& path_or_name);

/// The row of casync::topologies() that a plan YAML says that it is for; none for other files and
/// for named plans. InputError as resolve_plan().
std::optional<std::string> topology_of_plan(const std::string& path_or_name);

/// The schedule that a plan YAML says; none: another plan, or none is said.
std::optional<std::string> schedule_of_plan(const std::string& path_or_name);

/// Makes the layers that a plan YAML was made for, where it says so (models::wrap()). InputError as
/// resolve_plan(), and for a rule that the model does not fit.
void wrap_as_planned(const std::string& path_or_name, models::Model& model);

/// "plan secopa, ring, N = 4", for titles: a file by its name without folder.
std::string title(const std::string& path_or_name, const casync::Plan& plan);

/// InputError for a gradient's name that a line of SeCoPaPlan.txt cannot hold: for what takes long
/// to plan, before it is planned.
void require_text_names(const models::Model& model);

/// Writes SeCoPaPlan.txt: one line `name,elements,y|n,K` per gradient, in input order.
/// Compressed lines have a fifth field only if the plan mixes algorithms or has one with stages.
/// The file ends with a newline and has no trailing blank line. InputError as
/// require_text_names().
void write_plan_text(const std::string& path, const models::Model& model, const casync::Plan& plan);

/// What a plan YAML says beside the decisions.
struct PlanReport {
  std::optional<double> predicted_iteration_s = {};  ///< none: it was not simulated
  std::string search;                                ///< "secopa", "timeline"
  std::string profile;                       ///< name and fingerprint: "sosp21 0123456789abcdef"
  std::string network;                       ///< "port", "fair"
  std::optional<double> lower_bound_s = {};  ///< of all plans that were searched
  /// That it was made for; written where it is another than ready.
  casync::TransferOrder transfer_order = casync::TransferOrder::kReady;
  std::optional<DenseFallback> dense = {};
  std::string wrap = {};  ///< the rule that made the model's layers (models::wrap()); empty: none
};

/// Writes the plan YAML: schema hipress.plan/1, the report, this tool's version, and every
/// gradient's elements, algorithm ("none" where it is raw) and K. resolve_plan reads it back.
void write_plan_yaml(const std::string& path, const models::Model& model, const casync::Plan& plan,
                     const PlanReport& report);

/// Identity of what a job exchanges, as 16 hex digits that ranks compare before they start. It
/// covers the gradients' names, elements and dtypes, their shapes where these have several
/// dimensions, topology, nodes and decisions. Of what follows from ready times, it covers the bulk
/// groups and the order of all-reduces (without pipelining, of everything). std::invalid_argument
/// as casync::make_layout().
std::string plan_fingerprint(const models::Model& model, const casync::Plan& plan);

}  // namespace hipress::plans
