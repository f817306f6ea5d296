#include "plans/broadcast.hpp"

#include <fmt/format.h>

#include <string_view>
#include <vector>

#include "casync/topology.hpp"
#include "io/error.hpp"
#include "io/suggestion.hpp"
#include "io/yaml.hpp"
#include "plans/plan_file.hpp"

namespace hipress::plans {
namespace {

constexpr models::Dtype kDtypes[] = {models::Dtype::kFloat32, models::Dtype::kFloat16,
                                     models::Dtype::kBfloat16};

bool is_broadcast(const std::string& topology) {
  // "best" stands for topologies that average.
  return topology != "best" &&
         casync::find_topology(topology).operation == casync::Operation::kBroadcast;
}

}  // namespace

models::Model as_parameters(models::Model model) {
  model.forward_s = model.optimizer_s = 0;
  model.micro_steps = 1;
  for (models::Gradient& gradient : model.gradients) {
    gradient.ready_s = 0;
    gradient.flops = 0;
  }
  return model;
}

models::Dtype parse_dtype(const std::string& name) {
  for (const models::Dtype dtype : kDtypes) {
    if (name == models::to_string(dtype)) return dtype;
  }
  std::vector<std::string_view> known;
  for (const models::Dtype dtype : kDtypes) known.push_back(models::to_string(dtype));
  throw io::InputError(fmt::format("unknown dtype {}{}known are {}", io::quote(name),
                                   io::before_known(name, known), fmt::join(known, ", ")));
}

models::Model one_tensor(std::int64_t bytes, models::Dtype dtype) {
  const std::int64_t size = models::size_of(dtype);
  if (bytes < size || bytes % size != 0) {
    throw io::InputError(fmt::format(
        "`bytes` must be at least {0} and a multiple of it, the size of a {1}, got {2}B: give "
        "{3}B, or another `dtype`",
        size, models::to_string(dtype), bytes, (bytes / size + 1) * size));
  }
  if (bytes / size > models::kMaxElements) {
    throw io::InputError(fmt::format("`bytes`: a tensor has at most {} elements, got {}",
                                     models::kMaxElements, bytes / size));
  }
  models::Model model{.name = "tensor", .source = "`bytes`", .unit = {}, .gradients = {}};
  model.gradients.push_back({.name = "tensor", .elements = bytes / size, .dtype = dtype});
  return model;
}

std::optional<models::Model> model_of_plan(const std::string& path_or_name) {
  if (!io::is_yaml_name(path_or_name)) return std::nullopt;
  const io::YamlNode root = io::YamlNode::load(path_or_name);
  const auto operation = root.find("operation");
  if (!operation || operation->text() != casync::to_string(casync::Operation::kBroadcast)) {
    return std::nullopt;
  }
  models::Model model{
      .name = root.at("model").text(), .source = path_or_name, .unit = {}, .gradients = {}};
  for (const io::YamlNode& item : root.at("gradients").items()) {
    models::Gradient gradient{.name = item.at("name").text(),
                              .elements = item.at("elements").integer(1, models::kMaxElements)};
    if (const auto dtype = item.find("dtype")) {
      try {
        gradient.dtype = parse_dtype(dtype->text());
      } catch (const io::InputError& error) {
        dtype->fail(error.what());
      }
    }
    model.gradients.push_back(std::move(gradient));
  }
  if (model.gradients.empty())
    root.at("gradients").fail("lists no tensor; plan the broadcast anew");
  return model;
}

models::Model read_input(const std::string& input, const std::string& plan,
                         const std::string& topology, const models::TimeOptions& times,
                         std::vector<std::string>& diagnostics) {
  std::optional<models::Model> described;
  if (input.empty()) {
    described = model_of_plan(plan);
    if (!described) {
      throw io::InputError(
          "`input` is required: a model, or with `plan` the YAML of a broadcast, which says what "
          "it "
          "sends");
    }
  }
  const bool broadcasts = described || is_broadcast(topology);
  if (broadcasts && times.says_computation()) {
    throw io::InputError(
        "`compute_time` and `forward`: a broadcast waits for no computation; leave them out");
  }
  if (described) return *std::move(described);
  models::Model model = models::read_model(input);
  if (broadcasts) return as_parameters(std::move(model));
  diagnostics = models::apply(times, model);
  wrap_as_planned(plan, model);
  return model;
}

}  // namespace hipress::plans
