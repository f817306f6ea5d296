#include "profiler/calibration.hpp"

#include "casync/graph_builder.hpp"
#include "casync/topology.hpp"

namespace hipress::profiler {
namespace {

using casync::GraphBuilder;
using casync::Kind;
using casync::kRaw;
using casync::Task;
using casync::TaskId;

models::Model model_of(std::int64_t elements, std::uint32_t gradients) {
  models::Model model;
  model.name = "calibration";
  for (std::uint32_t g = 0; g < gradients; ++g) {
    model.gradients.push_back({.name = "slice" + std::to_string(g), .elements = elements});
  }
  return model;
}

/// The named plan, with one partition (K = 1) for every gradient.
plans::ResolvedPlan plan_of(const models::Model& model, std::uint32_t nodes,
                            const std::string& name) {
  plans::ResolvedPlan resolved = plans::resolve_plan(name, {.model = model, .nodes = nodes});
  for (casync::Decision& decision : resolved.plan.decisions) decision.partitions = 1;
  return resolved;
}

/// Adds the tasks of one gradient, each with one predecessor.
class Chain {
 public:
  Chain(GraphBuilder& builder, std::uint32_t gradient, std::int64_t elements, std::int8_t algorithm,
        std::int64_t bytes)
      : builder_(builder),
        task_{.amount = elements, .gradient = gradient, .algorithm = algorithm},
        bytes_(bytes) {}
  /// A chain of raw values.
  Chain(GraphBuilder& builder, std::uint32_t gradient, std::int64_t elements)
      : Chain(builder, gradient, elements, kRaw,
              elements * static_cast<std::int64_t>(sizeof(float))) {}

  TaskId backward(std::uint32_t node) {
    Task task = on(node, Kind::kBackward);
    task.amount = 0;
    return builder_.add(task);
  }
  /// Adds an Encode of the slice, or a Decode or Merge of the message that `before` wrote.
  TaskId then(TaskId before, Kind kind, std::uint32_t node,
              casync::TaskFlags flags = casync::kNoFlags) {
    Task task = on(node, kind);
    task.flags = flags;
    if (kind == Kind::kEncode) return behind(before, task, {slice(node), message(node)});
    return behind(before, task, {builder_.written_by(before), slice(node)});
  }
  TaskId send(TaskId before, std::uint32_t from, std::uint32_t to) {
    const std::uint32_t nodes = builder_.nodes();
    Task task = on(from, Kind::kSend);
    task.amount = bytes_;
    task.peer_offset = (to + nodes - from) % nodes;
    const bool raw = task.algorithm == kRaw;
    return behind(before, task,
                  {raw ? slice(from) : builder_.written_by(before), casync::kNoIndex});
  }
  /// Adds a Recv: into the slice if it is raw and not merged, else into a message.
  TaskId receive(TaskId send, OnArrival on_arrival = OnArrival::kNothing) {
    const std::uint32_t nodes = builder_.nodes();
    Task task = builder_.task(send);
    task.kind = Kind::kRecv;
    task.node = (task.node + task.peer_offset) % nodes;
    const bool in_slice = task.algorithm == kRaw && on_arrival != OnArrival::kMerge;
    return behind(send, task, {casync::kNoIndex, in_slice ? slice(task.node) : message(task.node)});
  }

 private:
  Task on(std::uint32_t node, Kind kind) const {
    Task task = task_;
    task.node = node;
    task.kind = kind;
    return task;
  }
  std::uint32_t slice(std::uint32_t node) {
    return builder_.slice_of(on(node, Kind::kJoin),
                             task_.amount * static_cast<std::int64_t>(sizeof(float)));
  }
  std::uint32_t message(std::uint32_t node) {
    return builder_.message(node, task_.algorithm, bytes_);
  }
  TaskId behind(TaskId before, const Task& task, const casync::Operands& operands) {
    const TaskId id = builder_.add(task, operands);
    builder_.edge(before, id);
    return id;
  }

