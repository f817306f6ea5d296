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

/// Largest K that a plan may ask for.
inline constexpr std::int64_t kMaxPartitions = std::int64_t{1} << 20;

using models::cast_of;

/// Whether the name is that of a cast to half precision.
bool is_cast(std::string_view name);

/// The decision sends the gradient as what it is: raw, or with the cast of its own dtype.
bool is_raw(const models::Gradient& gradient, const casync::Plan& plan,
            const casync::Decision& decision);

/// How many gradients the plan compresses.
std::size_t count_compressed(const models::Model& model, const casync::Plan& plan);

/// The algorithms that the plan really compresses with.
std::vector<std::string> used_algorithms(const models::Model& model, const casync::Plan& plan);

/// What the expansion must know of a codec that is called so.
casync::Algorithm algorithm_of(const std::string& name,
                               const std::shared_ptr<const kernels::Codec>& codec);

/// Why an algorithm does not compress a gradient of those dimensions; empty: it does.
std::string refusal(const casync::Algorithm& algorithm, const models::Gradient& gradient);

/// The place of the algorithm of that name in a plan's list, if it is there.
std::optional<std::int8_t> find_algorithm(const std::vector<casync::Algorithm>& algorithms,
                                          std::string_view name);

/// The place that an algorithm gets which is added to the list. InputError that names it if a plan
/// cannot mix so many.
std::int8_t next_place(const std::vector<casync::Algorithm>& algorithms, std::string_view name);

/// Makes a plan decision by decision. All gradients are raw with K = 1 until decided.
class PlanBuilder {
 public:
  /// InputError for N = 0, std::invalid_argument for an unknown topology. `context` must outlive
  /// it.
  explicit PlanBuilder(const PlanContext& context);

  /// The index of the algorithm that `text` describes, whose codec is made at its first use.
  /// InputError that lists what there is.
  std::int8_t algorithm(const std::string& text);

  void decide(std::size_t gradient, std::int8_t algorithm, std::int32_t partitions);

  /// What the gradient's parameter is gathered as by a sharded schedule.
  void gather(std::size_t gradient, std::int8_t algorithm);

  /// refusal() of an algorithm that has a place.
  std::string refusal_of(std::int8_t algorithm, std::size_t gradient) const;

  ResolvedPlan take() { return std::move(resolved_); }

 private:
  const PlanContext& context_;
  ResolvedPlan resolved_;
};

/// What a plan file says of one gradient.
struct PlanRow {
  int line = 0;
  std::string_view name;
  std::optional<std::int64_t> elements;  ///< not every form has them
  std::string algorithm;                 ///< empty: raw
  std::int64_t partitions = 1;           ///< 1 … kMaxPartitions
  std::string gather = {};               ///< an algorithm; empty: raw
};

/// Matches the rows of a plan file to the gradients of a model, by name.
class PlanMatcher {
 public:
  PlanMatcher(std::string file, const PlanContext& context);

  /// InputError at the row's line for a gradient that the model lacks, that was there before, or
  /// that has other elements, and for an algorithm that there is not or that is not trusted.
  void add(const PlanRow& row);

  /// InputError if a gradient of the model had no row.
  ResolvedPlan take();

 private:
  [[noreturn]] void refuse(const PlanRow& row, const std::string& message) const;

  std::string file_;
  const PlanContext& context_;
  Trust trust_;
  PlanBuilder builder_;
  std::unordered_map<std::string_view, std::size_t> index_;  // of the model's gradients
  std::vector<int> lines_;                                   // of each gradient's row, 0: none yet
};

/// The two file forms.
ResolvedPlan read_plan_text(const std::string& file, const PlanContext& context);
ResolvedPlan read_plan_yaml(const std::string& file, const PlanContext& context);

}  // namespace hipress::plans
