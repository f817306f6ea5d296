#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "casync/task_graph.hpp"
#include "io/environment.hpp"
#include "models/model.hpp"
#include "plans/plan_file.hpp"
#include "requests/replay_request.hpp"

namespace hipress::requests {

/// A plan that ranks can run.
struct ReplayJob {
  models::Model model;
  plans::ResolvedPlan plan;
  casync::TaskGraph graph;
  std::vector<std::string> diagnostics = {};  ///< assumptions about the model
};

/// Makes the job. Throws io::InputError for plans that cannot run.
ReplayJob make_job(const ReplayRequest& request, std::uint32_t ranks);

/// Number of ranks of the job. Throws io::InputError if it is unknown, or contradicts `nnodes`.
std::uint32_t count_ranks(const ReplayRequest& request, const std::optional<io::Launch>& launch);

/// Creates the folders in which this process's ranks write means and states, and checks the states
/// to read. Throws io::InputError on failure.
void prepare_folders(const ReplayRequest& request, const ReplayJob& job,
                     const std::optional<io::Launch>& launch, std::uint32_t ranks);

}  // namespace hipress::requests
