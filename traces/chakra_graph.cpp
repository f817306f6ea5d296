#include "traces/chakra_graph.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <filesystem>
#include <functional>
#include <optional>
#include <ostream>
#include <span>
#include <stdexcept>
#include <system_error>
#include <utility>

#include "casync/graph_builder.hpp"
#include "io/error.hpp"
#include "io/file.hpp"
#include "traces/byte_stream.hpp"
#include "traces/chakra_schema.hpp"
#include "traces/protobuf.hpp"

namespace hipress::traces {
namespace {

using casync::Kind;
using casync::Task;
using casync::TaskId;
using Numbers = std::vector<std::uint64_t>;

constexpr char kVersion[] = "0.0.4";  // version of Chakra's schema
constexpr std::uint64_t kForm = 1;    // version of the hipress_* attributes
constexpr std::uint32_t kMostNodes = 1u << 20;
constexpr std::size_t kFactorNumbers = 7;

std::uint64_t bits(std::int64_t value) { return static_cast<std::uint64_t>(value); }
std::int64_t number(std::uint64_t value) { return static_cast<std::int64_t>(value); }

std::uint64_t to_microseconds(Picoseconds time) {
  constexpr std::int64_t kMicrosecond = 1'000'000;
  return bits((time.count() + kMicrosecond / 2) / kMicrosecond);
}

// ---- attributes

void add(FieldWriter& to, std::uint32_t field, const char* name,
         const std::function<void(FieldWriter&)>& value) {
  FieldWriter attribute;
  attribute.bytes(chakra::kAttributeName, name);
  value(attribute);
  to.bytes(field, attribute.message());
}

void add_integer(FieldWriter& to, std::uint32_t field, const char* name, std::uint64_t value) {
  add(to, field, name, [&](FieldWriter& out) { out.integer(chakra::kInteger, value); });
}

void add_numbers(FieldWriter& to, std::uint32_t field, const char* name, const Numbers& values) {
  FieldWriter list;
  list.packed(chakra::kListValues, values);
  add(to, field, name, [&](FieldWriter& out) { out.bytes(chakra::kIntegers, list.message()); });
}

void add_texts(FieldWriter& to, std::uint32_t field, const char* name,
               const std::vector<std::string>& values) {
  FieldWriter list;
  for (const std::string& value : values) list.bytes(chakra::kListValues, value);
  add(to, field, name, [&](FieldWriter& out) { out.bytes(chakra::kTexts, list.message()); });
}

/// An attribute, with its value in the member for its type.
struct Attribute {
  std::string_view name;
  std::uint64_t integer = 0;
  std::string_view text;
  Numbers numbers = {};
  std::vector<std::string> texts = {};
};

Attribute read_attribute(std::string_view message) {
  Attribute attribute;
  FieldReader fields(message);
  while (const auto field = fields.next()) {
    switch (field->number) {
      case chakra::kAttributeName:
        attribute.name = field->bytes;
        break;
      case chakra::kInteger:
        attribute.integer = field->integer;
        break;
      case chakra::kText:
        attribute.text = field->bytes;
        break;
      case chakra::kIntegers:
      case chakra::kTexts: {
        FieldReader list(field->bytes);
        while (const auto value = list.next()) {
          if (field->number == chakra::kTexts) {
            attribute.texts.emplace_back(value->bytes);
          } else {
            append_numbers(*value, attribute.numbers);
          }
        }
        break;
      }
      default:
        break;
    }
  }
  return attribute;
}

// ---- writing

/// Numbers that all files of an export share. They show if files come from different exports.
Numbers shared_numbers(const ChakraGraph& what) {
  const casync::TaskGraph& graph = what.graph;
  return {kForm,
          graph.nodes,
          graph.divisor,
          graph.tasks(),
          graph.first_group,
          graph.first_factor,
          what.gpus_per_node,
          bits(what.iteration.count())};
}

Numbers factor_numbers(const casync::TaskGraph& graph) {
  Numbers all;
  for (const casync::Factor& one : graph.factors) {
    const std::array<std::uint64_t, kFactorNumbers> numbers = {one.unit,
                                                               one.stage,
                                                               bits(one.values),
                                                               bits(one.elements),
                                                               bits(one.element_ranks),
                                                               bits(one.value_ranks),
                                                               bits(one.mean_values)};
    all.insert(all.end(), numbers.begin(), numbers.end());
  }
  return all;
}

/// Metadata of a file. Rank 0's also holds the data of the whole graph.
std::string metadata_of(const ChakraGraph& what, std::uint32_t rank) {
  FieldWriter metadata;
  const std::uint32_t field = chakra::kMetadataAttribute;
  metadata.bytes(chakra::kVersion, kVersion);
  add_numbers(metadata, field, chakra::kOurGraph, shared_numbers(what));
  add_integer(metadata, field, "hipress_rank", rank);
  if (rank > 0) return metadata.message();
  add_texts(metadata, field, "hipress_names", what.names);
  add_texts(metadata, field, "hipress_algorithms", what.algorithms);
  add_texts(metadata, field, "hipress_titles",
            {what.model, what.plan, what.profile, what.network, what.transfer_order});
  const casync::TaskGraph& graph = what.graph;
  add_numbers(metadata, field, "hipress_need_places",
              Numbers(graph.need_places.begin(), graph.need_places.end()));
  add_numbers(metadata, field, "hipress_factors", factor_numbers(graph));
  Numbers staged;
  for (const auto& [unit, first] : graph.staged_units) {
    staged.push_back(unit);
    staged.push_back(first);
  }
  add_numbers(metadata, field, "hipress_staged_units", staged);
  if (graph.mix) {
    Numbers mix;
    for (const double share : *graph.mix) mix.push_back(std::bit_cast<std::uint64_t>(share));
    add_numbers(metadata, field, "hipress_mix", mix);
  }
  return metadata.message();
}

std::uint64_t type_of(Kind kind) {
  if (kind == Kind::kSend) return chakra::kSendNode;
  if (kind == Kind::kRecv) return chakra::kReceiveNode;
  return kind == Kind::kAllReduce ? chakra::kCollectiveNode : chakra::kComputation;
}

std::string name_of(const ChakraGraph& what, const Task& task) {
  if (task.kind == Kind::kForward) return casync::to_string(task.kind);
  return fmt::format("{} {}[{}]", casync::to_string(task.kind), what.names[task.gradient],
                     task.partition);
}

class RankWriter {
 public:
  RankWriter(const ChakraGraph& what, const std::vector<std::vector<TaskId>>& before)
      : what_(what), before_(before) {}

