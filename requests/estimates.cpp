#include "requests/estimates.hpp"

#include <algorithm>
#include <set>
#include <utility>

#include "costs/collectives.hpp"

namespace hipress::requests {
namespace {

using casync::Kind;

std::string estimate_of(Kind kind, std::uint32_t nodes, const costs::Profile& profile) {
  switch (kind) {
    case Kind::kAllReduce:
      return costs::AllReduceCosts(profile).diagnostic(nodes);
    case Kind::kAllToAll:
      return costs::CollectiveCosts(profile, costs::kAllToAll).diagnostic(nodes);
    default:
      return costs::ShardCosts(profile).diagnostic(nodes);
  }
}

}  // namespace

std::vector<std::string> estimates_of(const casync::TaskGraph& graph,
                                      const costs::Profile& profile) {
  std::set<std::pair<Kind, std::uint32_t>> seen;  // collectives with their numbers of nodes
  std::vector<std::string> sentences;
  for (casync::TaskId id = 0; id < graph.tasks(); ++id) {
    const casync::Task& task = graph[id];
    const bool of_group = casync::is_of_group(task);
    if (task.kind != Kind::kAllReduce && !of_group) continue;
    const std::uint32_t nodes = of_group ? graph.groups[task.group].nodes : graph.nodes;
    if (!seen.emplace(task.kind, nodes).second) continue;
    std::string sentence = estimate_of(task.kind, nodes, profile);
    if (sentence.empty() || std::ranges::find(sentences, sentence) != sentences.end()) continue;
    sentences.push_back(std::move(sentence));
  }
  return sentences;
}

}  // namespace hipress::requests
