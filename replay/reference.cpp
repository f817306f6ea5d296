#include "replay/reference.hpp"

#include <algorithm>
#include <cstring>
#include <stdexcept>
#include <string>
#include <tuple>

#include "replay/inputs.hpp"
#include "runtime/operations.hpp"

namespace hipress::replay {
namespace {

using casync::Kind;
using casync::Task;
using casync::TaskId;

/// Block length of elementwise partitions: fits a core's cache, and is a multiple of 16.
constexpr std::int64_t kBlock = 8192;

}  // namespace

Reference::Reference(const casync::TaskGraph& graph, const models::Model& model,
                     const plans::ResolvedPlan& plan, const Inputs& inputs)
    : graph_(graph),
      model_(model),
      plan_(plan),
      inputs_(inputs),
      layout_(casync::make_layout(model, plan.plan)),
      flow_(runtime::read_dataflow(graph)) {
  collect_partitions();
  collect_tasks();
  states_.resize(partitions_.size());
  if (inputs.states.empty()) return;
  for (std::uint32_t node = 0; node < graph.nodes; ++node) {
    initial_.push_back(std::make_unique<kernels::StateStore>());
    initial_.back()->load(state_file(inputs.states, node));
  }
}

void Reference::collect_partitions() {
  for (std::uint32_t g = 0; g < layout_.units.size(); ++g) {
    const casync::Unit& unit = layout_.units[g];
    if (unit.members.empty()) continue;
    const auto count = static_cast<std::uint32_t>(unit.slices());
    for (std::uint32_t k = 0; k < count; ++k) {
      const casync::Slice slice = casync::slice(unit.elements, count, k);
      if (slice.elements == 0) break;
      partitions_.push_back({.gradient = g,
                             .partition = k,
                             .slice = slice,
                             .operation = unit.topology->operation,
                             .tasks = {}});
    }
  }
}

void Reference::collect_tasks() {
  position_.assign(graph_.tasks(), 0);
  for (TaskId id = 0; id < graph_.tasks(); ++id) {
    if (is_computation(graph_[id]) || graph_[id].kind == Kind::kJoin) continue;
    runtime::slice_of(graph_, id, layout_);  // throws if the model or plan lacks the slice
    tasks_.push_back(id);
  }
  const auto key = [this](TaskId id) { return std::pair(partition_of(graph_[id]), id); };
  std::ranges::sort(tasks_, {}, key);
  auto first = tasks_.begin();
  for (Partition& partition : partitions_) {
    const auto belongs = [&](TaskId id) {
      return partition_of(graph_[id]) == std::pair(partition.gradient, partition.partition);
    };
    const auto end = std::find_if_not(first, tasks_.end(), belongs);
    partition.tasks = {first, end};
    for (std::uint32_t position = 0; position < partition.tasks.size(); ++position) {
      const TaskId id = partition.tasks[position];
      position_[id] = position;
      const bool casts = casync::casts(graph_[id]);
      const bool raw = graph_[id].algorithm == casync::kRaw;
      partition.elementwise = partition.elementwise && (raw || casts);
      partition.library = partition.library || graph_[id].kind == Kind::kAllReduce;
      if (casts) partition.sums = codec(graph_[id]).traits().message_values;
      std::vector<TaskId> sources{flow_.source[id]};
      if (casync::gathers(graph_[id])) sources = flow_.gathered.at(id);
      const auto foreign = [&](TaskId source) {
        return source != casync::kNoIndex && !belongs(source);
      };
      if (std::ranges::any_of(sources, foreign)) {
        throw std::invalid_argument("task graph: " + casync::describe(graph_, id) +
                                    " takes a message of another partition");
      }
    }
    first = end;
  }
}

std::pair<std::uint32_t, std::uint32_t> Reference::partition_of(const Task& task) const {
  if (!layout_.is_factor(task.gradient)) return {task.gradient, task.partition};
  return {layout_.owner(task.gradient), 0};
}

void Reference::run(std::size_t index, casync::Slice stretch, std::uint64_t iteration,
                    const std::function<void(const Block&)>& visit) {
  const std::int64_t length = partitions_[index].elementwise ? kBlock : stretch.elements;
  Block block;
  for (std::int64_t done = 0; done < stretch.elements; done += length) {
    run_block(index, iteration, {stretch.begin + done, std::min(length, stretch.elements - done)});
    block.first = block_.begin;
    block.values.clear();
    for (std::uint32_t node = 0; node < graph_.nodes; ++node) block.values.push_back(slice(node));
    visit(block);
  }
}

std::vector<float> Reference::result(std::size_t index, casync::Slice stretch,
                                     std::uint64_t iteration, std::uint32_t node) {
  // Elementwise partitions have no encoder state, so the run can be repeated, now as one block.
  if (partitions_[index].elementwise) run_block(index, iteration, stretch);
  const std::span<float> values = slice(node);
  return {values.begin(), values.end()};
}

void Reference::make_room(std::size_t index) {
  std::size_t lines = 0;
  std::size_t states = 0;
  for (const TaskId id : partitions_[index].tasks) {
    if (!flow_.fills_message[id] || graph_[id].kind == Kind::kRecv) continue;
    const auto bytes = static_cast<std::size_t>(codec(graph_[id]).encoded_bytes(block_.elements));
    lines += (bytes + sizeof(Line) - 1) / sizeof(Line);
    states += static_cast<std::size_t>(runtime::state_arrays(codec(graph_[id])) * block_.elements);
  }
  if (messages_.size() < lines) messages_.resize(lines);
  used_lines_ = 0;
  if (states_[index].size() < states) states_[index].resize(states);
  const auto values = static_cast<std::size_t>(block_.elements * graph_.nodes);
  if (values_.size() < values) values_.resize(values);
  held_.assign(partitions_[index].tasks.size(), {});
}

void Reference::run_block(std::size_t index, std::uint64_t iteration, casync::Slice block) {
  const Partition& partition = partitions_[index];
  block_ = block;
  make_room(index);
  for (std::uint32_t node = 0; node < graph_.nodes; ++node) {
    fill_unit(inputs_, iteration, node, layout_.units[partition.gradient], model_, block_.begin,
              slice(node));
  }
  reduced_.clear();
  if (layout_.units[partition.gradient].factors > 0) prepare_factors(index);
  float* state = states_[index].data();
  for (std::size_t position = 0; position < partition.tasks.size(); ++position) {
    held_[position] = run_task(partition.tasks[position], iteration, state);
  }
}

void Reference::prepare_factors(std::size_t index) {
  const std::uint32_t unit = partitions_[index].gradient;
  const casync::Unit& what = layout_.units[unit];
  staged_.clear();
  factors_.clear();
  for (std::uint32_t node = 0; node < graph_.nodes; ++node) {
    std::vector<std::span<float>> factors;
    for (std::uint32_t stage = 0; stage < what.factors; ++stage) {
      const std::uint32_t factor = what.first_factor + stage;
      std::vector<float>& memory = factors_[{factor, node}];
      memory.resize(static_cast<std::size_t>(layout_.units[factor].elements));
      factors.push_back(memory);
    }
    const auto state_of = [&](const std::string& name, std::int64_t elements) {
      const auto [known, is_new] = staged_states_.try_emplace({index, node, name});
      std::vector<float>& state = known->second;
      state.resize(static_cast<std::size_t>(elements));
      if (is_new && !initial_.empty()) {
        const float* const first = initial_[node]->get(
            name, static_cast<std::uint32_t>(casync::Role::kWorker), elements, 1);
        std::copy_n(first, elements, state.begin());
      }
      return state.data();
    };
    staged_.emplace_back(layout_, unit, model_, plan_, slice(node), std::move(factors), state_of);
  }
}

std::span<std::byte> Reference::run_task(TaskId id, std::uint64_t iteration, float*& state) {
  const Task& task = graph_[id];
  if (casync::codes_factors(task)) {
    staged_[task.node].run(task, inputs_.seed, iteration);
    return {};
  }
  const TaskId source = flow_.source[id];
  const std::span<std::byte> taken =
      source == casync::kNoIndex ? std::as_writable_bytes(slice(task)) : held_[position_[source]];
  switch (task.kind) {
    case Kind::kEncode:
      return encode(task, iteration, state);
    case Kind::kDecode: {
      runtime::Operands operands{slice(task), taken, {}, {}};
      if (casync::gathers(task)) {
        for (const TaskId from : flow_.gathered.at(id)) {
          operands.gathered.push_back(held_[position_[from]]);
        }
      }
      runtime::decode(task, graph_.divisor, codec(task), operands);
      return {};
    }
    case Kind::kMerge:
      runtime::merge(task, graph_.divisor, {slice(task), taken, {}, {}});
      return {};
    case Kind::kAllReduce:
      if (reduced_.insert(task.gradient).second) all_reduce(task);
      return {};
    case Kind::kRecv:
      if (flow_.fills_message[id]) return taken;
      std::memcpy(slice(task).data(), taken.data(), taken.size());
      return {};
    default:  // Send
      return taken;
  }
}

std::span<std::byte> Reference::take_message(const Task& task) {
  const auto room = static_cast<std::size_t>(codec(task).encoded_bytes(block_.elements));
  const std::span<std::byte> message =
      std::as_writable_bytes(std::span(messages_).subspan(used_lines_)).first(room);
  used_lines_ += (room + sizeof(Line) - 1) / sizeof(Line);
  return message;
}

std::span<std::byte> Reference::encode(const Task& task, std::uint64_t iteration, float*& state) {
  const std::span<std::byte> message = take_message(task);
  const int arrays = runtime::state_arrays(codec(task));
  const kernels::State kept{.data = arrays > 0 ? state : nullptr, .stride = block_.elements};
  state += arrays * block_.elements;
  const std::int64_t used =
      runtime::encode(task, graph_.divisor, codec(task),
                      {slice(task.node), message, kept,
                       runtime::draw_key(task, block_.begin, inputs_.seed, iteration)});
  return message.first(static_cast<std::size_t>(used));
}

/// Runs an AllReduce on all nodes, in rank order. `task` is any node's AllReduce: all are alike.
void Reference::all_reduce(const Task& task) {
  const kernels::Codec* const cast = casync::casts(task) ? &codec(task) : nullptr;
  const auto slice_on = [&](std::uint32_t node) {
    Task there = task;
    there.node = node;
    return slice(there);
  };
  const auto operands = [&](std::uint32_t node) -> runtime::Operands {
    return {slice_on(node), cast ? take_message(task) : std::span<std::byte>(), {}, {}};
  };
  const runtime::Operands first = operands(0);
  const std::span<std::byte> sum = runtime::summands(task, graph_.divisor, cast, first);
  const transport::Addition& how = runtime::addition(cast);
  for (std::uint32_t node = 1; node < graph_.nodes; ++node) {
    const auto other = runtime::summands(task, graph_.divisor, cast, operands(node));
    how.add(sum.data(), other.data(), sum.size() / how.value_bytes);
  }
  runtime::take_mean(task, graph_.divisor, cast, first);
  for (std::uint32_t node = 1; node < graph_.nodes; ++node) {
    std::ranges::copy(slice_on(0), slice_on(node).begin());
  }
}

const kernels::Codec& Reference::codec(const Task& task) const {
  return *plan_.codecs.at(static_cast<std::size_t>(task.algorithm));
}

std::span<float> Reference::slice(const Task& task) {
  if (!layout_.is_factor(task.gradient)) return slice(task.node);
  const casync::Unit& factor = layout_.units[task.gradient];
  const casync::Slice place = casync::slice(factor.elements, factor.partitions, task.partition);
  const std::uint32_t stage = layout_.factors[task.gradient - layout_.first_factor].stage;
  return std::span(factors_.at({task.gradient, task.node}))
      .subspan(static_cast<std::size_t>(place.begin),
               static_cast<std::size_t>(staged_[task.node].slice_values(stage)));
}

std::span<float> Reference::slice(std::uint32_t node) {
  const auto elements = static_cast<std::size_t>(block_.elements);
  return std::span(values_).subspan(node * elements, elements);
}

}  // namespace hipress::replay
