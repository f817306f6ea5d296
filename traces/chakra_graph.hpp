#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "casync/task_graph.hpp"
#include "traces/timeline.hpp"

namespace hipress::traces {

/// A simulated graph for export as Chakra execution traces, with all that its simulation depends on
/// besides machines. Chakra's own fields hold node kinds, dependencies within a rank, bytes and
/// peers of messages, and whole microseconds; attributes named hipress_* hold the rest.
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

/// Writes FOLDER/hipress.{rank}.et, one file per node, and creates the folder if it is missing.
/// Throws std::invalid_argument for a folded graph or a timeline of a different graph, and
/// io::InputError if the folder cannot be written to.
void write_chakra_graph(const std::string& folder, const ChakraGraph& what);

/// Reads an export of write_chakra_graph(): the same tasks, edges and times. Throws io::InputError,
/// with the file, if a file is missing, damaged, from a different export or not written by HiPress.
/// Also throws it for a graph that casync::check() refuses.
ChakraGraph read_chakra_graph(const std::string& folder);

/// Path of a rank's file: "DIR/hipress.3.et".
std::string chakra_file(const std::string& folder, std::uint32_t rank);

}  // namespace hipress::traces
