#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "casync/task_graph.hpp"
#include "traces/timeline.hpp"

namespace hipress::traces {

/// A simulated graph for export as Chakra execution traces. Holds all inputs of its simulation
/// except the machines. Chakra's own fields hold the kinds of nodes, dependencies within a rank,
/// bytes and peers of messages, and whole microseconds. Attributes named hipress_* hold the rest.
struct ChakraGraph {
  casync::TaskGraph graph;              ///< graph of all nodes, not folded
  std::vector<std::string> names;       ///< names by Task::gradient
  std::vector<std::string> algorithms;  ///< names by Task::algorithm
  std::string model, plan, profile;     ///< names, for reports
  std::string network, transfer_order;  ///< values of these options
  std::uint32_t gpus_per_node = 1;
  Picoseconds iteration{};  ///< simulated iteration time
  Timeline timeline;        ///< simulated times of the tasks
};

/// Writes one file per node, FOLDER/hipress.{rank}.et. Creates the folder if it is missing. Throws
/// std::invalid_argument if the graph is folded or the timeline belongs to another graph, and
/// io::InputError if the folder cannot be written to.
void write_chakra_graph(const std::string& folder, const ChakraGraph& what);

/// Reads an export of write_chakra_graph(), with the same tasks, edges and times. Throws
/// io::InputError, which names the file, for a file that is missing, damaged, from another export
/// or not written by HiPress, and for a graph that casync::check() refuses.
ChakraGraph read_chakra_graph(const std::string& folder);

/// Path of a rank's file: "DIR/hipress.3.et".
std::string chakra_file(const std::string& folder, std::uint32_t rank);

}  // namespace hipress::traces