  std::string node(TaskId id) const {
    const Task& task = what_.graph[id];
    FieldWriter node;
    node.integer(chakra::kId, id);
    node.bytes(chakra::kName, name_of(what_, task));
    node.integer(chakra::kType, type_of(task.kind));
    Numbers here, elsewhere;
    for (const TaskId one : before_[id]) {
      (what_.graph[one].node == task.node ? here : elsewhere).push_back(one);
    }
    if (!here.empty()) node.packed(chakra::kDataDependencies, here);
    const Picoseconds start = what_.timeline.start[id];
    const Picoseconds length = what_.timeline.end[id] - start;
    node.integer(chakra::kStartMicroseconds, to_microseconds(start));
    node.integer(chakra::kLengthMicroseconds, to_microseconds(length));
    add_standard(node, id, task);
    add_numbers(node, chakra::kAttribute, "hipress_task",
                {static_cast<std::uint64_t>(task.kind), task.gradient, task.partition,
                 task.peer_offset, bits(task.algorithm), static_cast<std::uint64_t>(task.role),
                 task.flags, task.stage, bits(task.amount)});
    add_numbers(node, chakra::kAttribute, "hipress_ps",
                {bits(start.count()), bits(what_.timeline.end[id].count())});
    if (!elsewhere.empty()) {
      add_numbers(node, chakra::kAttribute, "hipress_remote_deps", elsewhere);
    }
    return node.message();
  }

