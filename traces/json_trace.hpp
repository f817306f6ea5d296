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

/// The shapes of an operator's tensors, of those in lists too.
struct InputShapes {
  using Shapes = std::vector<std::vector<std::int64_t>>;
  /// Of the first argument and the second; of more than kMost the first.
  Shapes first, second;
  static constexpr std::size_t kMost = 4096;

  void clear();
};

/// An event of PyTorch's profiler, with those of its fields that are used.
struct ProfilerEvent {
  std::string phase, category, name;
  std::int64_t start_ns = 0, length_ns = 0;  ///< of phase "X"
  bool has_times = false;
  std::uint64_t process = 0, thread = 0;  ///< of pid; of pid and tid
  // Of "args".
  std::optional<std::int64_t> correlation, in_elements, out_elements, group_size;
  std::optional<std::int64_t> device;
  std::string collective, dtype, group, input_type;
  std::string label;                      ///< of a process, in the event that names it
  std::vector<std::int64_t> input_shape;  ///< of the first input
  bool has_input_shape = false;
  InputShapes shapes;

  void clear();
};

/// A node of PyTorch's execution trace, likewise.
struct ExecutionNode {
  std::string name;
  std::int64_t id = -1, parent = -1;
  std::vector<std::int64_t> input_shape;  ///< of the first input
  bool has_input_shape = false;
  InputShapes shapes;
  std::string input_type;  ///< "Tensor(float)"

  void clear();
};

/// What to give where a file is Chakra's JSON.
inline constexpr std::string_view kInsteadOfChakra =
    "the .et file that it was made of, or PyTorch's own trace";

/// What else the object around the events says.
struct TraceHeader {
  bool has_events = false, has_nodes = false;
  /// The array of events, which is all that the file holds, has no closing bracket. Chrome's format
  /// allows that, and Horovod never writes it.
  bool is_open = false;
  bool is_of_chakra = false;  ///< has keys of Chakra's JSON, which is another than PyTorch's
  std::optional<std::int64_t> world_size;
  std::set<std::int64_t> ranks;  ///< that say to have recorded it; of more than two, two
  std::string device;            ///< of the first device
};

/// Reads a JSON trace in one pass and hands out its events or nodes one by one; memory is bounded,
/// whatever the file holds. io::InputError with file and line for JSON that is malformed or ends
/// too early, several documents, lists of traces, values of more than 16 MiB, nesting of more than
/// 64 levels, events whose times are not numbers, and events that `on_event` throws io::InputError
/// for.
TraceHeader read_json_trace(ByteStream& bytes,
                            const std::function<void(const ProfilerEvent&)>& on_event,
                            const std::function<void(const ExecutionNode&)>& on_node);

/// Nanoseconds of a decimal number of microseconds, such as "4458676522690.655"; what is finer is
/// cut off. None for what is no such number, or does not fit.
std::optional<std::int64_t> nanoseconds(std::string_view microseconds);

}  // namespace hipress::traces
