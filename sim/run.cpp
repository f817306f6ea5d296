#include "sim/run.hpp"

#include <fmt/format.h>

#include <string>
#include <string_view>

#include "io/error.hpp"
#include "io/suggestion.hpp"

namespace hipress::sim {

Network parse_network(std::string_view name) {
  if (name == "port") return Network::kPort;
  if (name == "fair") return Network::kFair;
  constexpr std::string_view kKnown[] = {"port", "fair"};
  throw io::InputError(fmt::format("unknown network {}{}known are port, fair", io::quote(name),
                                   io::before_known(name, kKnown)));
}

const char* to_string(Network network) { return network == Network::kPort ? "port" : "fair"; }

std::int64_t graph_bytes(const casync::TaskGraph& graph) {
  const auto& [starts, columns] = graph.edges;
  return static_cast<std::int64_t>(
      graph.tasks() * (sizeof(casync::Task) + sizeof(graph.predecessors[0])) +
      starts.capacity() * sizeof(starts[0]) + columns.capacity() * sizeof(columns[0]));
}

}  // namespace hipress::sim
