#pragma once

#include <string>
#include <vector>

#include "traces/imported.hpp"
#include "traces/model_parts.hpp"

/// Checks that a job's communication fits a model of averaged gradients.
namespace hipress::traces {

/// Throws io::Unmet for a step with sparse gradients; a model's gradients are dense.
void refuse_sparse(const TracedStep& step);

/// Throws io::Unmet with the reason why a step has no sizes for a model.
[[noreturn]] void refuse_sizes(const Imported& trace, const TracedStep& step);

/// Throws io::Unmet if ranks exchange gradients by collectives other than all-reduce. Appends
/// statements that hold only for a finished model to `of_model`.
void check_communication(const Imported& trace, const TracedStep& last,
                         std::vector<std::string>& diagnostics, std::vector<std::string>& of_model);

/// Throws io::Unmet if buckets have a different number of elements from the gradients that they
/// carry.
void check_carried(const TracedStep& step);

/// Reports collectives of an execution trace that are not in its model.
void say_left_out(const Imported& trace, std::vector<std::string>& diagnostics);

}  // namespace hipress::traces
