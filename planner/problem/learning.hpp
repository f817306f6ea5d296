#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "casync/plan.hpp"
#include "models/model.hpp"

/// The cost of compression in steps: measured by a pilot (python -m hipress.pilot), and predicted
/// for plans that no pilot has trained.
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
  /// Squared relative errors of the compressed gradients, by name, summed over the steps at which
  /// the pilot measured them.
  std::map<std::string, double> lost;
};

/// Results of a pilot.
struct Learning {
  std::string path;        ///< the pilot's file
  std::int64_t steps = 0;  ///< number of DDP's steps; ratios refer to its loss after them
  std::map<std::string, PilotRow> rows;  ///< by name in the pilot's `--plans`
  /// Names of rows that diverged, or never reached DDP's loss in the pilot.
  std::vector<std::string> never;

  /// Ratio of a plan. A plan file that the pilot has trained has its own; other ratios are
  /// predicted from those of the algorithms. Each gradient adds (r − 1) of its algorithm times its
  /// weight among all gradients that the algorithm can compress. The weight is the relative loss of
  /// the squared norm times the number of elements to the power kOfSize; without errors, the number
  /// of elements. A plan that compresses all gradients with one algorithm thus has that algorithm's
  /// ratio, and one that compresses no gradient has 1. Other plans have wider intervals. nullopt if
  /// an algorithm is not in the pilot. docs/learning.md has sources and figures.
  std::optional<StepsRatio> of(const models::Model& model, const casync::Plan& plan,
                               const std::string& file = {}) const;

  /// Names of all algorithms with a ratio: the rows except `none` and those of plan files.
  std::vector<std::string> algorithms() const;

  /// Algorithms of a list that have ratios, in the same order.
  std::vector<std::string> known(const std::vector<std::string>& algorithms) const;

  /// Lists of algorithms to search with, one per ratio: the algorithms with at most that ratio. All
  /// `algorithms` must have a ratio.
  std::vector<std::vector<std::string>> bounded(const std::vector<std::string>& algorithms) const;
};

/// Reads a pilot's file. Throws io::InputError with file and line for other files, and for one
/// without any ratio.
Learning read_pilot(const std::string& path);

/// True if an algorithm does not slow learning, known without a pilot: it is at most as coarse as
/// int8block. `place`: AccuracyOrder::coarseness().
bool learns_as_ddp(int place);

}  // namespace hipress::planner
