#include "costs/stage_costs.hpp"

#include <fmt/format.h>

#include <Eigen/Dense>
#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <stdexcept>

#include "costs/robust.hpp"
#include "kernels/codec/algorithm_list.hpp"

namespace hipress::costs {
namespace {

constexpr Eigen::Index kTerms = 5;
using Terms = std::array<double, kTerms>;

/// Factors of the five coefficients, in their order.
Terms terms_of(const StageWork& work) {
  return {1, static_cast<double>(work.elements), static_cast<double>(work.element_ranks),
          static_cast<double>(work.values), static_cast<double>(work.value_ranks)};
}

StageWork& operator+=(StageWork& sum, const StageWork& work) {
  sum.elements += work.elements;
  sum.element_ranks += work.element_ranks;
  sum.values += work.values;
  sum.value_ranks += work.value_ranks;
  return sum;
}

std::int64_t values_of(const kernels::Stage& stage) {
  return stage.bytes / kernels::bytes_per_value(stage.values);
}

/// Non-empty subsets of the terms, smaller ones first.
std::vector<unsigned> subsets() {
  std::vector<unsigned> all;
  for (unsigned subset = 1; subset < 1U << kTerms; ++subset) all.push_back(subset);
  std::ranges::stable_sort(all, {}, [](unsigned subset) { return std::popcount(subset); });
  return all;
}

/// Non-negative coefficients that minimise ‖matrix·x − target‖². The optimum solves the ordinary
/// least-squares problem of its positive terms. So it is the best of those ordinary solutions, over
/// all 31 subsets of the five terms, that have no negative coefficient.
Eigen::VectorXd non_negative_least_squares(const Eigen::MatrixXd& matrix,
                                           const Eigen::VectorXd& target) {
  // Smaller improvements of the loss are rounding errors: below kBetter relatively, or, if the fit
  // is perfect, below kPerfect absolutely.
  constexpr double kBetter = 1e-6, kPerfect = 1e-20;
  Eigen::VectorXd best = Eigen::VectorXd::Zero(kTerms);
  double best_loss = target.squaredNorm();
  for (const unsigned subset : subsets()) {
    std::vector<Eigen::Index> columns;
    for (Eigen::Index term = 0; term < kTerms; ++term) {
      if ((subset >> term & 1U) != 0) columns.push_back(term);
    }
    const Eigen::MatrixXd some = matrix(Eigen::all, columns);
    const Eigen::VectorXd x = some.colPivHouseholderQr().solve(target);
    if (!x.allFinite() || x.minCoeff() < 0) continue;
    const double loss = (some * x - target).squaredNorm();
    if (loss >= best_loss * (1 - kBetter) - kPerfect) continue;
    best_loss = loss;
    best.setZero();
    best(columns) = x;
  }
  return best;
}

StageCosts to_costs(const Eigen::VectorXd& coefficients) {
  return {coefficients[0], coefficients[1], coefficients[2], coefficients[3], coefficients[4]};
}

std::vector<double> relative_residuals(const std::vector<StageSample>& samples,
                                       const StageCosts& costs) {
  std::vector<double> residuals;
  for (const StageSample& sample : samples)
    residuals.push_back(std::abs(costs.seconds(sample.work) / sample.seconds - 1));
  return residuals;
}

/// Matrix with one column per term. Columns are divided by their largest entry for conditioning:
/// elements are in the millions, seconds in the billionths.
struct Problem {
  explicit Problem(const std::vector<StageSample>& samples)
      : matrix(static_cast<Eigen::Index>(samples.size()), kTerms) {
    for (Eigen::Index row = 0; row < matrix.rows(); ++row) {
      const StageSample& sample = samples[static_cast<std::size_t>(row)];
      const Terms terms = terms_of(sample.work);
      for (Eigen::Index term = 0; term < kTerms; ++term)
        matrix(row, term) = terms[static_cast<std::size_t>(term)] / sample.seconds;
    }
    scale = matrix.colwise().maxCoeff();
    for (Eigen::Index term = 0; term < kTerms; ++term) {
      if (scale[term] > 0) matrix.col(term) /= scale[term];
    }
  }
  StageCosts solve(const Eigen::VectorXd& weights) const {
    Eigen::VectorXd x = non_negative_least_squares(weights.asDiagonal() * matrix, weights);
    for (Eigen::Index term = 0; term < kTerms; ++term) {
      if (scale[term] > 0) x[term] /= scale[term];
    }
    return to_costs(x);
  }

  Eigen::MatrixXd matrix;
  Eigen::VectorXd scale;
};

void check(const std::vector<StageSample>& samples) {
  if (samples.empty()) throw std::invalid_argument("fit_stage: needs at least one sample");
  for (const StageSample& sample : samples) {
    if (!std::isfinite(sample.seconds) || sample.seconds <= 0) {
      throw std::invalid_argument(
          fmt::format("fit_stage: the sample of {} elements needs a positive, finite time",
                      sample.work.elements));
    }
  }
}

}  // namespace

StageWork encode_work(std::span<const kernels::Stage> stages, int stage, std::int64_t elements) {
  const kernels::Stage& made = stages[static_cast<std::size_t>(stage)];
  const std::int64_t values = values_of(made);
  return {elements, elements * made.rank, values, values * made.rank};
}

StageWork decode_work(std::span<const kernels::Stage> stages, std::int64_t elements) {
  StageWork work;
  int rank = 0;
  for (int stage = 0; stage < static_cast<int>(stages.size()); ++stage) {
    work += encode_work(stages, stage, elements);
    rank = std::max(rank, stages[static_cast<std::size_t>(stage)].rank);
  }
  work.elements = elements;
  work.element_ranks = elements * rank;
  return work;
}

StageCosts StageCosts::times(double factor) const {
  return {factor * a_s, factor * per_element_s, factor * per_element_rank_s, factor * per_value_s,
          factor * per_value_rank_s};
}

double StageCosts::seconds(const StageWork& work) const {
  const Terms terms = terms_of(work);
  return a_s * terms[0] + per_element_s * terms[1] + per_element_rank_s * terms[2] +
         per_value_s * terms[3] + per_value_rank_s * terms[4];
}

double stage_seconds(const StageCosts& costs, std::int64_t elements, std::int64_t values,
                     int rank) {
  return costs.seconds({elements, elements * rank, values, values * rank});
}

StageFit fit_stage(const std::vector<StageSample>& samples) {
  check(samples);
  const Problem problem(samples);
  Eigen::VectorXd weights = Eigen::VectorXd::Ones(problem.matrix.rows());
  StageFit fit{.costs = problem.solve(weights)};
  for (int iteration = 0; iteration < 50; ++iteration) {
    const std::vector<double> sizes = relative_residuals(samples, fit.costs);
    const double bend = huber_bend(sizes);
    for (Eigen::Index i = 0; i < weights.size(); ++i)
      weights[i] = huber_weight(sizes[static_cast<std::size_t>(i)], bend);
    const StageCosts next = problem.solve(weights);
    const bool settled = next == fit.costs;
    fit.costs = next;
    if (settled) break;
  }
  const std::vector<double> residuals = relative_residuals(samples, fit.costs);
  fit.median_relative_residual = median(residuals);
  fit.max_relative_residual = *std::ranges::max_element(residuals);
  return fit;
}

std::string with_rank(std::string_view algorithm, std::optional<int> rank) {
  return kernels::with_parameter(algorithm, "rank",
                                 rank ? std::optional(fmt::format("{}", *rank)) : std::nullopt);
}

}  // namespace hipress::costs
