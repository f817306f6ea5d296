#include "tools/options/shared.hpp"

#include <fmt/format.h>

#include <string>

#include "costs/cluster.hpp"
#include "io/quantity.hpp"
#include "tools/validators.hpp"

namespace hipress::tools {

void declare(CLI::App& app, costs::MachineOptions& options, std::string_view without_profile) {
  app.add_option("--profile", options.profile,
                 fmt::format("Costs: a profile.yaml or a shipped profile, such as h100-100g ({})",
                             without_profile))
      ->check(file_name());
  app.add_option(
         "--cluster", options.cluster,
         "Cluster YAML: hosts, speeds, slow links between pairs of hosts (docs/profiles.md); "
         "what it leaves out is the profile's")
      ->check(file_name());
  app.add_option("--bandwidth", options.bandwidth,
                 "Of the links between nodes: 25Gbps (default: the cluster's, else the profile's)");
  app.add_option("--latency", options.latency, "Of these links, on the wire: 20us");
  app.add_option("--overhead", options.overhead,
                 "Of these links, what a message costs both of its ports: 20us");
  app.add_option("--gpus-per-node", options.gpus_per_node,
                 "GPUs that sum up gradients in a node first (default: the cluster's, else 1)")
      ->check(count_from(1, costs::kMaxGpus));
  app.add_option("--gpu-bandwidth", options.gpu_bandwidth,
                 fmt::format("Of the links between a node's GPUs (default: the cluster's, else {})",
                             io::format_bandwidth(costs::kUsualGpuLink.bandwidth)));
  app.add_option("--scale-kernels", options.scale_kernels,
                 "Scale kernels to a memory bandwidth: 3.35TB/s (without a value: to the profile's "
                 "hardware.memory_bandwidth)")
      ->expected(0, 1)
      ->default_str(std::string(costs::kAsHardware));
  app.add_option("--assume-cost", options.assumed_costs,
                 "Charge a program that is not measured yet what another algorithm costs: "
                 "tern.pse=int4block; may be given several times")
      ->allow_extra_args(false);
}

void declare(CLI::App& app, models::TimeOptions& options) {
  app.add_option("--compute-time", options.compute_time,
                 "Of forward and backward together, 120ms: for a model without ready times, or to "
                 "scale those that it has. Of all micro-steps together, where a model has several");
  app.add_option(
      "--forward", options.forward,
      "Of the forward pass, and of the optimizer before it, together: 40ms (default: the "
      "model's, else a third of --compute-time). Of one pass alone, where a model has several "
      "micro-steps");
}

void declare(CLI::App& app, plans::PlanOptions& options) {
  app.add_option("--bulk-threshold", options.bulk_threshold,
                 "Synchronise gradients smaller than this together (64KiB; 0B: each alone)");
  app.add_option("--bulk-wait", options.bulk_wait,
                 "… but none that is ready later than so long after the first (1ms)");
  app.add_option("--bulk-limit", options.bulk_limit, "… and no group larger than this (4MiB)");
  app.add_option(
      "--batch-threshold", options.batch_threshold,
      "Encode, decode and add slices smaller than this in one launch (64KiB; 0B: alone)");
  app.add_option("--batch-wait", options.batch_wait,
                 "… but none whose gradient is ready later than so long after the first (1ms)");
  app.add_option("--batch-limit", options.batch_limit, "… and no launch larger than this (4MiB)");
  app.add_option("--density", options.density,
                 "Send sparse gradients at this density (above 0, at most 1) instead of the "
                 "plan's; above the plan's break-even, send them dense");
  app.add_flag("--raw-allreduce", options.raw_allreduce,
               "Gradients that are not compressed use the library's all-reduce");
  app.add_flag("--no-pipelining", options.no_pipelining,
               "Gradients one after the other, each in phases that do not overlap on a node");
  app.add_flag("--no-bulk", options.no_bulk,
               "Neither bulk groups nor batches, whatever the plan says");
  app.add_flag("--no-selection", options.no_selection,
               "Compress every gradient with the plan's algorithm, K = N");
}

void declare(CLI::App& app, plans::Trust& trust) {
  app.add_flag("--trust-plan", trust.everything,
               "Compile and run whatever programs (x.pse) the plan brings, not only those that "
               "--algorithm names");
}

}  // namespace hipress::tools
