#include "traces/sharded_model.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "models/shape.hpp"
#include "traces/model_parts.hpp"

namespace hipress::traces {
namespace {

/// Type of a layer's parameters in the model: the type in which their gradients are reduced.
models::Dtype dtype_of(const ShardedLayer& layer) {
  return dtype_named(layer.reduced_dtype.empty() ? models::to_string(models::Dtype::kFloat32)
                                                 : layer.reduced_dtype,
                     layer.name);
}

void add_layer(const ShardedLayer& layer, models::Model& model) {
  models::Gradient gradient{.name = layer.name,
                            .elements = layer.elements,
                            .ready_s = layer.ready_s.value_or(0),
                            .dtype = dtype_of(layer),
                            .layer = layer.name};
  check_time(gradient.ready_s, layer.name);
  if (layer.gradients.empty()) model.gradients.push_back(gradient);
  for (std::size_t g = 0; g < layer.gradients.size(); ++g) {
    if (layer.gradients.size() > 1) gradient.name = fmt::format("{}.gradient{}", layer.name, g);
    gradient.shape = layer.gradients[g];
    gradient.elements = models::elements_of(gradient.shape);
    model.gradients.push_back(gradient);
  }
}

std::int64_t ranks_of(const Sharding& sharding) {
  return sharding.ranks * std::max<std::int64_t>(1, sharding.replicas);
}

/// True if the layer's types are those of the mixed baselines: it is gathered in bfloat16 and
/// reduced in float32.
bool is_mixed(const ShardedLayer& layer) {
  return layer.gathered_dtype == models::to_string(models::Dtype::kBfloat16) &&
         layer.reduced_dtype == models::to_string(models::Dtype::kFloat32);
}

/// Reports properties of the job that the model does not have.
void say_assumed(const Sharding& sharding, std::vector<std::string>& diagnostics) {
  const ShardedLayer& layer = sharding.layers.front();
  if (layer.reduced_dtype.empty()) {
    diagnostics.emplace_back(
        "the trace does not tell the types of reductions, which are taken to be float32");
  } else if (!layer.gathered_dtype.empty() && layer.gathered_dtype != layer.reduced_dtype) {
    diagnostics.push_back(fmt::format(
        "parameters are gathered in {} and gradients reduced in {}: the model has the latter{}",
        layer.gathered_dtype, layer.reduced_dtype,
        is_mixed(layer) ? "; baselines fsdp2_mixed and hsdp_mixed of hipress-plan gather in bf16 "
                          "and reduce in fp32"
                        : ""));
  }
  if (sharding.passes > 1) {
    diagnostics.push_back(fmt::format(
        "a step is {} micro-steps; forward and ready times are those of one{}{}", sharding.passes,
        sharding.reduces_once ? ". Only the last reduces, and the schedule reduces in all" : "",
        layer.forward_gathers < sharding.passes
            ? fmt::format(". A layer is gathered in {} of them, and the schedule gathers in all",
                          layer.forward_gathers)
            : ""));
  }
  diagnostics.push_back(fmt::format(
      "the job trained with {} on {} ranks: give hipress-plan and hipress-sim `schedule`",
      sharding.schedule, ranks_of(sharding)));
}

StepAccount account_of(const TracedStep& step, const Sharding& sharding) {
  StepAccount account{.name = step.name,
                      .passes = sharding.passes,
                      .step_s = step.length_s,
                      .forward_s = sharding.forward_s,
                      .exposed_s = step.modelled_exposed_s,
                      .shown_s = shown_s(step)};
  std::int64_t bytes = 0;
  for (const KindTotal* kind :
       {&sharding.all_gather, &sharding.reduce_scatter, &sharding.all_reduce}) {
    bytes += std::min(INT64_MAX - bytes, kind->bytes);
  }
  account.sent_bytes = bytes;
  for (const ShardedLayer& layer : sharding.layers) {
    if (layer.ready_s) {
      account.backward_s = std::max(account.backward_s.value_or(0), *layer.ready_s);
    }
  }
  return account;
}

/// Bytes that a step sends for the model under the job's schedule, over all groups of shards. Each
/// pass gathers in forward and, unless layers stay whole, in backward. It then reduces, and
/// averages over replicas if there are any.
std::int64_t bytes_with_schedule(const models::Model& model, const Sharding& sharding) {
  const bool stays_whole = sharding.schedule.find("reshard=false") != std::string::npos;
  const int collectives = (stays_whole ? 2 : 3) + (sharding.replicas > 1 ? 1 : 0);
  const std::int64_t times = std::int64_t{collectives} * sharding.passes;
  return bytes_of(model) > INT64_MAX / times ? INT64_MAX : bytes_of(model) * times;
}

}  // namespace

std::vector<NamedSharding> shardings_of(const Imported& trace) {
  std::vector<NamedSharding> steps;
  for (const TracedStep& step : trace.steps) {
    steps.push_back({step.name, step.sharded ? sharding_of(*step.sharded) : std::nullopt});
  }
  const bool any = std::ranges::any_of(
      steps, [](const NamedSharding& step) { return step.sharding.has_value(); });
  return any ? steps : std::vector<NamedSharding>();
}

ImportedModel sharded_model(const Imported& trace, const std::vector<NamedSharding>& steps,
                            const std::string& name, std::vector<std::string>& diagnostics,
                            std::vector<std::string>& of_model) {
  const CommonSharding common = common_sharding(steps, diagnostics);
  const Sharding& sharding = common.sharding;
  of_model.insert(of_model.end(), sharding.assumed.begin(), sharding.assumed.end());
  ImportedModel imported{
      .model = {.name = name, .source = source_of(trace)}, .traced = {}, .sharding = sharding};
  models::Model& model = imported.model;
  for (const ShardedLayer& layer : sharding.layers) add_layer(layer, model);
  model.micro_steps = sharding.passes;
  const bool has_times =
      sharding.forward_s &&
      std::ranges::all_of(sharding.layers, [](auto& layer) { return layer.ready_s.has_value(); });
  if (has_times) {
    model.forward_s = *sharding.forward_s;
  } else {
    for (models::Gradient& gradient : model.gradients) gradient.ready_s = 0;
    of_model.emplace_back(
        "the model has no times: give hipress-plan and hipress-sim `compute_time`");
  }
  Steps used;
  JobAccount& job = imported.account;
  job = {.joined = "layers are sharded",
         .job_ranks = trace.world_size,
         .ranks = ranks_of(sharding),
         .schedule = sharding.schedule,
         .model_bytes = bytes_with_schedule(model, sharding)};
  for (const std::size_t i : common.steps) {
    used.push_back(&trace.steps[i]);
    job.steps.push_back(account_of(trace.steps[i], *steps[i].sharding));
  }
  if (has_times)
    model.optimizer_s = optimizer_s(model, used).value_or(sharding.optimizer_s.value_or(0));
  check_time(model.forward_s + model.optimizer_s, "forward with the optimizer");
  imported.traced = traced_of(used);
  if (imported.traced) check_time(imported.traced->step_s, "a step");
  say_assumed(sharding, of_model);
  check_accounts(job, of_model);
  say_others(job.steps.back(), sharding.other, imported.traced, of_model);
  add_mix(trace, model, of_model);
  return imported;
}

}  // namespace hipress::traces
