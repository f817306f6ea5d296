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

/// Steps that a plan needs for a loss over those that DDP needs for it, with the ends of the 10–90
/// % interval.
struct StepsRatio {
  double ratio = 1, p10 = 1, p90 = 1;
  /// Standard deviation of the ratio's logarithm, were it normal.
  double deviation() const;
};

/// One algorithm, or one plan file, that a pilot has trained with.
struct PilotRow {
  StepsRatio ratio;
  /// Squared relative error of each gradient that it compressed, by name, summed over the steps at
  /// which the pilot measured it.
  std::map<std::string, double> lost;
};

/// Results of a pilot.
struct Learning {
  std::string path;                      ///< the pilot's file
  std::int64_t steps = 0;                ///< of DDP, to whose loss ratios refer
  std::map<std::string, PilotRow> rows;  ///< by what `--plans` of the pilot named
  /// Rows that diverged, or never had DDP's loss within the pilot.
  std::vector<std::string> never;

  /// The ratio of a plan: of a plan file that the pilot has trained, its own; else predicted from
  /// its algorithms'. Each gradient adds (r − 1) of its algorithm times the gradient's weight among
  /// all that the algorithm can compress: what it loses of the gradient's squared norm, times the
  /// number of elements to the power kOfSize (without errors, the elements alone). So a plan that
  /// compresses all gradients with one algorithm has that algorithm's ratio, one that compresses
  /// none has 1, and the interval of all others is wider. None: an algorithm is not in the pilot.
  /// docs/learning.md has sources and figures.
  std::optional<StepsRatio> of(const models::Model& model, const casync::Plan& plan,
                               const std::string& file = {}) const;

  /// All algorithms that have a ratio: rows that are no plan files.
  std::vector<std::string> algorithms() const;

  /// The part of a list that has ratios, in its order.
  std::vector<std::string> known(const std::vector<std::string>& algorithms) const;

  /// Lists of algorithms to search with, one for each ratio: those that slow learning by no more.
  /// `algorithms` all have a ratio.
  std::vector<std::vector<std::string>> bounded(const std::vector<std::string>& algorithms) const;
};

/// Reads a pilot's file. io::InputError with file and line for any other file, and for
/// one without a ratio.
Learning read_pilot(const std::string& path);

/// True if the algorithm is known not to slow learning without a pilot: it gives up no more than
/// int8block. `place`: AccuracyOrder::coarseness().
bool learns_as_ddp(int place);

}  // namespace hipress::planner
