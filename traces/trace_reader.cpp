#include "traces/trace_reader.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <string_view>

#include "io/error.hpp"
#include "traces/json_trace.hpp"
#include "traces/node_trace.hpp"
#include "traces/profiler_trace.hpp"

namespace hipress::traces {
namespace {

constexpr std::size_t kLooked = 64;

/// JSON is text, and begins with a bracket; Chakra's messages hold lengths and field numbers.
bool looks_like_json(std::string_view first) {
  if (first.starts_with("\xef\xbb\xbf")) first.remove_prefix(3);
  const std::size_t start = first.find_first_not_of(" \t\r\n");
  if (start == std::string_view::npos || (first[start] != '{' && first[start] != '[')) return false;
  return std::ranges::all_of(first, [](char one) {
    const auto byte = static_cast<unsigned char>(one);
    return byte >= 0x20 || one == '\t' || one == '\r' || one == '\n';
  });
}

/// A byte-order mark, or a bracket and zeros.
bool is_utf16(std::string_view first) {
  using namespace std::string_view_literals;
  const auto begins = {"\xff\xfe"sv, "\xfe\xff"sv, "{\0"sv, "[\0"sv, "\0{"sv, "\0["sv};
  return std::ranges::any_of(begins,
                             [&](std::string_view mark) { return first.starts_with(mark); });
}

Imported read_json(ByteStream& bytes) {
  ProfilerTrace profiler;
  NodeTrace nodes;
  const TraceHeader header = read_json_trace(
      bytes, [&](const ProfilerEvent& event) { profiler.add(event); },
      [&](const ExecutionNode& node) {
        nodes.add({.id = node.id,
                   .parent = node.parent,
                   .name = node.name,
                   .shape = node.input_shape,
                   .has_shape = node.has_input_shape,
                   .dtype = node.input_type,
                   .shapes = &node.shapes});
      });
  if (!header.has_events && !header.has_nodes) {
    throw io::InputError(bytes.name(), 0,
                         "has neither 'traceEvents' nor 'nodes': it is no trace of PyTorch's "
                         "profiler or of its execution trace observer");
  }
  auto imported = header.has_events ? profiler.finish(header) : nodes.finish();
  if (imported) return *imported;
  throw io::InputError(bytes.name(), 0,
                       fmt::format("none of its {} is PyTorch's: no operator, no kernel; give what "
                                   "torch.profiler's export_chrome_trace wrote",
                                   header.has_events ? "events" : "nodes"));
}

}  // namespace

Imported read_trace(ByteStream& bytes) {
  Peeked peeked(bytes);
  if (peeked.peek(1).empty()) {
    throw io::InputError(bytes.name(), 0, "is empty; export the trace again");
  }
  if (is_utf16(peeked.peek(kLooked))) {
    throw io::InputError(
        bytes.name(), 0,
        "is text in UTF-16, as some editors save it; save it as UTF-8, or give the "
        "trace as it was exported");
  }
  return looks_like_json(peeked.peek(kLooked)) ? read_json(peeked) : read_chakra_trace(peeked);
}

Imported read_trace(const std::string& path) { return read_trace(*open_unpacked(path)); }

}  // namespace hipress::traces
