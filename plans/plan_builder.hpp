#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "plans/plan_file.hpp"

namespace hipress::plans {

/// Largest K of a plan.
inline constexpr std::int64_t kMaxPartitions = std::int64_t{1} << 20;

using models::cast_of;

/// True if the algorithm is a cast to half precision.
bool is_cast(std::string_view name);

/// True if the decision leaves the gradient as it is: raw, or with the cast to its own dtype.
bool is_raw(const models::Gradient& gradient, const casync::Plan& plan,
            const casync::Decision& decision);

/// Number of gradients that the plan compresses, for their reduction or their gather.
std::size_t count_compressed(const models::Model& model, const casync::Plan& plan);

/// Names of the algorithms that compress at least one gradient of the plan.
std::vector<std::string> used_algorithms(const models::Model& model, const casync::Plan& plan);

/// Properties of a codec that the expansion needs. `name` becomes Algorithm::name.
casync::Algorithm algorithm_of(const std::string& name,
                               const std::shared_ptr<const kernels::Codec>& codec);

/// Reason why the algorithm cannot compress the gradient; empty if it can.
std::string refusal(const casync::Algorithm& algorithm, const models::Gradient& gradient);

/// Index of the algorithm of that name in a plan's list; unset if it is not there.
std::optional<std::int8_t> find_algorithm(const std::vector<casync::Algorithm>& algorithms,
                                          std::string_view name);

/// Index that an algorithm gets when it is added to the list. Throws InputError, which names the
/// algorithm, if the list already has kMostAlgorithms.
std::int8_t next_place(const std::vector<casync::Algorithm>& algorithms, std::string_view name);

/// Index of the algorithm of that name; adds the algorithm if it is missing. Throws InputError as
/// next_place() does.
std::int8_t place_in(std::vector<casync::Algorithm>& algorithms,
                     const casync::Algorithm& algorithm);

/// Makes a plan decision by decision. All gradients are raw with K = 1 until decided.
class PlanBuilder {
 public:
  /// Throws InputError for N = 0, std::invalid_argument for an unknown topology. `context` must
  /// outlive the builder.
  explicit PlanBuilder(const PlanContext& context);

  /// Index of the algorithm that `text` describes. The first call with a text makes its codec.
  /// Throws InputError, which lists the known algorithms, for an unknown one.
  std::int8_t algorithm(const std::string& text);

  void decide(std::size_t gradient, std::int8_t algorithm, std::int32_t partitions);

  /// Sets the algorithm with which a sharded schedule gathers the gradient's parameter.
  void gather(std::size_t gradient, std::int8_t algorithm);

  /// refusal() of an algorithm given by its index.
  std::string refusal_of(std::int8_t algorithm, std::size_t gradient) const;

  ResolvedPlan take() { return std::move(resolved_); }

 private:
  const PlanContext& context_;
  ResolvedPlan resolved_;
};

/// A gradient's entry in a plan file.
struct PlanRow {
  int line = 0;
  std::string_view name;
  std::optional<std::int64_t> elements;  ///< unset in the older text form
  std::string algorithm;                 ///< empty: raw
  std::int64_t partitions = 1;           ///< 1 … kMaxPartitions
  std::string gather = {};               ///< an algorithm; empty: raw
};

/// Matches the rows of a plan file to the gradients of a model, by name.
class PlanMatcher {
 public:
  PlanMatcher(std::string file, const PlanContext& context);

  /// Throws InputError at the row's line for a gradient that the model lacks, that is repeated or
  /// that has a different number of elements, and for an unknown or untrusted algorithm.
  void add(const PlanRow& row);

  /// Throws InputError if a gradient of the model had no row.
  ResolvedPlan take();

 private:
  [[noreturn]] void refuse(const PlanRow& row, const std::string& message) const;

  std::string file_;
  const PlanContext& context_;
  Trust trust_;
  PlanBuilder builder_;
  std::unordered_map<std::string_view, std::size_t> index_;  // the model's gradients by name
  // By gradient: line of its row; 0: no row.
  std::vector<int> lines_;
};

/// Readers of the two file formats.
ResolvedPlan read_plan_text(const std::string& file, const PlanContext& context);
ResolvedPlan read_plan_yaml(const std::string& file, const PlanContext& context);

}  // namespace hipress::plans
