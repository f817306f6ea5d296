#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

/// Sums that must agree between a trace and the model that is made of it, for every kind of job.
namespace hipress::traces {

/// Quantities that a model takes from one step, and those that the step shows. Times and bytes are
/// empty if the trace does not tell.
struct StepAccount {
  std::string name = {};
  int passes = 1;  ///< pairs of forward and backward
  std::optional<double> step_s = {};
  std::optional<double> forward_s = {}, backward_s = {};  ///< of one pass
  /// Communication of the model that no computation hides.
  std::optional<double> exposed_s = {};
  /// Computation, all exposed communication and idle time of the GPU, together.
  std::optional<double> shown_s = {};
  std::optional<std::int64_t> sent_bytes = {};  ///< by collectives of gradients and parameters
  bool synchronises = true;                     ///< a collective carries its gradients
};

/// Steps behind a model's medians, and the other quantities that are compared.
struct JobAccount {
  std::vector<StepAccount> steps = {};
  std::string joined = "gradients are averaged";  ///< by the ranks: begins a sentence
  std::optional<std::int64_t> job_ranks = {};
  std::optional<std::int64_t> ranks = {};        ///< ranks that average a gradient
  std::vector<std::int64_t> group_sizes = {};    ///< all groups that average gradients
  std::string schedule = {};                     ///< the job's schedule; empty: DDP
  std::optional<std::int64_t> model_bytes = {};  ///< bytes that a step of the model sends
  std::string dtype = {}, sent_dtype = {};       ///< types of gradients: stored, sent
};

/// Rest of a step besides forward, backward and exposed communication: the optimizer, zeroing
/// gradients, the next batch.
std::optional<double> rest_s(const StepAccount& step);

/// Compares a model with its trace. Throws io::Unmet for times or steps that make no model, and
/// reports lesser differences:
/// - times: forward, backward and exposed communication take no longer than the step;
/// - bytes: the model sends as many as the job;
/// - ranks: all ranks of the job average gradients;
/// - synchronisation: every step of the medians has one.
void check_accounts(const JobAccount& job, std::vector<std::string>& diagnostics);

}  // namespace hipress::traces
