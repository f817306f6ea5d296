#include "traces/trace_reader.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <string_view>

#include "io/error.hpp"
#include "io/file_kind.hpp"
#include "models/descriptions.hpp"
#include "traces/json_trace.hpp"
#include "traces/node_trace.hpp"
#include "traces/profiler_trace.hpp"

namespace hipress::traces {
namespace {

constexpr std::size_t kLooked = 64;

bool is_text(std::string_view first) {
  return std::ranges::all_of(first, [](char one) {
    const auto byte = static_cast<unsigned char>(one);
    return byte >= 0x20 || one == '\t' || one == '\r' || one == '\n';
  });
}

/// True for JSON, which is text that begins with a bracket. Chakra's messages begin with lengths
/// and field numbers.
bool looks_like_json(std::string_view first) {
  if (first.starts_with("\xef\xbb\xbf")) first.remove_prefix(3);
  const std::size_t start = first.find_first_not_of(" \t\r\n");
  if (start == std::string_view::npos || (first[start] != '{' && first[start] != '[')) return false;
  return is_text(first);
}

/// Programs that write Chrome's format, recognised by the beginning of an event's or process's
/// name.
struct WriterRow {
  std::string ProfilerEvent::*name;
  std::string_view begins, is;
};
constexpr WriterRow kWriters[] = {
    {&ProfilerEvent::name, "NEGOTIATE_", "a timeline of Horovod (HOROVOD_TIMELINE)"},
    {&ProfilerEvent::label, "predicted node ", "a timeline that hipress-sim or hipress-exec wrote"},
    {&ProfilerEvent::label, "measured node ", "a timeline that hipress-exec wrote"},
    {&ProfilerEvent::label, "/device:", "a trace of TensorFlow's or JAX's profiler"},
    {&ProfilerEvent::label, "/host:", "a trace of TensorFlow's or JAX's profiler"},
};

std::string_view writer_of(const ProfilerEvent& event) {
  for (const WriterRow& row : kWriters) {
    if ((event.*row.name).starts_with(row.begins)) return row.is;
  }
  return {};
}

/// Refuses a trace in which no event or node is PyTorch's.
[[noreturn]] void refuse_others(const std::string& file, std::string_view writer,
                                std::string_view parts) {
  throw io::InputError(
      file, 0,
      fmt::format("{}none of its {} is PyTorch's: no operator, no kernel; give what "
                  "torch.profiler's export_chrome_trace wrote",
                  writer.empty() ? "" : fmt::format("is {}: ", writer), parts));
}

/// Text formats other than JSON, recognised by a text near the beginning of a file.
struct TextRow {
  std::string_view holds, is, remedy;
};
constexpr TextRow kTexts[] = {
    {"schema: hipress.", "a file of hipress-profile or hipress-plan", "hipress-sim takes it"},
    {"\ngradients:", "a model or a plan", "hipress-plan takes a model as `input`"},
    {",y,", "a plan", "hipress-sim takes it as `plan`"},
    {",n,", "a plan", "hipress-sim takes it as `plan`"},
    {",elements", "a list of gradients", "hipress-plan takes it as `input`"},
};

/// Refuses text that is not JSON.
void refuse_text(const std::string& file, std::string_view first) {
  if (!is_text(first)) return;
  for (const TextRow& row : kTexts) {
    if (first.find(row.holds) == std::string_view::npos) continue;
    throw io::InputError(
        file, 0, fmt::format("is {}, and no trace of a training job; {}", row.is, row.remedy));
  }
  throw io::InputError(file, 0,
                       "is text and no JSON; give what PyTorch's profiler or its execution trace "
                       "observer wrote. Of a model, " +
                           models::description_remedy());
}

Imported read_json(ByteStream& bytes) {
  ProfilerTrace profiler;
  NodeTrace nodes;
  std::string_view writer;
  const TraceHeader header = read_json_trace(
      bytes,
      [&](const ProfilerEvent& event) {
        if (writer.empty()) writer = writer_of(event);
        profiler.add(event);
      },
      [&](const ExecutionNode& node) {
        nodes.add({.id = node.id,
                   .parent = node.parent,
                   .name = node.name,
                   .shape = node.input_shape,
                   .has_shape = node.has_input_shape,
                   .dtype = node.input_type,
                   .shapes = &node.shapes});
      });
  const auto refuse_chakra = [&] {
    if (!header.is_of_chakra) return;
    throw io::InputError(bytes.name(), 0,
                         fmt::format("is an execution trace in Chakra's JSON, which is not read; "
                                     "give {}",
                                     kInsteadOfChakra));
  };
  if (!header.has_events && !header.has_nodes) {
    refuse_chakra();
    throw io::InputError(bytes.name(), 0,
                         "has neither 'traceEvents' nor 'nodes': it is no trace of PyTorch's "
                         "profiler or of its execution trace observer. Of a model, " +
                             models::description_remedy());
  }
  auto imported = finish_in(
      bytes.name(), [&] { return header.has_events ? profiler.finish(header) : nodes.finish(); });
  if (!imported) refuse_chakra();
  if (!imported) refuse_others(bytes.name(), writer, header.has_events ? "events" : "nodes");
  return *imported;
}

}  // namespace

std::optional<Imported> finish_in(const std::string& file,
                                  const std::function<std::optional<Imported>()>& finish) {
  try {
    return finish();
  } catch (const io::InputError& error) {
    throw io::InputError(file, 0, error.what());
  }
}

Imported read_trace(ByteStream& bytes) {
  Peeked peeked(bytes);
  if (peeked.peek(1).empty()) {
    throw io::InputError(bytes.name(), 0, "is empty; export the trace again");
  }
  const std::string_view first = peeked.peek(io::kKindBytes);
  if (looks_like_json(first.substr(0, kLooked))) return read_json(peeked);
  io::refuse_kind(bytes.name(), first);
  refuse_text(bytes.name(), first);
  return read_chakra_trace(peeked);
}

Imported read_trace(const std::string& path) { return read_trace(*open_unpacked(path)); }

}  // namespace hipress::traces
