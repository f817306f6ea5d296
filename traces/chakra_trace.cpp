// Reads Chakra traces as Chakra's converter writes them from PyTorch's traces.

#include <fmt/format.h>

#include <iterator>

#include "io/error.hpp"
#include "models/descriptions.hpp"
#include "traces/chakra_schema.hpp"
#include "traces/node_trace.hpp"
#include "traces/protobuf.hpp"
#include "traces/trace_reader.hpp"

namespace hipress::traces {
namespace {

/// The attributes of a node that are read.
struct Attributes {
  bool is_cpu = false;
  std::optional<std::uint64_t> type, bytes;
};

void read_attribute(std::string_view message, Attributes& attributes) {
  FieldReader fields(message);
  std::string_view name;
  std::uint64_t value = 0;
  while (const auto field = fields.next()) {
    if (field->number == chakra::kAttributeName) name = field->bytes;
    if (!field->is_delimited) value = field->integer;
  }
  if (name == "is_cpu_op") attributes.is_cpu = value != 0;
  if (name == "comm_type") attributes.type = value;
  if (name == "comm_size") attributes.bytes = value;
}

/// Thrown if metadata follows where a node is expected: a second trace begins.
struct SecondTrace : io::InputError {
  SecondTrace() : io::InputError("another trace begins") {}
};

/// First type in a list: "Tensor(float)" in "['Tensor(float)', 'Int']".
std::string first_type(std::string_view text) {
  const std::size_t open = text.find('\'');
  if (open == std::string_view::npos) return {};
  const std::string_view rest = text.substr(open + 1);
  return std::string(rest.substr(0, rest.find('\'')));
}

void read_inputs(std::string_view message, TraceNode& node, InputShapes& shapes) {
  FieldReader fields(message);
  while (const auto field = fields.next()) {
    if (field->number == chakra::kShapes) {
      node.shape = first_shape(field->bytes);
      node.has_shape = field->bytes.starts_with("[[");
      shapes = input_shapes(field->bytes);
      node.shapes = &shapes;
    }
    if (field->number == chakra::kTypes) node.dtype = first_type(field->bytes);
  }
}

/// Kind of a node's communication, from its attributes; empty if it does not communicate.
std::string_view communication_in(std::uint64_t type, const Attributes& attributes) {
  if (type == chakra::kSendNode) return "send";
  if (type == chakra::kReceiveNode) return "receive";
  if (type != chakra::kCollectiveNode) return {};
  const bool known = attributes.type && *attributes.type < std::size(chakra::kCollectiveNames);
  return known ? chakra::kCollectiveNames[*attributes.type] : "collective of unknown kind";
}

/// Totals over the nodes of a file.
struct Counts {
  std::int64_t nodes = 0, collectives = 0, cpu_duplicates = 0;
  bool all_typed = true;  ///< every node has a type of the schema
};

void read_node(std::string_view message, NodeTrace& trace, Counts& counts) {
  TraceNode node;
  InputShapes shapes;
  Attributes attributes;
  std::uint64_t type = 0;
  std::vector<std::uint64_t> callers;
  FieldReader fields(message);
  while (const auto field = fields.next()) {
    switch (field->number) {
      case chakra::kId:
        if (field->is_delimited) throw SecondTrace();
        node.id = static_cast<std::int64_t>(field->integer);
        break;
      case chakra::kName:
        node.name = field->bytes;
        break;
      case chakra::kType:
        type = field->integer;
        break;
      case chakra::kControlDependencies:
        append_numbers(*field, callers);
        break;
      case chakra::kInputs:
        read_inputs(field->bytes, node, shapes);
        break;
      case chakra::kAttribute:
        read_attribute(field->bytes, attributes);
        break;
      default:
        break;
    }
  }
  if (!callers.empty()) node.parent = static_cast<std::int64_t>(callers.front());
  ++counts.nodes;
  counts.all_typed =
      counts.all_typed && type >= chakra::kMetadataNode && type <= chakra::kCollectiveNode;
  node.communication = communication_in(type, attributes);
  node.bytes = static_cast<std::int64_t>(attributes.bytes.value_or(0) & INT64_MAX);
  node.is_cpu = attributes.is_cpu;
  if (type == chakra::kCollectiveNode) {
    ++counts.collectives;
    counts.cpu_duplicates += attributes.is_cpu ? 1 : 0;
    if (attributes.type == chakra::kAllReduceType && attributes.bytes) {
      node.all_reduce_bytes = node.bytes;
    }
    node.is_reduce_scatter = attributes.type == chakra::kReduceScatterType;
  }
  trace.add(node);
}

/// Requires a GlobalMetadata message, and refuses exports of HiPress.
void check_metadata(std::string_view message, const std::string& file) {
  FieldReader fields(message);
  while (const auto field = fields.next()) {
    const bool known =
        field->number == chakra::kVersion || field->number == chakra::kMetadataAttribute;
    if (!known || !field->is_delimited) throw io::InputError("it is no GlobalMetadata");
    if (field->number != chakra::kMetadataAttribute) continue;
    FieldReader attribute(field->bytes);
    while (const auto part = attribute.next()) {
      if (part->number == chakra::kAttributeName && part->bytes == chakra::kOurGraph) {
        throw io::InputError(file, 0,
                             "is a graph of hipress-sim `export_chakra`; simulate its folder with "
                             "hipress-sim `chakra`");
      }
    }
  }
}

}  // namespace

Imported read_chakra_trace(ByteStream& bytes) {
  MessageStream messages(bytes);
  NodeTrace trace;
  Counts counts;
  const auto no_chakra = [&](const std::string& why) {
    return io::InputError(
        bytes.name(), 0,
        fmt::format("is neither JSON nor a Chakra execution trace ({}); give what PyTorch's "
                    "profiler, its execution trace observer or Chakra's converter wrote. "
                    "Of a model, {}",
                    why, models::description_remedy()));
  };
  try {
    const auto metadata = messages.next();
    if (!metadata || metadata->empty()) throw io::InputError("its first message is empty");
    check_metadata(*metadata, bytes.name());
  } catch (const io::InputError& error) {
    const std::string why = error.what();
    if (why.find("hipress-sim") != std::string::npos) throw;
    throw no_chakra(why);
  }
  while (const auto message = messages.next()) {
    try {
      read_node(*message, trace, counts);
    } catch (const SecondTrace&) {
      messages.fail(
          "begins another trace, as in a file that joins the traces of several ranks; give one "
          "rank's file");
    } catch (const io::InputError& error) {
      messages.fail(fmt::format("is no node: {}; copy or export the file again", error.what()));
    }
  }
  auto imported = finish_in(bytes.name(), [&] { return trace.finish(); });
  if (!imported && counts.nodes > 0 && counts.all_typed) {
    throw io::InputError(
        bytes.name(), 0,
        fmt::format("is a Chakra execution trace of {} nodes, of which none communicates or is "
                    "PyTorch's, so nothing in it is a gradient; give the trace of a training step",
                    counts.nodes));
  }
  if (!imported) throw no_chakra("no node of it is PyTorch's");
  imported->format = "Chakra execution trace";
  imported->collectives = counts.collectives;
  // The CPU's records are duplicates only if the GPU has records, too.
  imported->cpu_duplicates = counts.cpu_duplicates < counts.collectives ? counts.cpu_duplicates : 0;
  return *imported;
}

}  // namespace hipress::traces
