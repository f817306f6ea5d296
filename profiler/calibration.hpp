#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "casync/task_graph.hpp"
#include "models/model.hpp"
#include "plans/plan_file.hpp"
#include "replay/replay.hpp"

namespace hipress::profiler {

/// A small task graph that isolates one cost, with its model and plan.
struct Calibration {
  models::Model model;
  plans::ResolvedPlan plan;
  casync::TaskGraph graph;
};

// Below, `nodes` is the number of nodes of the job. Nodes without tasks stay idle.

struct CodedSlice {
  std::int64_t elements = 0;
  bool quotient = false;  ///< first encodes the slice once more, divided by 3
};

/// Calibration of a codec, without messages between nodes. Each of the first `coding` nodes encodes
/// all slices, then decodes all messages, then decodes and adds all messages. With enough slices, a
/// slice is no longer cached when it is used again, as in a synchronisation.
Calibration codec_calibration(std::uint32_t nodes, const std::string& algorithm,
                              const std::vector<CodedSlice>& slices, std::uint32_t coding);

struct Pair {
  std::uint32_t from = 0;
  std::uint32_t to = 0;
};

/// Ping-pong of a slice between the nodes of `pair`: `hops` messages, one after the other. With
/// kMerge each message is merged when it arrives, before the next one is sent.
enum class OnArrival : std::uint8_t { kNothing, kMerge };
Calibration ping_pong(std::uint32_t nodes, std::int64_t elements, std::uint32_t hops,
                      OnArrival on_arrival, Pair pair = {0, 1});

/// Independent messages, all ready at the start: `messages` slices for every (from, to) of `pairs`.
Calibration streams(std::uint32_t nodes, const std::vector<Pair>& pairs, std::int64_t elements,
                    std::uint32_t messages);

/// Exchange among all nodes. In each of `rounds` rounds, every node encodes one slice of each size
/// in `elements`, decodes it and adds it. All slices are ready at the start. With kSent, the first
/// slice of each round is sent to the next node, which decodes and adds it; messages wait for
/// codecs and cores as in training. With kKept, nodes do the same work without sending.
enum class Messages : std::uint8_t { kSent, kKept };
Calibration exchange(std::uint32_t nodes, const std::string& algorithm,
                     const std::vector<std::int64_t>& elements, std::uint32_t rounds,
                     Messages messages);

/// `count` all-reduces of one slice each by `nodes` nodes, one after the other.
Calibration all_reduces(std::uint32_t nodes, std::int64_t elements, std::uint32_t count);

std::vector<Pair> all_pairs(std::uint32_t nodes);  ///< every node to every other node
std::vector<Pair> fan_in(std::uint32_t nodes);     ///< all other nodes to node 0
std::vector<Pair> fan_out(std::uint32_t nodes);    ///< node 0 to all other nodes

}  // namespace hipress::profiler