 private:
  /// Attributes that other readers of Chakra expect.
  void add_standard(FieldWriter& node, TaskId id, const Task& task) const {
    const std::uint32_t field = chakra::kAttribute;
    add(node, field, "is_cpu_op", [](FieldWriter& out) { out.integer(chakra::kBoolean, 0); });
    if (type_of(task.kind) == chakra::kComputation) return;
    add_integer(node, field, "comm_size", bits(task.amount));
    if (task.kind == Kind::kAllReduce) {
      return add_integer(node, field, "comm_type", chakra::kAllReduceType);
    }
    const bool sends = task.kind == Kind::kSend;
    const std::uint32_t peer = what_.graph.peer(task);
    add_integer(node, field, "comm_src", sends ? task.node : peer);
    add_integer(node, field, "comm_dst", sends ? peer : task.node);
    // Both ends of a message share a tag: the ID of its Send.
    add_integer(node, field, "comm_tag", sends ? id : before_[id].front());
  }

  const ChakraGraph& what_;
  const std::vector<std::vector<TaskId>>& before_;
};

// ---- reading

/// A task read from a file, before the graph is built.
struct ReadTask {
  TaskId id = 0;
  bool is_there = false;
  Task task;
  std::vector<TaskId> before;
  Picoseconds start{}, end{};
};

class GraphReader {
 public:
  explicit GraphReader(std::string folder) : folder_(std::move(folder)) {}

  ChakraGraph read() {
    read_file(0);
    for (std::uint32_t rank = 1; rank < nodes_; ++rank) read_file(rank);
    return build();
  }

 private:
  [[noreturn]] void fail(std::uint32_t rank, const std::string& message) const {
    throw io::InputError(chakra_file(folder_, rank), 0,
                         message + "; export the graph again: hipress-sim `export_chakra`");
  }

  void read_file(std::uint32_t rank) {
    const auto stream = open_unpacked(chakra_file(folder_, rank));
    MessageStream messages(*stream);
    const auto metadata = messages.next();
    if (!metadata) fail(rank, "is empty");
    parse(messages, [&] { read_metadata(rank, *metadata); });
    while (const auto message = messages.next()) {
      parse(messages, [&] { read_node(rank, *message); });
    }
  }

  template <typename Parser>
  static void parse(const MessageStream& messages, Parser parser) {
    try {
      parser();
    } catch (const io::InputError& error) {
      messages.fail(
          fmt::format("{}; export the graph again: hipress-sim `export_chakra`", error.what()));
    }
  }

  static std::uint32_t index(std::uint64_t value) {
    if (value > UINT32_MAX) throw io::InputError("an index is too large");
    return static_cast<std::uint32_t>(value);
  }

  void read_metadata(std::uint32_t rank, std::string_view message) {
    Numbers shared;
    std::uint64_t said_rank = UINT64_MAX;
    FieldReader fields(message);
    while (const auto field = fields.next()) {
      if (field->number != chakra::kMetadataAttribute) continue;
      const Attribute attribute = read_attribute(field->bytes);
      if (attribute.name == chakra::kOurGraph) shared = attribute.numbers;
      if (attribute.name == "hipress_rank") said_rank = attribute.integer;
      if (rank == 0) read_once(attribute);
    }
    if (shared.size() != 8 || shared[0] != kForm) {
      throw io::InputError("it is no graph of this release's hipress-sim");
    }
    if (said_rank != rank) throw io::InputError("it is another rank's file");
    if (rank == 0) {
      read_shared(shared);
    } else if (shared != shared_) {
      throw io::InputError("it belongs to another export than hipress.0.et");
    }
  }

  void read_shared(const Numbers& shared) {
    shared_ = shared;
    nodes_ = index(shared[1]);
    if (nodes_ == 0 || nodes_ > kMostNodes) throw io::InputError("it has no number of nodes");
    if (shared[2] == 0) throw io::InputError("it has no divisor");
    index(shared[2]);
    tasks_ = index(shared[3]);
    index(shared[4]);
    index(shared[5]);
    result_.gpus_per_node = index(shared[6]);
    result_.iteration = Picoseconds(number(shared[7]));
  }

  static models::Mix mix_of(const Numbers& numbers) {
    models::Mix mix{};
    double sum = 0;
    bool fits = numbers.size() == mix.size();
    for (std::size_t i = 0; fits && i < mix.size(); ++i) {
      sum += mix[i] = std::bit_cast<double>(numbers[i]);
      fits = mix[i] >= 0 && mix[i] <= 1;
    }
    if (!fits || std::abs(sum - 1) > models::kMixTolerance) {
      throw io::InputError("its mix is damaged");
    }
    return mix;
  }

