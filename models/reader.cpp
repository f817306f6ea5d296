#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <system_error>
#include <unordered_map>
#include <vector>

#include "io/error.hpp"
#include "io/file.hpp"
#include "io/quantity.hpp"
#include "io/suggestion.hpp"
#include "io/utf8.hpp"
#include "io/yaml.hpp"
#include "models/architectures.hpp"
#include "models/descriptions.hpp"
#include "models/model.hpp"
#include "models/model_file.hpp"
#include "models/shape.hpp"
#include "models/traced.hpp"

namespace hipress::models {
namespace {
namespace fs = std::filesystem;

constexpr std::string_view kName = "name", kElements = "elements", kReady = "ready_us",
                           kShape = "shape";
constexpr double kMaxFlops = 1e30;
constexpr std::int64_t kMaxPositions = std::int64_t{1} << 40;
constexpr Dtype kGradientDtypes[] = {Dtype::kFloat32, Dtype::kFloat16, Dtype::kBfloat16};

/// Collects the gradients of one file and refuses invalid ones.
class GradientList {
 public:
  explicit GradientList(std::string file) : file_(std::move(file)) {}

  /// Refuses an empty or duplicate name. Call it before reading the other fields, so that errors
  /// about them can name the gradient.
  void claim(std::string_view name, int line) {
    if (name.empty()) {
      throw io::InputError(file_, line, "a gradient's name must not be empty");
    }
    if (const std::string found = io::unfit_for_name(name); !found.empty()) {
      throw io::InputError(
          file_, line,
          fmt::format("gradient {}: its name must not hold {}; rename it", io::quote(name), found));
    }
    const auto [first, is_new] = lines_.emplace(name, line);
    if (!is_new) {
      throw io::InputError(
          file_, line,
          fmt::format("gradient {} is listed twice, first in line {}; names must be unique",
                      io::quote(name), first->second));
    }
  }

  void add(Gradient gradient, int line) {
    const std::string label = fmt::format("gradient {}: ", io::quote(gradient.name));
    if (gradient.elements > kMaxElements - total_) {
      throw io::InputError(
          file_, line,
          fmt::format("{}all gradients together must have at most 2^48 elements", label));
    }
    total_ += gradient.elements;
    gradients_.push_back(std::move(gradient));
  }

  std::vector<Gradient> take() { return std::move(gradients_); }

