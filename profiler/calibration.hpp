#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "casync/task_graph.hpp"
#include "models/model.hpp"
#include "plans/plan_file.hpp"
#include "replay/replay.hpp"

namespace hipress::profiler {

/// A small task graph that isolates one cost, with the model and plan it belongs to.
struct Calibration {
  models::Model model;
  plans::ResolvedPlan plan;
  casync::TaskGraph graph;
};

// All take the number of nodes of the job that runs them; those without a part in it stay idle.

struct CodedSlice {
  std::int64_t elements = 0;
  bool quotient = false;  ///< a third of it is encoded as well, before everything else
};

/// Each of the first `coding` nodes encodes all slices, then decodes each message, then decodes and
/// adds each message. Nodes send each other nothing. With enough slices the data is cold, as it is
/// in a synchronisation.
Calibration codec_calibration(std::uint32_t nodes, const std::string& algorithm,
                              const std::vector<CodedSlice>& slices, std::uint32_t coding);

struct Pair {
  std::uint32_t from = 0;
  std::uint32_t to = 0;
};

/// One slice to and fro between the nodes of `pair`, `hops` times, one after the other; merged on
/// arrival if asked, so that the way back starts behind a merge.
enum class OnArrival : std::uint8_t { kNothing, kMerge };
Calibration ping_pong(std::uint32_t nodes, std::int64_t elements, std::uint32_t hops,
                      OnArrival on_arrival, Pair pair = {0, 1});

/// Messages that wait for nothing: `messages` slices for every (from, to) of `pairs` among `nodes`
/// nodes.
Calibration streams(std::uint32_t nodes, const std::vector<Pair>& pairs, std::int64_t elements,
                    std::uint32_t messages);

/// Every node encodes slices of all sizes `elements` in turn, `rounds` of each, all ready at once,
/// and decodes and adds them. kSent: the first slice of each round goes to the next node, which
/// decodes and adds it there; messages then wait for codecs and for cores as they do in training.
/// kKept: a node keeps these slices, too, and does the same work without any messages.
enum class Messages : std::uint8_t { kSent, kKept };
Calibration exchange(std::uint32_t nodes, const std::string& algorithm,
                     const std::vector<std::int64_t>& elements, std::uint32_t rounds,
                     Messages messages);

/// All-reduces of as many slices by `nodes` nodes, one after the other.
Calibration all_reduces(std::uint32_t nodes, std::int64_t elements, std::uint32_t count);

std::vector<Pair> all_pairs(std::uint32_t nodes);  ///< everybody to everybody else
std::vector<Pair> fan_in(std::uint32_t nodes);     ///< everybody to node 0
std::vector<Pair> fan_out(std::uint32_t nodes);    ///< node 0 to everybody

}  // namespace hipress::profiler
