#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

/// Consistency checks between a trace and the model made from it, for all kinds of jobs.
namespace hipress::traces {

/// Quantities of one step: inputs of the model, and measurements to compare it with. Times and
/// bytes are empty if the trace does not contain them.
struct StepAccount {
  std::string name = {};
  int passes = 1;  ///< pairs of forward and backward
  std::optional<double> step_s = {};
  std::optional<double> forward_s = {}, backward_s = {};  ///< per pass
  /// Exposed communication of the model's gradients or shards.
  std::optional<double> exposed_s = {};
  /// Sum of computation, exposed communication and the GPU's idle time: as long as the step.
  std::optional<double> shown_s = {};
  std::optional<std::int64_t> sent_bytes = {};  ///< by collectives of gradients and parameters
  bool synchronises = true;                     ///< false if no collective carries its gradients
};

/// Quantities of a job for comparison with its model. `steps` are the steps over which the model
/// takes its medians.
struct JobAccount {
  std::vector<StepAccount> steps = {};
  std::string joined = "gradients are averaged";  ///< beginning of a sentence
  std::optional<std::int64_t> job_ranks = {};
  std::optional<std::int64_t> ranks = {};        ///< ranks that average a gradient
  std::vector<std::int64_t> group_sizes = {};    ///< sizes of all groups that average gradients
  std::string schedule = {};                     ///< schedule of the job; empty: DDP
  std::optional<std::int64_t> model_bytes = {};  ///< bytes that a step of the model sends
  std::string dtype = {}, sent_dtype = {};       ///< types of gradients: stored, sent
};

/// Time of a step besides forward, backward and exposed communication. It goes to the optimizer, to
/// zeroing gradients and to loading the next batch.
std::optional<double> rest_s(const StepAccount& step);

/// Compares a model with its trace. Throws io::Unmet for times or steps that no model can have.
/// Reports smaller differences. The checks:
///
/// - times: forward, backward and exposed communication take no longer than the step;
/// - bytes: the model sends as many as the job;
/// - ranks: all ranks of the job average gradients;
/// - synchronisation: every step in the medians synchronises.
void check_accounts(const JobAccount& job, std::vector<std::string>& diagnostics);

}  // namespace hipress::traces
