#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "casync/task_graph.hpp"
#include "io/environment.hpp"
#include "models/model.hpp"
#include "plans/plan_file.hpp"
#include "tools/exec/options.hpp"

namespace hipress::replay {

/// What is replayed.
struct Job {
  models::Model model;
  plans::ResolvedPlan plan;
  casync::TaskGraph graph;
  std::vector<std::string> diagnostics = {};  ///< what was assumed of the model
};

/// io::InputError for plans that cannot run.
Job make_job(const CommandLine& line, std::uint32_t nodes);

/// How many ranks the job has; the launcher and --nnodes must agree.
std::uint32_t count_ranks(const CommandLine& line, const std::optional<io::Launch>& launch);

}  // namespace hipress::replay