 private:
  std::string file_;
  std::vector<Gradient> gradients_;
  std::unordered_map<std::string, int> lines_;  // line of each name
  std::int64_t total_ = 0;
};

/// Positions of the fields in a line.
struct Columns {
  std::size_t name = 0;
  std::size_t elements = 1;
  std::optional<std::size_t> ready;
  std::optional<std::size_t> shape;
  std::size_t count = 2;
  std::string text = "name,elements";  ///< for messages
};

std::size_t position(std::span<const std::string_view> fields, std::string_view name) {
  return static_cast<std::size_t>(std::find(fields.begin(), fields.end(), name) - fields.begin());
}

/// Columns of a header; nullopt if the line is a gradient, or malformed.
std::optional<Columns> parse_header(const std::string& file, int line_number,
                                    const std::string& line) {
  constexpr std::string_view kKnown[] = {kName, kElements, kReady, kShape};
  const std::vector<std::string_view> fields = io::split_fields(line);
  const auto known = [&](std::string_view field) {
    return std::find(std::begin(kKnown), std::end(kKnown), field) != std::end(kKnown);
  };
  const bool gradient_of_that_name =
      fields.size() == 2 && fields[1].find_first_not_of("0123456789") == std::string_view::npos;
  if (gradient_of_that_name || std::none_of(fields.begin(), fields.end(), known))
    return std::nullopt;

  for (std::size_t i = 0; i < fields.size(); ++i) {
    if (!known(fields[i])) {
      throw io::InputError(file, line_number,
                           fmt::format("unknown column {}{}", io::quote(fields[i]),
                                       io::suggestion(fields[i], kKnown)));
    }
    if (position(fields, fields[i]) != i) {
      throw io::InputError(file, line_number,
                           fmt::format("column {} is there twice", io::quote(fields[i])));
    }
  }
  const auto if_there = [&](std::string_view name) {
    const std::size_t column = position(fields, name);
    return column == fields.size() ? std::nullopt : std::optional(column);
  };
  Columns columns{position(fields, kName), position(fields, kElements),
                  if_there(kReady),        if_there(kShape),
                  fields.size(),           line};
  for (const auto& [column, name] :
       {std::pair(columns.name, kName), {columns.elements, kElements}}) {
    if (column == fields.size()) {
      throw io::InputError(
          file, line_number,
          fmt::format("missing column '{}'; the header is name,elements[,ready_us][,shape]", name));
    }
  }
  return columns;
}

/// Calls parser() for one field, and adds file, line and gradient to its error.
template <typename Parser>
auto parse_field(const std::string& file, int line, std::string_view gradient, Parser parser) {
  try {
    return parser();
  } catch (const io::InputError& error) {
    throw io::InputError(file, line,
                         fmt::format("gradient {}: {}", io::quote(gradient), error.what()));
  }
}

double parse_ready_us(std::string_view text) {
  const double seconds = io::parse_number(text, kReady) / 1e6;
  if (seconds >= 0 && seconds <= kLongestTime_s) return seconds;
  throw io::InputError(fmt::format("{} must be 0 to {:g} (microseconds), got {}", kReady,
                                   kLongestTime_s * 1e6, io::quote(text)));
}

/// Shape in a field; empty for an empty field.
std::vector<std::int64_t> parse_shape_of(std::string_view text, std::int64_t elements) {
  if (text.empty()) return {};
  std::vector<std::int64_t> shape = parse_shape(text);
  check_shape(shape, elements);
  return shape;
}

/// Reads `name,elements` lines, or a CSV whose first line names its columns.
std::vector<Gradient> read_lines(const std::string& file) {
  GradientList list(file);
  std::optional<Columns> columns;
  int line_number = 0;
  for (const std::string& line : io::read_lines(file)) {
    ++line_number;
    if (line.find_first_not_of(" \t") == std::string::npos) continue;
    if (!columns) {
      columns = parse_header(file, line_number, line);
      if (columns) continue;
      columns.emplace();
    }
    const std::vector<std::string_view> fields = io::split_fields(line);
    if (fields.size() != columns->count) {
      throw io::InputError(file, line_number,
                           fmt::format("a line must have {} fields, {}, got {}", columns->count,
                                       columns->text, io::quote(line)));
    }
    const std::string_view name = fields[columns->name];
    list.claim(name, line_number);
    Gradient gradient;
    gradient.name = name;
    gradient.elements = parse_field(file, line_number, name, [&] {
      return io::parse_integer(fields[columns->elements], kElements, 1, kMaxElements);
    });
    if (columns->ready) {
      gradient.ready_s = parse_field(file, line_number, name,
                                     [&] { return parse_ready_us(fields[*columns->ready]); });
    }
    if (columns->shape) {
      gradient.shape = parse_field(file, line_number, name, [&] {
        return parse_shape_of(fields[*columns->shape], gradient.elements);
      });
    }
    list.add(std::move(gradient), line_number);
  }
  return list.take();
}

Dtype parse_dtype(const io::YamlNode& node) {
  const std::string text = node.text();
  std::vector<std::string_view> names;
  for (const Dtype dtype : kGradientDtypes) {
    if (text == to_string(dtype)) return dtype;
    names.push_back(to_string(dtype));
  }
  node.fail(fmt::format("unknown dtype {}{}", io::quote(text), io::suggestion(text, names)));
}

std::vector<std::int64_t> parse_dimensions(const io::YamlNode& node) {
  if (!node.is_list() || node.items().empty()) {
    node.fail("must be a list of dimensions, such as [512, 2048]; without one, leave it out");
  }
  std::vector<std::int64_t> shape;
  for (const io::YamlNode& item : node.items()) shape.push_back(item.integer(1, kMaxElements));
  return shape;
}

/// Reads the number of elements and the shape; a shape alone determines the number.
void parse_size(const std::string& file, const io::YamlNode& node, Gradient& gradient) {
  const auto shape = node.find("shape");
  if (shape) gradient.shape = parse_dimensions(*shape);
  if (!shape || node.has("elements")) {
    gradient.elements = node.at("elements").integer(1, kMaxElements);
  }
  if (!shape) return;
  parse_field(file, shape->line(), gradient.name, [&] {
    if (gradient.elements == 0) gradient.elements = elements_of(gradient.shape);
    check_shape(gradient.shape, gradient.elements);
  });
}

Work parse_work(const io::YamlNode& node) {
  node.expect_keys({"flops", "attention", "values"});
  Work work;
  if (const auto flops = node.find("flops")) work.flops = flops->number(0, kMaxFlops);
  if (const auto attends = node.find("attention")) work.attention = attends->number(0, kMaxFlops);
  if (const auto values = node.find("values")) work.values = values->number(0, kMaxFlops);
  return work;
}

Gradient parse_gradient(const std::string& file, const io::YamlNode& item, Dtype dtype,
                        GradientList& list) {
  item.expect_keys({"name", "elements", "shape", "ready", "dtype", "flops", "bucket", "layer",
                    "core_time", "work"});
  Gradient gradient;
  gradient.name = item.at("name").text();
  list.claim(gradient.name, item.line());
  const io::YamlNode named = item.named("gradient " + io::quote(gradient.name));
  parse_size(file, named, gradient);
  if (const auto ready = named.find("ready")) gradient.ready_s = ready->duration(kLongestTime_s);
  if (const auto work = named.find("work")) gradient.work = parse_work(*work);
  if (const auto flops = named.find("flops")) gradient.flops = flops->number(0, kMaxFlops);
  if (const auto bucket = named.find("bucket")) {
    gradient.bucket = static_cast<int>(bucket->integer(0, INT32_MAX));
  }
  if (const auto layer = named.find("layer")) gradient.layer = layer->text();
  if (const auto core_time = named.find("core_time")) {
    gradient.cores = core_time->duration(kMaxThreads * kLongestTime_s);
  }
  const auto own_dtype = named.find("dtype");
  gradient.dtype = own_dtype ? parse_dtype(*own_dtype) : dtype;
  return gradient;
}

/// Average number of busy cores: the core-seconds under `key` divided by `time_s`; all threads if
/// the key is missing.
double read_cores(const io::YamlNode& root, std::string_view key, double time_s, int threads) {
  const auto core_time = root.find(key);
  if (!core_time) return threads;
  const double core_s = core_time->duration(kMaxThreads * kLongestTime_s);
  return time_s > 0 ? std::min<double>(threads, core_s / time_s) : 0;
}

/// Converts `cores` of the gradients from core-seconds to numbers of cores. Core-seconds of
/// gradients that are ready at the same time are added. If no gradient has core time, all threads
/// are always busy.
void spread_core_times(Model& model) {
  std::vector<Gradient*> order;
  for (Gradient& gradient : model.gradients) order.push_back(&gradient);
  std::ranges::stable_sort(order, {}, [](const Gradient* one) { return one->ready_s; });
  const bool said = std::ranges::any_of(order, [](const Gradient* one) { return one->cores > 0; });
  double reached_s = 0;
  for (std::size_t first = 0, last = 0; first < order.size(); first = last) {
    double core_s = 0;
    const double ready_s = order[first]->ready_s;
    for (; last < order.size() && order[last]->ready_s == ready_s; ++last) {
      core_s += order[last]->cores;
    }
    const double length_s = ready_s - reached_s;
    const double most = model.threads;
    const double cores = !said ? most : length_s > 0 ? std::min(most, core_s / length_s) : 0;
    for (; first < last; ++first) order[first]->cores = cores;
    reached_s = ready_s;
  }
}

/// Throws InputError for a core time in a model without threads.
void refuse_core_time(const io::YamlNode& node, std::string_view key) {
  if (const auto core_time = node.find(key)) {
    core_time->fail("needs threads; give their number per rank, as threads: 8");
  }
}

/// Reads the activation memory: one size, or one per layer.
void read_activations(const io::YamlNode& root, Model& model) {
  const auto activations = root.find("activations");
  if (!activations) return;
  if (!activations->is_map()) {
    model.activation_bytes = activations->size();
    return;
  }
  for (const auto& [layer, bytes] : activations->entries()) {
    if (bytes.size() > io::kMaxBytes - model.activation_bytes)
      bytes.fail("makes the sum too large");
    model.activation_bytes += bytes.size();
  }
}

/// Reads the host resources of computation: threads, core times and memory traffic.
void read_threads(const io::YamlNode& root, Model& model) {
  if (const auto traffic = root.find("memory_traffic")) model.memory_traffic = traffic->bandwidth();
  if (const auto threads = root.find("threads")) {
    model.threads = static_cast<int>(threads->integer(1, kMaxThreads));
    model.forward_cores = read_cores(root, "forward_core_time", model.forward_s, model.threads);
    model.optimizer_cores =
        read_cores(root, "optimizer_core_time", model.optimizer_s, model.threads);
    return spread_core_times(model);
  }
  refuse_core_time(root, "forward_core_time");
  refuse_core_time(root, "optimizer_core_time");
  for (const io::YamlNode& item : root.at("gradients").items()) {
    refuse_core_time(item, "core_time");
  }
}

/// Adds the overhead of DistributedDataParallel and its hook, which run on one thread. A gradient
/// is delayed by `backward` times the share of the bytes that are ready by then. `after` is spent
/// between backward and the optimizer.
void add_own_time(const io::YamlNode& hook, Model& model) {
  hook.expect_keys({"backward", "after"});
  const double before_s = hook.at("backward").duration(kLongestTime_s);
  const double after_s = hook.at("after").duration(kLongestTime_s);
  const double one = model.threads > 0 ? 1 : 0;
  const auto with = [&](double cores, double time_s, double more_s) {
    return time_s + more_s > 0 ? (cores * time_s + one * more_s) / (time_s + more_s) : cores;
  };
  model.optimizer_cores = with(model.optimizer_cores, model.optimizer_s, after_s);
  model.optimizer_s += after_s;
  const auto bytes = [](const Gradient& gradient) {
    return static_cast<double>(gradient.elements * size_of(gradient.dtype));
  };
  std::vector<Gradient*> order;
  double all = 0, handed = 0, reached_s = 0, delay_s = 0;
  for (Gradient& gradient : model.gradients) {
    order.push_back(&gradient);
    all += bytes(gradient);
  }
  std::ranges::stable_sort(order, {}, [](const Gradient* each) { return each->ready_s; });
  for (std::size_t first = 0, last = 0; first < order.size(); first = last) {
    const double ready_s = order[first]->ready_s;
    for (; last < order.size() && order[last]->ready_s == ready_s; ++last) {
      handed += bytes(*order[last]);
    }
    const double more_s = before_s * handed / all - delay_s;
    delay_s += more_s;
    for (; first < last; ++first) {
      order[first]->cores = with(order[first]->cores, ready_s - reached_s, more_s);
      order[first]->ready_s = ready_s + delay_s;
    }
    reached_s = ready_s;
  }
}

Mix parse_mix(const io::YamlNode& node) {
  const auto names = compute_class_names();
  Mix mix{};
  double sum = 0;
  for (const auto& [name, share] : node.entries()) {
    const auto found = std::ranges::find(names, name);
    if (found == names.end()) {
      share.fail(fmt::format("unknown class of computation {}{}", io::quote(name),
                             io::suggestion(name, names)));
    }
    const double part = share.number(0, 1, "the share of the computation's time");
    mix[static_cast<std::size_t>(found - names.begin())] = part;
    sum += part;
  }
  if (std::abs(sum - 1) > kMixTolerance) {
    node.fail(
        fmt::format("the shares add up to {:.7g}, not to 1: give every class of {} its share "
                    "of the computation's time, or leave the mix out",
                    sum, fmt::join(names, ", ")));
  }
  return mix;
}

/// Reads all times except those of gradients.
void read_times(const io::YamlNode& root, Model& model) {
  if (const auto forward = root.find("forward")) {
    model.forward_s = forward->duration(kLongestTime_s);
  }
  if (const auto optimizer = root.find("optimizer")) {
    model.optimizer_s = optimizer->duration(kLongestTime_s - model.forward_s);
  }
  if (const auto micro_steps = root.find("micro_steps")) {
    model.micro_steps = static_cast<int>(micro_steps->integer(1, INT32_MAX));
  }
}

/// Throws InputError if a step exceeds the maximum time.
void check_step(const io::YamlNode& root, const Model& model) {
  if (before_backward_s(model) <= kLongestTime_s && backward_s(model) <= kLongestTime_s) return;
  const bool several = model.micro_steps > 1;
  root.at(several ? "micro_steps" : "hook")
      .fail(fmt::format(
          "{}a step computes for {} before its last backward, and at most {:g}s are possible",
          several ? fmt::format("with {}, ", model.micro_steps) : "",
          io::format_duration(before_backward_s(model)), kLongestTime_s));
}

Model read_yaml(const std::string& file) {
  const io::YamlNode root = io::YamlNode::load(file);
  root.expect_schema(kModelSchema);
  root.expect_keys({"name", "source", "batch", "unit", "dtype", "forward", "optimizer", "threads",
                    "forward_core_time", "optimizer_core_time", "memory_traffic", "activations",
                    "hook", "micro_steps", "positions", "mix", "traced", "gradients", "schema"});
  GradientList list(file);
  Model model;
  model.name = root.at("name").text();
  if (const auto source = root.find("source")) model.source = source->prose();
  if (const auto batch = root.find("batch"))
    model.batch = static_cast<int>(batch->integer(0, INT32_MAX));
  if (const auto unit = root.find("unit")) model.unit = unit->text();
  if (const auto positions = root.find("positions")) {
    model.positions = static_cast<double>(positions->integer(1, kMaxPositions));
  }
  read_times(root, model);
  if (const auto mix = root.find("mix")) model.mix = parse_mix(*mix);
  if (const auto traced = root.find("traced")) parse_traced(*traced);  // read_traced() returns it
  const auto dtype_node = root.find("dtype");
  const Dtype dtype = dtype_node ? parse_dtype(*dtype_node) : Dtype::kFloat32;
  for (const io::YamlNode& item : root.at("gradients").items()) {
    list.add(parse_gradient(file, item, dtype, list), item.line());
  }
  model.gradients = list.take();
  wait_for_buckets(model);
  read_threads(root, model);
  read_activations(root, model);
  if (const auto hook = root.find("hook")) add_own_time(*hook, model);
  check_step(root, model);
  return model;
}

}  // namespace

std::vector<std::string> model_names() {
  const std::vector<std::string> shipped = shipped_models();
  std::vector<std::string> names = shipped;
  for (const std::string_view name : architecture_names()) {
    if (!std::ranges::binary_search(shipped, name)) names.emplace_back(name);
  }
  return names;
}

std::string near_models(std::string_view name) {
  constexpr std::size_t kMost = 3;
  const std::vector<std::string> known = model_names();
  std::vector<std::string_view> names(known.begin(), known.end()), near;
  while (near.size() < kMost) {
    const std::string_view next = io::nearest(name, names);
    if (next.empty()) break;
    near.push_back(next);
    std::erase(names, next);
  }
  if (near.empty()) return {};
  return fmt::format(", and no model has that name; near ones: {}", fmt::join(near, ", "));
}

std::string model_file(const std::string& path) {
  if (const auto file = io::named_file("models", path)) return *file;
  std::error_code error;
  if (fs::is_directory(path, error)) return path;  // the reader refuses it by its contents
  const std::vector<std::string> known = model_names();
  const std::vector<std::string_view> names(known.begin(), known.end());
  throw io::InputError(
      path, 0,
      "neither a file nor a shipped model" + io::suggestion(path, names) + other_form(path));
}

namespace {

/// Architecture of that name, in which hyphens may replace underscores. Files and shipped models
/// take precedence.
std::optional<Model> architecture_for(std::string name) {
  if (io::is_file(name)) return std::nullopt;
  std::ranges::replace(name, '-', '_');
  if (std::ranges::binary_search(shipped_models(), name)) return std::nullopt;
  return named_architecture(name);
}

}  // namespace

std::optional<Model> named_model(const std::string& name) {
  std::error_code error;
  if (fs::exists(name, error)) return std::nullopt;
  if (auto model = architecture_for(name)) return model;
  const std::optional<std::string> file = io::named_file("models", name);
  return file && *file != name ? std::optional(read_yaml(*file)) : std::nullopt;
}

Model read_model(const std::string& path) {
  if (auto model = architecture_for(path)) return *std::move(model);
  const std::string file = model_file(path);
  Model model;
  if (io::is_yaml_name(file)) {
    model = read_yaml(file);
  } else if (auto described = read_description(file)) {
    model = std::move(described->model);
  } else {
    model.gradients = read_lines(file);
    model.in_backward_order = false;
    model.name = io::printable(fs::path(file).stem().string());
    model.source = io::printable(file);
  }
  if (model.gradients.empty()) {
    throw io::InputError(file, 0,
                         "nothing to synchronise: there is no gradient in it; give at least one, "
                         "as a line name,elements or in the list 'gradients' of a model YAML");
  }
  return model;
}

std::vector<std::string> shipped_models() { return io::data_names("models", ".yaml"); }

}  // namespace hipress::models
