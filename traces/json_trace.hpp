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

/// Shapes of an operator's tensors, including those in lists.
struct InputShapes {
  using Shapes = std::vector<std::vector<std::int64_t>>;
  /// Shapes of the first and the second argument; the first kMost of each.
  Shapes first, second;
  static constexpr std::size_t kMost = 4096;

  void clear();
};

/// Event of PyTorch's profiler: the fields that are used.
struct ProfilerEvent {
  std::string phase, category, name;
  std::int64_t start_ns = 0, length_ns = 0;  ///< time of a complete event (phase "X")
  bool has_times = false;
  std::uint64_t process = 0, thread = 0;  ///< hash of pid; hash of pid and tid
  // From "args":
  std::optional<std::int64_t> correlation, in_elements, out_elements, group_size;
  std::optional<std::int64_t> device;
  std::string collective, dtype, group, input_type;
  std::string label;                      ///< name of a process, in metadata events
  std::vector<std::int64_t> input_shape;  ///< shape of the first input
  bool has_input_shape = false;
  InputShapes shapes;

  void clear();
};

/// Node of PyTorch's execution trace: the fields that are used.
struct ExecutionNode {
  std::string name;
  std::int64_t id = -1, parent = -1;
  std::vector<std::int64_t> input_shape;  ///< shape of the first input
  bool has_input_shape = false;
  InputShapes shapes;
  std::string input_type;  ///< "Tensor(float)"

  void clear();
};

/// Remedy for a file of Chakra's JSON.
inline constexpr std::string_view kInsteadOfChakra =
    "the .et file that it was made of, or PyTorch's own trace";

/// Fields of the object around the events.
struct TraceHeader {
  bool has_events = false, has_nodes = false;
  /// True if the file is an array of events without closing bracket. Chrome's format allows that,
  /// and Horovod never writes it.
  bool is_open = false;
  bool is_of_chakra = false;  ///< true if it has keys of Chakra's JSON
  std::optional<std::int64_t> world_size;
  std::set<std::int64_t> ranks;  ///< ranks that recorded it; at most two are kept
  std::string device;            ///< name of the first device
};

/// Reads a JSON trace in one pass, in bounded memory, and passes each event or node to a callback.
/// Throws io::InputError, with file and line, for malformed or truncated JSON, several documents,
/// lists of traces, values of more than 16 MiB, more than 64 levels, times that are not numbers,
/// and events that `on_event` refuses by io::InputError.
TraceHeader read_json_trace(ByteStream& bytes,
                            const std::function<void(const ProfilerEvent&)>& on_event,
                            const std::function<void(const ExecutionNode&)>& on_node);

/// Nanoseconds of a decimal number of microseconds, such as "4458676522690.655", rounded down;
/// empty if the text is not such a number, or is out of range.
std::optional<std::int64_t> nanoseconds(std::string_view microseconds);

}  // namespace hipress::traces