  void read_once(const Attribute& attribute) {
    if (attribute.name == "hipress_names") result_.names = attribute.texts;
    if (attribute.name == "hipress_algorithms") result_.algorithms = attribute.texts;
    if (attribute.name == "hipress_need_places") need_places_ = attribute.numbers;
    if (attribute.name == "hipress_factors") factors_ = attribute.numbers;
    if (attribute.name == "hipress_staged_units") staged_ = attribute.numbers;
    if (attribute.name == "hipress_mix") mix_ = mix_of(attribute.numbers);
    if (attribute.name != "hipress_titles") return;
    if (attribute.texts.size() != 5) throw io::InputError("its titles are damaged");
    result_.model = attribute.texts[0];
    result_.plan = attribute.texts[1];
    result_.profile = attribute.texts[2];
    result_.network = attribute.texts[3];
    result_.transfer_order = attribute.texts[4];
  }

  void read_node(std::uint32_t rank, std::string_view message) {
    std::uint64_t id = 0;
    Numbers before;
    ReadTask read;
    FieldReader fields(message);
    while (const auto field = fields.next()) {
      if (field->number == chakra::kId) id = field->integer;
      if (field->number == chakra::kDataDependencies) append_numbers(*field, before);
      if (field->number != chakra::kAttribute) continue;
      const Attribute attribute = read_attribute(field->bytes);
      if (attribute.name == "hipress_task") read_task(attribute.numbers, read);
      if (attribute.name == "hipress_remote_deps") {
        before.insert(before.end(), attribute.numbers.begin(), attribute.numbers.end());
      }
      if (attribute.name == "hipress_ps" && attribute.numbers.size() == 2) {
        read.start = Picoseconds(number(attribute.numbers[0]));
        read.end = Picoseconds(number(attribute.numbers[1]));
      }
    }
    if (id >= tasks_) throw io::InputError("its task is not in the graph");
    if (!read.is_there) throw io::InputError("it lacks the attribute hipress_task");
    for (const std::uint64_t one : before) {
      if (one >= id) throw io::InputError("it depends on a task that does not come before it");
      read.before.push_back(index(one));
    }
    read.task.node = rank;
    read.id = index(id);
    found_.push_back(std::move(read));
  }

  void read_task(const Numbers& numbers, ReadTask& read) const {
    if (numbers.size() != 9 || numbers[0] >= casync::kKinds) {
      throw io::InputError("its attribute hipress_task is damaged");
    }
    Task& task = read.task;
    task.kind = static_cast<Kind>(numbers[0]);
    task.gradient = index(numbers[1]);
    task.partition = index(numbers[2]);
    task.peer_offset = index(numbers[3]);
    const std::int64_t algorithm = number(numbers[4]);
    const bool known = algorithm >= casync::kRaw &&
                       algorithm < static_cast<std::int64_t>(result_.algorithms.size()) &&
                       algorithm <= INT8_MAX;
    const bool has_name = task.kind == Kind::kForward || task.gradient < result_.names.size();
    constexpr std::uint64_t kRoles = 3;
    if (!known || !has_name || numbers[5] >= kRoles || numbers[6] > UINT8_MAX ||
        numbers[7] > UINT8_MAX || task.peer_offset >= nodes_) {
      throw io::InputError("its attribute hipress_task does not fit the graph");
    }
    task.algorithm = static_cast<std::int8_t>(algorithm);
    const bool codes = task.kind == Kind::kEncode || task.kind == Kind::kDecode;
    if (codes && algorithm == casync::kRaw) throw io::InputError("it codes with no algorithm");
    task.role = static_cast<casync::Role>(numbers[5]);
    task.flags = static_cast<casync::TaskFlags>(numbers[6]);
    task.stage = static_cast<std::uint8_t>(numbers[7]);
    task.amount = number(numbers[8]);
    read.is_there = true;
  }

