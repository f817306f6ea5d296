#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "traces/byte_stream.hpp"

namespace hipress::traces {

/// Shapes of an operator's tensors, including tensors in lists.
struct InputShapes {
  using Shapes = std::vector<std::vector<std::int64_t>>;
  /// Shapes of the tensors in the first and the second argument, at most kMost of each.
  Shapes first, second;
  static constexpr std::size_t kMost = 4096;

  void clear();
};

/// The used fields of an event of PyTorch's profiler.
struct ProfilerEvent {
  std::string phase, category, name;
  std::int64_t start_ns = 0, length_ns = 0;  ///< time of a complete event (phase "X")
  bool has_times = false;
  std::uint64_t process = 0, thread = 0;  ///< hash of pid; hash of pid and tid
  // Fields of "args":
  std::optional<std::int64_t> correlation, in_elements, out_elements, group_size;
  std::optional<std::int64_t> device;
  std::string collective, dtype, group, input_type;
  std::string label;                      ///< name of a process, in metadata events
  std::vector<std::int64_t> input_shape;  ///< shape of the first input
  bool has_input_shape = false;
  InputShapes shapes;

  void clear();
};

/// The used fields of a node of PyTorch's execution trace.
struct ExecutionNode {
  std::string name;
  std::int64_t id = -1, parent = -1;
  std::vector<std::int64_t> input_shape;  ///< shape of the first input
  bool has_input_shape = false;
  InputShapes shapes;
  std::string input_type;  ///< "Tensor(float)"

  void clear();
};

/// Remedy for a file in Chakra's JSON format.
inline constexpr std::string_view kInsteadOfChakra =
    "the .et file that it was made of, or PyTorch's own trace";

/// Properties of a trace that are stored outside of its events.
struct TraceHeader {
  bool has_events = false, has_nodes = false;
  /// True if the file is an array of events without a closing bracket. Chrome's format allows that,
  /// and Horovod's files never have the bracket.
  bool is_open = false;
  bool is_of_chakra = false;  ///< it has keys of Chakra's JSON
  std::optional<std::int64_t> world_size;
  std::set<std::int64_t> ranks;  ///< ranks that recorded it, at most two: enough to refuse it
  std::string device;            ///< name of the first device
};

/// Reads a JSON trace in one pass and in bounded memory. Passes each event or node to a callback.
/// Throws io::InputError, with file and line, for JSON that is malformed or truncated, for several
/// documents, lists of traces, values of more than 16 MiB, more than 64 levels and times that are
/// not numbers, and if `on_event` throws io::InputError.
TraceHeader read_json_trace(ByteStream& bytes,
                            const std::function<void(const ProfilerEvent&)>& on_event,
                            const std::function<void(const ExecutionNode&)>& on_node);

/// Converts a decimal number of microseconds, such as "4458676522690.655", to nanoseconds, rounded
/// down. Empty if the text is not such a number or is out of range.
std::optional<std::int64_t> nanoseconds(std::string_view microseconds);

}  // namespace hipress::traces
