#pragma once

#include <string>
#include <vector>

#include "traces/imported.hpp"
#include "traces/model_parts.hpp"

/// Checks that a job sends what a model of averaged gradients can have.
namespace hipress::traces {

/// Refuses a step with sparse gradients, since the model's are dense.
void refuse_sparse(const TracedStep& step);

/// Throws io::Unmet with the reason for which a step tells no sizes that could be the model's.
[[noreturn]] void refuse_sizes(const Imported& trace, const TracedStep& step);

/// Throws io::Unmet if the ranks exchange gradients otherwise than by all-reduces. `of_model` gets
/// what is true of the model if it is made.
void check_communication(const Imported& trace, const TracedStep& last,
                         std::vector<std::string>& diagnostics, std::vector<std::string>& of_model);

/// Throws io::Unmet if buckets have other numbers of elements than the gradients that they carry.
void check_carried(const TracedStep& step);

/// Says which collectives of an execution trace are not in its model.
void say_left_out(const Imported& trace, std::vector<std::string>& diagnostics);

}  // namespace hipress::traces
