#include "requests/asked_schedules.hpp"

#include <algorithm>
#include <utility>

#include "io/error.hpp"
#include "io/quantity.hpp"
#include "planner/problem/levels.hpp"
#include "planner/schedules/scheduled.hpp"
#include "planner/search/shards.hpp"
#include "requests/shared_fields.hpp"

namespace hipress::requests {

using namespace planner;

namespace {

bool is_best(const std::string& text) { return text == kBestSchedule || text == "best"; }

std::vector<std::string> texts_of_best(const Problem& problem) {
  const GpuProblem gpus(problem);
  const std::uint32_t all = gpus.problem().nodes;
  const std::uint32_t each = costs::nodes_per_host(gpus.problem().machines->cluster);
  if (each == 1 || each >= all || all % each != 0) return {"ddp", "fsdp(reshard=true|false)"};
  const std::string host = std::to_string(each);
  return {"ddp", "fsdp(reshard=true|false|" + host + ")",
          "hsdp(shard=" + host + ", reshard=true|false)"};
}

/// Adds the schedules that a text stands for.
void add(const std::string& text, const Problem& problem, std::vector<AskedSchedule>& schedules) {
  std::vector<casync::Schedule> of_text = read_schedules(text, problem.model);
  const bool is_set = of_text.size() > 1;
  if (is_set) {
    const std::string first = refusal_of_nodes(problem, of_text.front());
    std::erase_if(of_text, [&](const casync::Schedule& one) {
      return !refusal_of_nodes(problem, one).empty();
    });
    if (of_text.empty()) throw io::InputError("`schedule`: " + first);
  }
  for (casync::Schedule& one : of_text) {
    if (std::ranges::find(schedules, one, &AskedSchedule::schedule) != schedules.end()) continue;
    std::string name = is_set ? one.text() : text;
    schedules.push_back({std::move(one), std::move(name)});
  }
}

/// Adds the schedules of BEST that fit into memory, and notes the others as left out.
void add_best(const Problem& problem, AskedSchedules& asked) {
  std::vector<AskedSchedule> all;
  for (const std::string& text : texts_of_best(problem)) add(text, problem, all);
  const std::int64_t limit = room_of(problem);
  std::int64_t least = INT64_MAX;
  for (AskedSchedule& one : all) {
    if (std::ranges::find(asked.schedules, one.schedule, &AskedSchedule::schedule) !=
        asked.schedules.end()) {
      continue;
    }
    const std::int64_t bytes = memory_of_schedule(problem, one.schedule).total();
    least = std::min(least, bytes);
    if (bytes > limit) {
      asked.left_out.push_back({one.schedule.text(), does_not_fit(bytes, limit)});
    } else {
      asked.schedules.push_back(std::move(one));
    }
  }
  if (asked.schedules.empty()) refuse_memory(least, problem.activation_bytes);
}

}  // namespace

AskedSchedules asked_schedules(const PlanRequest& request, const Problem& problem) {
  AskedSchedules asked;
  for (const std::string& text : request.schedules) {
    if (!is_best(text)) add(text, problem, asked.schedules);
  }
  if (asks_for_best(request)) add_best(problem, asked);
  if (asked.schedules.empty()) asked.schedules.push_back({{}, casync::Schedule().text()});
  return asked;
}

bool asks_for_best(const PlanRequest& request) {
  return std::ranges::any_of(request.schedules, is_best);
}

std::optional<std::int64_t> memory_limit(const PlanRequest& request) {
  if (request.gpu_memory.empty()) return std::nullopt;
  return io::parse_size(request.gpu_memory, "`gpu_memory`");
}

}  // namespace hipress::requests
