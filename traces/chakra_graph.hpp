#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "casync/task_graph.hpp"
#include "traces/timeline.hpp"

namespace hipress::traces {

/// A simulated graph as Chakra execution traces, and what its simulation depends on besides
/// machines. Chakra's fields hold what they have room for: kinds of nodes, dependencies within a
/// rank, bytes and peers of messages, whole microseconds. The attributes hipress_* hold the rest.
struct ChakraGraph {
  casync::TaskGraph graph;              ///< of all nodes, not folded
  std::vector<std::string> names;       ///< per value of Task::gradient
  std::vector<std::string> algorithms;  ///< per index Task::algorithm
  std::string model, plan, profile;     ///< what it is of, for people
  std::string network, transfer_order;  ///< as the command line names them
  std::uint32_t gpus_per_node = 1;
  Picoseconds iteration{};  ///< as it was simulated
  Timeline timeline;        ///< likewise
};

/// Writes FOLDER/hipress.{rank}.et, one file per node, and makes the folder if it is missing.
/// Throws std::invalid_argument for a folded graph, or for a timeline of another graph, and
/// io::InputError if the folder cannot be written to.
void write_chakra_graph(const std::string& folder, const ChakraGraph& what);

/// Reads what write_chakra_graph() wrote: the same tasks, edges, times. io::InputError that names
/// the file for one that is missing, damaged, of another export or not ours, and for a graph that
/// casync::check() refuses.
ChakraGraph read_chakra_graph(const std::string& folder);

/// "DIR/hipress.3.et"
std::string chakra_file(const std::string& folder, std::uint32_t rank);

}  // namespace hipress::traces
