#pragma once

#include "casync/graph_builder.hpp"
#include "casync/task_graph.hpp"
#include "traces/timeline.hpp"

namespace hipress::traces {

/// Graph in which node 0 sends partition 2 of gradient 0, compressed, to node 1. It is the smallest
/// graph that uses every resource. Task IDs: 0 Forward, 1 Backward, 2 Encode, 3 Send (node 0), 4
/// Recv, 5 Decode (node 1).
inline casync::TaskGraph one_message() {
  using casync::Kind;
  casync::GraphBuilder builder(2);
  casync::Task task;
  task.partition = 2;
  const auto add = [&](Kind kind, std::uint32_t node, std::int64_t amount) {
    task.kind = kind;
    task.node = node;
    task.amount = amount;
    const bool message = kind != Kind::kForward && kind != Kind::kBackward;
    task.peer_offset = message ? 1 : 0;
    task.algorithm = message ? 0 : casync::kRaw;
    return builder.add(task);
  };
  const casync::TaskId chain[] = {add(Kind::kForward, 0, 0), add(Kind::kBackward, 0, 2'000'000),
                                  add(Kind::kEncode, 0, 96), add(Kind::kSend, 0, 20),
                                  add(Kind::kRecv, 1, 20),   add(Kind::kDecode, 1, 96)};
  for (std::size_t i = 1; i < std::size(chain); ++i) builder.edge(chain[i - 1], chain[i]);
  return std::move(builder).build();
}

/// Makes a timeline from (start, end) pairs in picoseconds.
inline Timeline timeline(const std::string& title,
                         const std::vector<std::pair<std::int64_t, std::int64_t>>& spans) {
  Timeline result{title, {}, {}};
  for (const auto& [start, end] : spans) {
    result.start.emplace_back(start);
    result.end.emplace_back(end);
  }
  return result;
}

/// Simulated times of one_message(): Forward takes no time, Backward 2 us, Encode 0.5 us, the
/// message 1 us and a picosecond, Decode 0.25 us.
inline Timeline predicted_one_message() {
  return timeline("predicted", {{0, 0},
                                {0, 2'000'000},
                                {2'000'000, 2'500'000},
                                {2'500'000, 3'500'001},
                                {3'500'001, 3'500'001},
                                {3'500'001, 3'750'001}});
}

/// Measured times of one_message(): tasks after Backward take twice as long.
inline Timeline measured_one_message() {
  return timeline("measured", {{0, 0},
                               {0, 2'000'000},
                               {2'000'000, 3'000'000},
                               {3'000'000, 5'000'002},
                               {5'000'002, 5'000'002},
                               {5'000'002, 5'500'002}});
}

}  // namespace hipress::traces
