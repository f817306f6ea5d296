// Part of ProfilerTrace that selects events.

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <iterator>
#include <string_view>
#include <system_error>
#include <utility>

#include "io/error.hpp"
#include "io/quantity.hpp"
#include "models/model.hpp"
#include "traces/autograd_names.hpp"
#include "traces/profiler_trace.hpp"
#include "traces/sharded_ranges.hpp"
#include "traces/tensors.hpp"

namespace hipress::traces {
namespace {

constexpr std::string_view kProfilerStep = "ProfilerStep#";
constexpr std::string_view kAllReduce = "allreduce";
constexpr std::string_view kC10d = "c10d::";
constexpr std::string_view kParameters = "record_param_comms";
constexpr std::string_view kOptimizerStep = "Optimizer.step#";
constexpr std::string_view kSubmit = "hipress::submit(";
constexpr std::string_view kWait = "hipress::wait(";
constexpr std::string_view kGloo = "gloo:";

/// Prefixes of ranges that a GPU's collective library opens around a launch.
constexpr std::string_view kOfGpus[] = {"nccl:", "xccl:", "ucc:", "hccl:"};

bool is_of_gpus(std::string_view name) {
  return std::ranges::any_of(kOfGpus,
                             [&](std::string_view begin) { return name.starts_with(begin); });
}

/// Operators that multiply or factorise matrices.
constexpr std::string_view kProducts[] = {"aten::mm", "aten::bmm", "aten::matmul",
                                          "aten::linalg_qr"};

/// Kind of an event, by the name of its category. Older profilers use different names, and
/// profilers without Kineto write none.
enum class Category : std::uint8_t { kOperator, kKernel, kMemory, kCall, kOther };
struct CategoryRow {
  std::string_view text;
  Category category;
};
constexpr CategoryRow kCategories[] = {
    {"cpu_op", Category::kOperator},
    {"Operator", Category::kOperator},
    {"user_annotation", Category::kOperator},
    {"", Category::kOperator},
    {"kernel", Category::kKernel},
    {"Kernel", Category::kKernel},
    {"gpu_memcpy", Category::kMemory},
    {"Memcpy", Category::kMemory},
    {"gpu_memset", Category::kMemory},
    {"Memset", Category::kMemory},
    {"Runtime", Category::kCall},
};

Category category_of(std::string_view text) {
  for (const CategoryRow& row : kCategories) {
    if (row.text == text) return row.category;
  }
  // The prefix depends on the vendor: cuda_runtime, cuda_driver, hip_runtime, xpu_runtime,
  // privateuse1_runtime …
  const bool is_call = text.ends_with("_runtime") || text.ends_with("_driver");
  return is_call ? Category::kCall : Category::kOther;
}

/// Categories of events that belong neither to the CPU's operators nor to a device.
constexpr std::string_view kBeside[] = {"python_function",
                                        "gpu_user_annotation",
                                        "overhead",
                                        "Trace",
                                        "ac2g",
                                        "fwdbwd",
                                        "async_cpu_to_gpu",
                                        "async_gpu",
                                        "cuda_sync",
                                        "cuda_event",
                                        "external_correlation",
                                        "cpu_instant_event"};

/// Value of `key` in the name of a range, which contains "key=value". It ends at a comma or
/// bracket; empty if the key is missing.
std::string_view value_in(std::string_view range, std::string_view key) {
  const std::size_t at = range.find(fmt::format("{}=", key));
  if (at == std::string_view::npos) return {};
  const std::string_view rest = range.substr(at + key.size() + 1);
  return rest.substr(0, rest.find_first_of(",)"));
}

/// Value of `key` as a number; 0 if it is missing or not a number.
std::int64_t number_in(std::string_view range, std::string_view key) {
  const std::string_view text = value_in(range, key);
  std::int64_t number = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  return error == std::errc() && end == text.data() + text.size() ? number : 0;
}

}  // namespace

void ProfilerTrace::add(const ProfilerEvent& event) {
  ++events_;
  if (event.phase != "X" || !event.has_times) return;
  bool lasts = false;  // true if the event's length is used
  switch (category_of(event.category)) {
    case Category::kKernel:
    case Category::kMemory:
      add_activity(event);
      lasts = true;
      break;
    case Category::kOperator:
      lasts = add_operator(event);
      break;
    case Category::kCall:
      if (event.correlation) {
        calls_.push_back({*event.correlation, event.start_ns, event.thread});
      }
      break;
    case Category::kOther:
      count_unknown(event.category);
      return;
  }
  if (lasts && event.length_ns < 0) {
    throw io::InputError(fmt::format("ends {} before it begins; record the trace again",
                                     io::format_duration(-to_seconds(event.length_ns))));
  }
  extent_.begin = std::min(extent_.begin, event.start_ns);
  extent_.end = std::max(extent_.end, event.start_ns + event.length_ns);
}

void ProfilerTrace::count_unknown(const std::string& category) {
  constexpr std::size_t kMost = 64;
  if (std::ranges::find(kBeside, category) != std::end(kBeside)) return;
  if (unknown_.size() >= kMost && !unknown_.contains(category)) return;
  ++unknown_[short_text(category)];
}

ProfilerTrace::Collective ProfilerTrace::collective_in(const ProfilerEvent& event) {
  Collective what{.name = short_text(event.collective),
                  .dtype = short_text(event.dtype),
                  .elements = event.in_elements.value_or(0),
                  .out_elements = event.out_elements.value_or(0),
                  .group_size = event.group_size,
                  .group = short_text(event.group)};
  // In older profilers, collectives have no field for their name; the event's own name tells it.
  if (what.name.empty() && event.name != kParameters) what.name = short_text(event.name);
  if (what.has_size() || event.shapes.first.empty()) return what;
  // If there are two tensors or lists, the first is the output.
  const bool has_two = !event.shapes.second.empty();
  what.elements = elements_of_all(has_two ? event.shapes.second : event.shapes.first);
  if (has_two) what.out_elements = elements_of_all(event.shapes.first);
  if (event.input_type != "TensorList") what.dtype = short_text(event.input_type);
  return what;
}

/// Bucket that a range of python/hipress/_ddp.py describes: "hipress::submit(bucket=0, bytes=1024,
/// dtype=float32, ranks=2)".
ProfilerTrace::Collective ProfilerTrace::bucket_in(std::string_view range) {
  Collective what{.name = std::string(kAllReduce), .dtype = short_text(value_in(range, "dtype"))};
  for (const models::Dtype dtype :
       {models::Dtype::kFloat32, models::Dtype::kFloat16, models::Dtype::kBfloat16}) {
    if (what.dtype == models::to_string(dtype)) {
      what.elements = number_in(range, "bytes") / models::size_of(dtype);
    }
  }
  const std::int64_t ranks = number_in(range, "ranks");
  if (ranks > 0) what.group_size = ranks;
  return what;
}

/// Gradient or bucket that an all-reduce carries. A list of tensors has a size but no type; float32
/// is then assumed.
TracedGradient ProfilerTrace::traced_of(const Collective& what) {
  TracedGradient traced;
  traced.elements = std::max<std::int64_t>(0, what.elements);
  traced.dtype = dtype_of(what.dtype);
  traced.ranks = what.group_size;
  traced.assumed = traced.elements > 0 && traced.dtype.empty();
  if (traced.assumed) traced.dtype = models::to_string(models::Dtype::kFloat32);
  return traced;
}

void ProfilerTrace::add_activity(const ProfilerEvent& event) {
  is_of_pytorch_ = true;
  const bool is_kernel = category_of(event.category) == Category::kKernel;
  // The event's fields take precedence over its name.
  const bool communicates =
      is_kernel && (!event.collective.empty() || communication_of(event.name));
  Activity activity{.time = {event.start_ns, event.start_ns + event.length_ns},
                    .correlation = event.correlation.value_or(-1),
                    .computes = is_kernel && !communicates,
                    .stream = event.thread};
  if (communicates) {
    activity.collective = static_cast<int>(collectives_.size());
    collectives_.push_back(collective_in(event));
    if (event.device) ranks_.add_device(*event.device);
  }
  if (activity.computes) kernels_.add(event.name, event.length_ns);
  activities_.push_back(activity);
}

/// Keeps a range of FSDP's hooks. Returns true if the event is such a range.
bool ProfilerTrace::add_range_of_fsdp(const ProfilerEvent& event) {
  auto range = range_of_fsdp(event.name);
  if (!range) return false;
  const Interval time{event.start_ns, event.start_ns + event.length_ns};
  fsdp_hooks_.push_back(time);
  if (range->communicates) {
    layer_ranges_.push_back({event.thread, time, range->is_named, std::move(range->layer)});
  }
  return true;
}

/// Keeps the starts of tensor operators, which separate forward from backward. Also keeps updates,
/// products, copies and uses of sparse tensors.
void ProfilerTrace::add_tensor_operator(const ProfilerEvent& event) {
  forward_.push_back({event.thread, event.start_ns});
  if (is_in_place(event.name) && !event.shapes.first.empty()) {
    in_place_.push_back({event.start_ns, {event.name, event.shapes.first}});
  }
  if (std::ranges::find(kProducts, event.name) != std::end(kProducts)) {
    products_.push_back({event.thread, event.start_ns});
  } else if (event.name == "aten::_chunk_cat") {
    copies_.push_back({event.start_ns, event.shapes.first});
  } else if (is_of_sparse_tensors(event.name)) {
    sparse_.push_back({event.thread, event.start_ns, sparse_size_of(event.name, event.shapes)});
  }
}

/// Keeps an operator or range. Returns true if the event's length is used.
bool ProfilerTrace::add_operator(const ProfilerEvent& event) {
  const std::string_view name = event.name;
  const Operator plain{.time = {event.start_ns, event.start_ns + event.length_ns},
                       .thread = event.thread};
  if (name.starts_with(kProfilerStep)) {
    steps_.push_back({short_text(event.name), plain.time, plain.thread});
    ranks_.add_step(steps_.back().name);
  } else if (name.starts_with(kOptimizerStep)) {
    optimizer_steps_.push_back(plain.time);
  } else if (name.starts_with(kSubmit)) {
    submits_.push_back({plain, bucket_in(name)});
  } else if (name.starts_with(kWait)) {
    waits_.push_back(plain);
  } else if (name == kParameters) {
    collective_calls_.push_back({plain, collective_in(event)});
  } else if (name == kAccumulate) {
    innermost_.push_back(plain);
    innermost_.back().shape = event.input_shape;
    innermost_.back().dtype = short_text(event.input_type);
    innermost_.back().has_shape = event.has_input_shape;
  } else if (name.starts_with(kEvaluate)) {
    backwards_.push_back(plain);
    if (name.substr(kEvaluate.size()) == kAccumulate) accumulates_.push_back(plain);
  } else if (name.starts_with(kC10d)) {
    c10d_calls_.push_back({plain, collective_in(event)});
  } else if (add_range_of_fsdp(event)) {
    return true;
  } else if (is_of_gpus(name)) {
    described_.push_back({plain, collective_in(event)});
    return true;
  } else if (name.starts_with(kGloo)) {
    library_calls_.push_back({plain.time, collective_named(name),
                              elements_or_none(event.input_shape), short_text(event.input_type)});
    return true;
  } else if (name.starts_with("aten::")) {
    add_tensor_operator(event);
    is_of_pytorch_ = true;
    return false;
  } else {
    has_functions_ = has_functions_ || name.ends_with("Backward0") || name.ends_with("Backward");
    return false;
  }
  ranks_.add_process(event.process);
  is_of_pytorch_ = true;
  return true;
}

}  // namespace hipress::traces
