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

/// Plan files.
///
///   plans::PlanContext context{.model = model, .topology = "ring", .nodes = 4};
///   plans::ResolvedPlan resolved = plans::resolve_plan("SeCoPaPlan.txt", context);
///   resolved = plans::resolve_plan("threshold:262144", context);  // a named plan
///   std::puts(plans::title("SeCoPaPlan.txt", resolved.plan).c_str());
///   plans::write_plan_yaml("plan.yaml", model, resolved.plan, {.search = "secopa"});
namespace hipress::plans {

/// Fallback of a plan's sparse gradients at densities that are too high to be sent sparse.
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
  /// Transfer order for which a plan YAML was made; unset if it gives none.
  std::optional<casync::TransferOrder> transfer_order = {};
  std::optional<DenseFallback> dense = {};
};

/// Inputs of resolve_plan() besides the plan.
struct PlanContext {
  const models::Model& model;
  std::string topology = "ps";
  std::uint32_t nodes = 1;
  std::string algorithm =
      "onebit";      ///< codec of entries that are compressed but name none: "tbq(tau=0.25)"
  Trust trust = {};  ///< programs that a plan file may name, besides `algorithm`
  double compile_timeout_s = kernels::kCompileTimeout_s;
  std::string other_names = {};  ///< names of the caller's own plans, for messages: "ddp, best"
};

/// Reads a plan file, or makes a named plan. If the text is both a plan's name and a file's, the
/// name counts.
///
/// Named plans have K = N:
///  - "none": all gradients raw; "all": all compressed.
///  - An algorithm's name, with or without parameters, as "fp16": all gradients with it.
///  - "threshold" or "threshold:262144": gradients of at least that many elements compressed.
///
/// A file is a SeCoPaPlan.txt, with lines `name,elements,y|n,K[,algorithm]` or `name,y|n,K`, or a
/// plan YAML (*.yaml, *.yml), whose topology and nodes must agree with the context and which names
/// all of its algorithms. A raw gradient in half precision is resolved to the cast to its dtype. An
/// algorithm's name in the resolved plan is its whole text ("tbq(tau=0.25)").
///
/// Throws InputError with file and line for a malformed line, a gradient that the model lacks (the
/// error names it), one that is missing or listed twice, a number of elements that differs from the
/// model's, K outside 1 … 2^20, an unknown algorithm, or a program (x.pse) that the context does
/// not trust. Also throws InputError for N = 0.
ResolvedPlan resolve_plan(const std::string& path_or_name, const PlanContext& context);

/// True if the text is the name of a plan, such as "none", rather than a file. Throws InputError as
/// resolve_plan() does for a malformed threshold.
bool is_named_plan(const std::string& path_or_name, const PlanContext& context);

/// Number of nodes of a plan YAML; unset for other files and for named plans. Throws InputError as
/// resolve_plan() does.
std::optional<std::uint32_t> nodes_of_plan(const std::string& path_or_name);

/// Topology of a plan YAML, a row of casync::topologies(); unset for other files and for named
/// plans. Throws InputError as resolve_plan() does.
std::optional<std::string> topology_of_plan(const std::string& path_or_name);

/// Schedule of a plan YAML; unset if it gives none, for other files and for named plans. Throws
/// InputError as resolve_plan() does.
std::optional<std::string> schedule_of_plan(const std::string& path_or_name);

/// Applies a plan YAML's rule for layers to the model, if it has one (models::wrap()). Throws
/// InputError as resolve_plan() does, and for a rule that the model does not fit.
void wrap_as_planned(const std::string& path_or_name, models::Model& model);

/// Title of a plan: "plan secopa, ring, N = 4". A file appears without its folder.
std::string title(const std::string& path_or_name, const casync::Plan& plan);

/// Throws InputError for a gradient's name that a line of SeCoPaPlan.txt cannot hold. Call it
/// before a long search, so that it does not fail at the end.
void require_text_names(const models::Model& model);

/// Writes SeCoPaPlan.txt: one line `name,elements,y|n,K` per gradient, in input order. Compressed
/// lines have a fifth field only if the plan mixes algorithms or has one with stages. The file ends
/// with a newline and has no trailing blank line. Throws InputError as require_text_names() does.
void write_plan_text(const std::string& path, const models::Model& model, const casync::Plan& plan);

/// Contents of a plan YAML besides the decisions.
struct PlanReport {
  std::optional<double> predicted_iteration_s = {};  ///< unset if it was not simulated
  std::string search;                                ///< "secopa", "timeline"
  std::string profile;                       ///< name and fingerprint: "sosp21 0123456789abcdef"
  std::string network;                       ///< "port", "fair"
  std::optional<double> lower_bound_s = {};  ///< lower bound over all plans of the search
  /// Transfer order for which the plan was made; written unless kReady.
  casync::TransferOrder transfer_order = casync::TransferOrder::kReady;
  std::optional<DenseFallback> dense = {};
  std::string wrap = {};  ///< rule that made the model's layers (models::wrap()); empty: no rule
};

/// Writes the plan YAML: schema hipress.plan/1, the report, this tool's version, and every
/// gradient's elements, algorithm ("none" if raw) and K. resolve_plan() reads it back.
void write_plan_yaml(const std::string& path, const models::Model& model, const casync::Plan& plan,
                     const PlanReport& report);

/// Fingerprint of a job's exchanges, 16 hex digits that ranks compare before they start. It covers
/// the gradients' names, elements, dtypes and shapes of two or more dimensions, and the plan's
/// topology, nodes and decisions. Ready times count only through the bulk groups and the order of
/// all-reduces (without pipelining, the order of all units). Throws std::invalid_argument as
/// casync::make_layout() does.
std::string plan_fingerprint(const models::Model& model, const casync::Plan& plan);

}  // namespace hipress::plans
