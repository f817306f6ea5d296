#include "requests/shared_fields.hpp"

#include <fmt/format.h>

#include <stdexcept>
#include <string>

#include "costs/cluster.hpp"
#include "io/error.hpp"
#include "io/quantity.hpp"
#include "requests/headings.hpp"

namespace hipress::requests {

void add(Fields& fields, costs::MachineOptions& options, std::string_view without_profile,
         const Case& idle) {
  fields.under(headings::kMachines);
  fields
      .add("machine", &options.machine,
           "Hosts of GPUs: a machine's file or a shipped machine, such as p5.48xlarge; it defines "
           "cluster and profile, and a library's collectives are modelled (docs/collectives.md)")
      .file();
  fields
      .add("hosts", &options.hosts,
           "Number of hosts of the `machine` (default: as many as `gpus` need)")
      .from(1, costs::kMaxNodes);
  fields
      .add("gpus", &options.gpus,
           "Number of GPUs of all hosts of the `machine` together, each a node (default: all GPUs "
           "of the hosts)")
      .from(1, costs::kMaxNodes);
  fields.add("library", &options.library,
             "Library of collectives on the `machine`: nccl, or gloo, by TCP, as PyTorch's jobs on "
             "CPUs have it (default: nccl)");
  fields
      .add("profile", &options.profile,
           fmt::format("Costs: a profile.yaml or a shipped profile, such as h100-100g ({})",
                       without_profile))
      .file()
      .idle(idle);
  fields
      .add("cluster", &options.cluster,
           "Cluster YAML: hosts, speeds, slow links between pairs of hosts (docs/profiles.md); the "
           "profile supplies missing values")
      .file();
  fields.add("bandwidth", &options.bandwidth,
             "Bandwidth of the links between nodes: 25Gbps (default: the cluster's, else the "
             "profile's)");
  fields.add("latency", &options.latency,
             "Latency of these links, on the wire: 20us (default: as for bandwidth)");
  fields.add("overhead", &options.overhead,
             "Time for which each message occupies the ports at both ends, besides its bytes: 20us "
             "(default: as for bandwidth)");
  fields
      .add("gpus_per_node", &options.gpus_per_node,
           "Number of GPUs per node, whose gradients the node sums up first (default: the "
           "cluster's, else 1)")
      .from(1, costs::kMaxGpus);
  fields.add(
      "gpu_bandwidth", &options.gpu_bandwidth,
      fmt::format("Bandwidth of the links between a node's GPUs (default: the cluster's, else {})",
                  io::format_bandwidth(costs::kUsualGpuLink.bandwidth)));
  fields
      .add("scale_kernels", &options.scale_kernels,
           "Scale kernels to a memory bandwidth: 3.35TB/s (without a value: to the profile's "
           "hardware.memory_bandwidth)")
      .alone_means(std::string(costs::kAsHardware));
  fields
      .add("assume_cost", &options.assumed_costs,
           "Charge an unmeasured program the cost of another algorithm: tern.pse=int4block; may be "
           "given several times")
      .repeated();
}

void add(Fields& fields, models::TimeOptions& options, const Case& refusal) {
  fields.under(headings::kJob);
  fields
      .add("compute_time", &options.compute_time,
           "Time of forward and backward together, 120ms, of all micro-steps of a step. For a "
           "model without ready times, or to scale those that it has (default: the model's)")
      .not_for(refusal);
  fields
      .add("forward", &options.forward,
           "Time of the forward pass and of the optimizer before it, together: 40ms; of a single "
           "pass if a model has several micro-steps (default: the model's, else a third of "
           "`compute_time`)")
      .not_for(refusal);
}

void add_job(Fields& fields, models::TimeOptions& options, const Case& refusal) {
  fields.under(headings::kJob);
  fields
      .add("batch", &options.batch,
           "Number of sequences, images or samples per GPU and micro-step: computation is derived "
           "from the model's work and the rates of the `machine` (docs/arithmetic.md)")
      .from(1, 1u << 30)
      .not_for(refusal);
  fields
      .add("seq", &options.seq,
           "Number of tokens per sequence (default: as the model is usually trained)")
      .from(1, 1u << 30)
      .not_for(refusal);
  fields.add("dtype", &options.dtype,
             "Type of the computation: fp32, tf32, mixed (in half precision, gradients in fp32), "
             "bf16 or fp16 (default: fp32)");
  fields
      .add("checkpoint", &options.checkpoint,
           "Activations that backward computes again: none, selective or full (default: none)")
      .not_for(refusal);
  fields.add("micro_steps", &options.micro_steps, "Number of micro-steps per step (default: 1)")
      .from(1, INT32_MAX)
      .not_for(refusal);
  fields
      .add("mfu", &options.mfu,
           "Share of the peak FLOP/s that forward and backward reach, 45% (default: derived)")
      .not_for(refusal);
  fields
      .add(
          "tokens_per_s", &options.tokens_per_s,
          "Number of tokens, images or samples that one GPU computes per second (default: derived)")
      .between(0.01, 1e12)
      .not_for(refusal);
  fields
      .add("per_gradient", &options.per_gradient,
           "Time that DDP itself takes for each gradient, besides the derived time: 22us (default: "
           "as derived; 0us: none)")
      .not_for(refusal);
}

void add(Fields& fields, plans::PlanOptions& options,
         const std::function<std::string(std::string_view)>& why_idle) {
  fields.under(headings::kPlan);
  const auto add = [&](std::string name, Variable to, std::string help) -> Field& {
    Field& field = fields.add(name, to, std::move(help));
    if (why_idle) field.idle([why_idle, name] { return why_idle(name); });
    return field;
  };
  add("bulk_threshold", &options.bulk_threshold,
      "Synchronise gradients smaller than this together, in bulk groups: 64KiB; a larger "
      "threshold groups more gradients (default: the plan's; 0B: each alone)");
  add("bulk_wait", &options.bulk_wait,
      "Wait of a bulk group after its first gradient, 1ms; gradients that are ready later stay out "
      "of it")
      .with("bulk_threshold");
  add("bulk_limit", &options.bulk_limit, "Size limit of a bulk group: 4MiB").with("bulk_threshold");
  add("batch_threshold", &options.batch_threshold,
      "Encode, decode and add slices smaller than this in one launch, as a batch: 64KiB; a "
      "larger threshold batches more slices (default: the plan's; 0B: each alone)");
  add("batch_wait", &options.batch_wait,
      "Wait of a batch after its first slice, 1ms; slices that are ready later stay out of it")
      .with("batch_threshold");
  add("batch_limit", &options.batch_limit, "Size limit of a batch: 4MiB").with("batch_threshold");
  add("density", &options.density,
      "Send sparse gradients at this density (above 0, at most 1) instead of the "
      "plan's; above the plan's break-even, send them dense");
  add("shards_by", &options.shards_by,
      "Carrier of a sharded schedule's shards: a library's collectives (library), or messages "
      "between nodes, around a ring (ring) or straight to their owners (direct) (default: the "
      "plan's, else library)");
  add("raw_allreduce", &options.raw_allreduce,
      "Use the library's all-reduce for gradients that are not compressed");
  add("no_pipelining", &options.no_pipelining,
      "Synchronise gradients one after the other, each in phases that do not overlap on a node");
  add("no_bulk", &options.no_bulk,
      "Make neither bulk groups nor batches, even if the plan has them");
  add("no_selection", &options.no_selection,
      "Compress every gradient with the plan's algorithm, K = N");
}

std::string describe_schedules() {
  std::string text;
  for (const casync::ScheduleRow* row : casync::schedules()) {
    std::string parameters;
    for (const casync::ScheduleParameter& parameter : row->parameters) {
      parameters += (parameters.empty() ? "(" : ", ") + std::string(parameter.name);
    }
    if (!parameters.empty()) parameters += ")";
    text += fmt::format("{}{}{}: {}", text.empty() ? "" : "; ", row->name, parameters, row->help);
  }
  return text;
}

std::string describe_wrap() {
  return "Modules that a schedule handles as one layer: patterns of module names separated by "
         "commas, such as transformer.h.*, or a number of elements, 100M, from which on a module "
         "is a layer. The rest of the model is one layer (default: as in the model file, else by "
         "names)";
}

casync::Schedule read_schedule(const std::string& text, const models::Model& model) {
  if (text == "BEST" || text == "best") {
    throw io::InputError(
        fmt::format("`schedule` BEST can only be chosen by hipress-plan; give one of {}",
                    casync::schedule_names()));
  }
  const std::vector<casync::Schedule> schedules = read_schedules(text, model);
  if (schedules.size() == 1) return schedules.front();
  throw io::InputError(fmt::format("`schedule`: {} stands for {} schedules; give one",
                                   io::quote(text), schedules.size()));
}

std::vector<casync::Schedule> read_schedules(const std::string& text, const models::Model& model) {
  std::vector<casync::Schedule> fitting;
  std::string refusal;
  try {
    for (casync::Schedule& schedule : casync::Schedule::parse_set(text)) {
      try {
        schedule.timetable(model);
      } catch (const std::invalid_argument& error) {
        refusal = error.what();
        continue;
      }
      fitting.push_back(std::move(schedule));
    }
  } catch (const std::invalid_argument& error) {
    refusal = error.what();
  }
  if (fitting.empty()) throw io::InputError(fmt::format("`schedule`: {}", refusal));
  return fitting;
}

void add(Fields& fields, plans::Trust& trust, const Case& idle) {
  fields.under(headings::kPlan);
  fields
      .add("trust_plan", &trust.everything,
           "Compile and run all programs (x.pse) that the plan brings, not only those that "
           "`algorithm` names")
      .idle(idle);
}

}  // namespace hipress::requests