  GraphBuilder& builder_;
  Task task_;
  std::int64_t bytes_;
};

}  // namespace

Calibration codec_calibration(std::uint32_t nodes, const std::string& algorithm,
                              const std::vector<CodedSlice>& slices, std::uint32_t coding) {
  const auto count = static_cast<std::uint32_t>(slices.size());
  Calibration result{.model = model_of(0, count), .plan = {}, .graph = {}};
  for (std::uint32_t g = 0; g < count; ++g) result.model.gradients[g].elements = slices[g].elements;
  result.plan = plan_of(result.model, nodes, algorithm);
  GraphBuilder builder(nodes);
  builder.name_operands();
  for (std::uint32_t node = 0; node < coding; ++node) {
    std::vector<Chain> chains;
    std::vector<TaskId> ready, encodes;
    TaskId last_ready = 0;  // tasks of a node are served in the order in which they become ready
    for (std::uint32_t g = 0; g < count; ++g) {
      Chain& chain = chains.emplace_back(builder, g, slices[g].elements, 0, 0);
      ready.push_back(chain.backward(node));
      if (!slices[g].quotient) continue;
      last_ready = ready.back() = chain.then(ready.back(), Kind::kEncode, node, casync::kDivideOwn);
      builder.task(last_ready).role = casync::Role::kServer;
    }
    if (last_ready == 0) last_ready = ready.back();
    TaskId last_decode = 0;
    for (std::uint32_t g = 0; g < count; ++g) {
      encodes.push_back(chains[g].then(ready[g], Kind::kEncode, node));
      if (ready[g] != last_ready) builder.edge(last_ready, encodes.back());
      last_decode = chains[g].then(encodes.back(), Kind::kDecode, node);
    }
    for (std::uint32_t g = 0; g < count; ++g) {
      const TaskId add = chains[g].then(encodes[g], Kind::kDecode, node, casync::kAccumulate);
      builder.edge(last_decode, add);
    }
  }
  result.graph = std::move(builder).build();
  result.graph.divisor = 3;
  return result;
}

Calibration ping_pong(std::uint32_t nodes, std::int64_t elements, std::uint32_t hops,
                      OnArrival on_arrival, Pair pair) {
  // One slice per hop, so that a slice is never sent back while it is still arriving.
  Calibration result{.model = model_of(elements, hops), .plan = {}, .graph = {}};
  result.plan = plan_of(result.model, nodes, "none");
  GraphBuilder builder(nodes);
  builder.name_operands();
  TaskId last = 0;
  for (std::uint32_t hop = 0; hop < hops; ++hop) {
    Chain chain(builder, hop, elements);
    const bool there = hop % 2 == 0;
    const std::uint32_t from = there ? pair.from : pair.to, to = there ? pair.to : pair.from;
    const TaskId ready = chain.backward(from);
    const TaskId own = chain.backward(to);
    const TaskId send = chain.send(ready, from, to);
    if (hop > 0) builder.edge(last, send);
    last = chain.receive(send, on_arrival);
    if (on_arrival == OnArrival::kMerge) {
      last = chain.then(last, Kind::kMerge, to, casync::kAccumulate);
      builder.edge(own, last);
    }
  }
  result.graph = std::move(builder).build();
  return result;
}

Calibration streams(std::uint32_t nodes, const std::vector<Pair>& pairs, std::int64_t elements,
                    std::uint32_t messages) {
  const auto count = static_cast<std::uint32_t>(pairs.size()) * messages;
  Calibration result{.model = model_of(elements, count), .plan = {}, .graph = {}};
  result.plan = plan_of(result.model, nodes, "none");
  GraphBuilder builder(nodes);
  builder.name_operands();
  std::uint32_t gradient = 0;
  for (std::uint32_t message = 0; message < messages; ++message) {
    for (const Pair& pair : pairs) {
      Chain chain(builder, gradient++, elements);
      chain.receive(chain.send(chain.backward(pair.from), pair.from, pair.to));
    }
  }
  result.graph = std::move(builder).build();
  return result;
}

Calibration exchange(std::uint32_t nodes, const std::string& algorithm,
                     const std::vector<std::int64_t>& elements, std::uint32_t rounds,
                     Messages messages) {
  // One gradient per message, so no other task uses the receiver's slice.
  const auto of_a_node = rounds * static_cast<std::uint32_t>(elements.size());
  Calibration result{.model = model_of(0, of_a_node * nodes), .plan = {}, .graph = {}};
  for (std::uint32_t g = 0; g < of_a_node * nodes; ++g)
    result.model.gradients[g].elements = elements[g / nodes % elements.size()];
  result.plan = plan_of(result.model, nodes, algorithm);
  const casync::Algorithm& known = result.plan.plan.algorithms.front();
  GraphBuilder builder(nodes);
  builder.name_operands();
  for (std::uint32_t g = 0; g < of_a_node * nodes; ++g) {
    const std::int64_t length = result.model.gradients[g].elements;
    Chain chain(builder, g, length, 0, known.encoded_bytes(length));
    const bool sends = messages == Messages::kSent && g / nodes % elements.size() == 0;
    const std::uint32_t from = g % nodes, to = sends ? (from + 1) % nodes : from;
    TaskId last = chain.then(chain.backward(from), Kind::kEncode, from);
    if (sends) last = chain.receive(chain.send(last, from, to));
    chain.then(last, Kind::kDecode, to, casync::kAccumulate);
  }
  result.graph = std::move(builder).build();
  return result;
}

Calibration all_reduces(std::uint32_t nodes, std::int64_t elements, std::uint32_t count) {
  Calibration result{.model = model_of(elements, count), .plan = {}, .graph = {}};
  result.plan =
      plans::resolve_plan("none", {.model = result.model, .topology = "allreduce", .nodes = nodes});
  result.graph = casync::expand_to_run(result.model, result.plan.plan);
  return result;
}

std::vector<Pair> all_pairs(std::uint32_t nodes) {
  std::vector<Pair> pairs;
  for (std::uint32_t shift = 1; shift < nodes; ++shift) {
    for (std::uint32_t from = 0; from < nodes; ++from)
      pairs.push_back({from, (from + shift) % nodes});
  }
  return pairs;
}

std::vector<Pair> fan_in(std::uint32_t nodes) {
  std::vector<Pair> pairs;
  for (std::uint32_t from = 1; from < nodes; ++from) pairs.push_back({from, 0});
  return pairs;
}

std::vector<Pair> fan_out(std::uint32_t nodes) {
  std::vector<Pair> pairs;
  for (std::uint32_t to = 1; to < nodes; ++to) pairs.push_back({0, to});
  return pairs;
}

}  // namespace hipress::profiler