  void read_factors(casync::TaskGraph& graph) const {
    if (factors_.size() % kFactorNumbers != 0 || staged_.size() % 2 != 0) {
      fail(0, "its factors are damaged");
    }
    for (std::size_t i = 0; i < factors_.size(); i += kFactorNumbers) {
      const std::uint64_t* const one = &factors_[i];
      graph.factors.push_back({.unit = index(one[0]),
                               .stage = index(one[1]),
                               .values = number(one[2]),
                               .elements = number(one[3]),
                               .element_ranks = number(one[4]),
                               .value_ranks = number(one[5]),
                               .mean_values = number(one[6])});
    }
    for (std::size_t i = 0; i < staged_.size(); i += 2) {
      if (staged_[i + 1] >= graph.factors.size()) fail(0, "its factors are damaged");
      graph.staged_units[index(staged_[i])] = index(staged_[i + 1]);
    }
    for (TaskId id = 0; id < graph.tasks(); ++id) {
      const Task& task = graph[id];
      const bool fits = task.gradient < graph.first_factor ||
                        task.gradient - graph.first_factor < graph.factors.size();
      const bool has_need = graph.need_places.empty() || task.gradient < graph.need_places.size();
      const bool has_factors = !casync::codes_factors(task) || !graph.factors_of(task).empty();
      if (!fits || !has_need || !has_factors) {
        fail(task.node, fmt::format("{} does not fit the graph", casync::describe(graph, id)));
      }
    }
  }

  ChakraGraph build() {
    if (found_.size() != tasks_) {
      fail(0, fmt::format("says that the graph has {} tasks, but {} are there", tasks_,
                          found_.size()));
    }
    std::ranges::sort(found_, {}, &ReadTask::id);
    casync::GraphBuilder builder(nodes_, static_cast<std::uint32_t>(shared_[4]));
    for (TaskId id = 0; id < tasks_; ++id) {
      if (found_[id].id != id)
        fail(0, fmt::format("says that there are {} tasks, but {} is missing", tasks_, id));
      builder.add(found_[id].task);
      result_.timeline.start.push_back(found_[id].start);
      result_.timeline.end.push_back(found_[id].end);
    }
    for (TaskId id = 0; id < tasks_; ++id) {
      for (const TaskId one : found_[id].before) builder.edge(one, id);
    }
    found_ = {};
    result_.timeline.title = "exported";
    result_.graph = std::move(builder).build();
    casync::TaskGraph& graph = result_.graph;
    graph.divisor = static_cast<std::uint32_t>(shared_[2]);
    graph.mix = mix_;
    graph.first_factor = static_cast<std::uint32_t>(shared_[5]);
    for (const std::uint64_t place : need_places_) graph.need_places.push_back(index(place));
    read_factors(graph);
    try {
      casync::check(graph);
    } catch (const std::invalid_argument& error) {
      fail(0, fmt::format("its graph cannot run: {}", error.what()));
    }
    return std::move(result_);
  }

  std::string folder_;
  ChakraGraph result_;
  Numbers shared_, need_places_, factors_, staged_;
  std::optional<models::Mix> mix_;
  std::uint32_t nodes_ = 1;
  std::uint32_t tasks_ = 0;
  std::vector<ReadTask> found_;
};

}  // namespace

std::string chakra_file(const std::string& folder, std::uint32_t rank) {
  return (std::filesystem::path(folder) / fmt::format("hipress.{}.et", rank)).string();
}

void write_chakra_graph(const std::string& folder, const ChakraGraph& what) {
  const casync::TaskGraph& graph = what.graph;
  if (graph.folded) {
    throw std::invalid_argument(
        "a folded graph has one node's tasks; expand it whole to export it");
  }
  require_same_graph(graph, what.timeline);
  io::make_folder(folder);
  std::vector<std::vector<TaskId>> before(graph.tasks());
  std::vector<std::vector<TaskId>> of_rank(graph.nodes);
  for (TaskId id = 0; id < graph.tasks(); ++id) {
    of_rank[graph[id].node].push_back(id);
    for (const TaskId next : casync::successors(graph, id)) before[next].push_back(id);
  }
  const RankWriter writer(what, before);
  for (std::uint32_t rank = 0; rank < graph.nodes; ++rank) {
    io::write_file(chakra_file(folder, rank), [&](std::ostream& out) {
      out << delimited(metadata_of(what, rank));
      for (const TaskId id : of_rank[rank]) out << delimited(writer.node(id));
    });
  }
}

ChakraGraph read_chakra_graph(const std::string& folder) { return GraphReader(folder).read(); }

}  // namespace hipress::traces
