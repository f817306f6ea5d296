#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "casync/plan.hpp"
#include "models/model.hpp"

/// The cost of compression in training steps: measured by a pilot (python -m hipress.pilot), or
/// predicted for plans that no pilot has trained.
namespace hipress::planner {

/// Number of steps that a plan needs to reach a loss, relative to DDP's, with its 10–90 % interval.
struct StepsRatio {
  double ratio = 1, p10 = 1, p90 = 1;
  /// Standard deviation of the ratio's logarithm, assuming a log-normal ratio.
  double deviation() const;
};

/// Result of a pilot for one algorithm or one plan file.
struct PilotRow {
  StepsRatio ratio;
  /// By gradient: squared relative errors of its messages, summed over the measured steps.
  std::map<std::string, double> lost;
};

/// Results of a pilot.
struct Learning {
  std::string path;        ///< the pilot's file
  std::int64_t steps = 0;  ///< number of DDP's steps; ratios refer to its loss after them
  std::map<std::string, PilotRow> rows;  ///< by name in the pilot's `--plans`
  /// Names of rows that diverged, or never reached DDP's loss in the pilot.
  std::vector<std::string> never;

  /// Ratio r of a plan. A plan file that the pilot has trained has its measured ratio. Ratios of
  /// other plans are predicted from those of the algorithms: 1 plus, for each gradient, (r − 1) of
  /// its algorithm times the gradient's share in the weights of all gradients that the algorithm
  /// can compress. A gradient's weight is its PilotRow::lost times the number of its elements to
  /// the power kOfSize. If the pilot measured no errors, the weight is the number of elements. A
  /// plan that compresses all gradients with one algorithm thus has that algorithm's ratio, and one
  /// that compresses nothing has 1. Other plans have wider intervals. nullopt if an algorithm is
  /// not in the pilot. docs/learning.md has sources and figures.
  std::optional<StepsRatio> of(const models::Model& model, const casync::Plan& plan,
                               const std::string& file = {}) const;

  /// Names of the algorithms that have ratios: the keys of `rows`, except `none` and plan files.
  std::vector<std::string> algorithms() const;

  /// Algorithms of a list that have ratios, in the same order.
  std::vector<std::string> known(const std::vector<std::string>& algorithms) const;

  /// Lists of algorithms, one for each search: for each of the ratios, the algorithms with at most
  /// that ratio. All `algorithms` must have ratios.
  std::vector<std::vector<std::string>> bounded(const std::vector<std::string>& algorithms) const;
};

/// Reads a pilot's file. Throws InputError, with file and line, if it is not one or lacks ratios.
Learning read_pilot(const std::string& path);

/// True if an algorithm is known, without a pilot, not to slow learning: it is at most as coarse as
/// int8block. `place` is its AccuracyOrder::coarseness().
bool learns_as_ddp(int place);

}  // namespace hipress::planner
