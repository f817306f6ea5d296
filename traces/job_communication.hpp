#pragma once

#include <string>
#include <vector>

#include "traces/imported.hpp"
#include "traces/model_parts.hpp"

/// Checks whether a job's communication fits a model of averaged gradients.
namespace hipress::traces {

/// Throws io::Unmet if the step has sparse gradients: a model's gradients are dense.
void refuse_sparse(const TracedStep& step);

/// Throws io::Unmet with the reason why the sizes that a model needs are missing in the step.
[[noreturn]] void refuse_sizes(const Imported& trace, const TracedStep& step);

/// Throws io::Unmet if ranks exchange gradients by collectives other than all-reduce. Appends to
/// `of_model` the remarks that only matter if the model can be finished.
void check_communication(const Imported& trace, const TracedStep& last,
                         std::vector<std::string>& diagnostics, std::vector<std::string>& of_model);

/// Throws io::Unmet if the buckets do not have as many elements as the gradients that they carry.
void check_carried(const TracedStep& step);

/// Reports collectives of an execution trace that its model leaves out.
void say_left_out(const Imported& trace, std::vector<std::string>& diagnostics);

}  // namespace hipress::traces
