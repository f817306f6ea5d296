#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

/// Consistency checks between a trace and the model made of it, for every kind of job.
namespace hipress::traces {

/// Quantities of one step: those that the model takes, and those that the step measures. Times and
/// bytes are empty if the trace does not contain them.
struct StepAccount {
  std::string name = {};
  int passes = 1;  ///< pairs of forward and backward
  std::optional<double> step_s = {};
  std::optional<double> forward_s = {}, backward_s = {};  ///< per pass
  /// Exposed communication of the model's gradients or shards.
  std::optional<double> exposed_s = {};
  /// Sum of computation, all exposed communication and the GPU's idle time.
  std::optional<double> shown_s = {};
  std::optional<std::int64_t> sent_bytes = {};  ///< by collectives of gradients and parameters
  bool synchronises = true;                     ///< true if a collective carries its gradients
};

/// Steps behind a model's medians, and other quantities to compare.
struct JobAccount {
  std::vector<StepAccount> steps = {};
  std::string joined = "gradients are averaged";  ///< clause that begins a sentence
  std::optional<std::int64_t> job_ranks = {};
  std::optional<std::int64_t> ranks = {};        ///< ranks that average a gradient
  std::vector<std::int64_t> group_sizes = {};    ///< sizes of all groups that average gradients
  std::string schedule = {};                     ///< schedule of the job; empty: DDP
  std::optional<std::int64_t> model_bytes = {};  ///< bytes that a step of the model sends
  std::string dtype = {}, sent_dtype = {};       ///< types of gradients: stored, sent
};

/// Time of a step besides forward, backward and exposed communication: the optimizer, zeroing
/// gradients, loading the next batch.
std::optional<double> rest_s(const StepAccount& step);

/// Checks a model against its trace. Throws io::Unmet for times or steps that cannot make a model,
/// and reports smaller differences:
///
/// - times: forward, backward and exposed communication take no longer than the step;
/// - bytes: the model sends as many as the job;
/// - ranks: all ranks of the job average gradients;
/// - synchronisation: every step of the medians synchronises.
void check_accounts(const JobAccount& job, std::vector<std::string>& diagnostics);

}  // namespace hipress::traces
