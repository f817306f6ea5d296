#include "requests/keys/forms.hpp"

namespace hipress::requests {
namespace {

constexpr auto kSometimes = Presence::kSometimes;

constexpr ResultKey kPlanKeys[] = {
    {"schedule", "string", "When gradients are synchronised"},
    {"steps_per_period", "integer", "Steps after which that repeats"},
    {"topology", "string", "How what is compressed travels"},
    {"shards_by", "string?", "What carries shards; null of schedules without"},
    {"algorithms[]", "string", "What it compresses with"},
    {"compressed", "integer", "Gradients that are not sent raw"},
    {"predicted_iteration_s", "number", "A step, in seconds"},
    {"predicted_iteration_s_p10", "number", "One step in ten is shorter"},
    {"predicted_iteration_s_p90", "number", "One step in ten is longer"},
    {"utilization", "number", "Computation's share of the time"},
    {"utilization_p10", "number", "The start of its 10–90 % interval"},
    {"utilization_p90", "number", "The end of its 10–90 % interval"},
    {"bytes_per_step", "number", "What the node that sends most sends in a step"},
    {"bytes_per_day", "number", "The same in a day of training"},
    {"peak_bits_per_s", "number",
     "Its rate in the busiest stretch as long as a step's computation"},
    {"lower_bound_s", "number?", "No plan of the schedule takes less; null where none is known"},
    {"gap", "number?", "How far above it the plan is, as a share of the bound"},
    {"peak_memory_bytes", "integer", "Of a GPU"},
    {"peak_memory", "object", "What that consists of, in bytes"},
    {"peak_memory.parameters", "integer", "Parameters"},
    {"peak_memory.gradients", "integer", "Gradients"},
    {"peak_memory.optimizer", "integer", "States of the optimizer"},
    {"peak_memory.gathered", "integer", "Layers that are gathered at a time"},
    {"peak_memory.reductions", "integer", "Inputs of reductions"},
    {"gives_up", "string", "What training gives up by it, in a sentence"},
};

constexpr ResultKey kKeys[] = {
    {"model", "string", "The model's name"},
    {"nodes", "integer", "Nodes that synchronise"},
    {"", "object", "The plan that was chosen", Presence::kAlways, kPlanKeys},
    {"schedules[]", "object", "The plan of each schedule that was asked for", Presence::kAlways,
     kPlanKeys},
    {"schedules[].not_chosen", "string?", "Why it was not chosen; null of the chosen one",
     kSometimes},
    {"chosen", "string", "The schedule of the plan whose keys stand beside"},
    {"advice", "string",
     "compress, do not compress, too close to call, or too uncertain; where shards are asked for",
     kSometimes},
    {"advice_probability", "number?", "The probability of what is advised", kSometimes},
    {"verdict", "string", "The advice in a sentence", kSometimes},
    {"baselines", "object", "A step of each baseline", kSometimes},
    {"baselines.*", "number?", "In seconds; null: it cannot be used"},
    {"baselines_p10", "object", "The starts of their 10–90 % intervals", kSometimes},
    {"baselines_p10.*", "number?", "In seconds"},
    {"baselines_p90", "object", "The ends of their 10–90 % intervals", kSometimes},
    {"baselines_p90.*", "number?", "In seconds"},
    {"faster_than", "object", "The probability that the plan is faster than each baseline",
     kSometimes},
    {"faster_than.*", "number?", "From 0 to 1"},
    {"baseline_plans[]", "object", "The plans of these baselines", kSometimes, kPlanKeys},
    {"baseline_plans[].name", "string", "The baseline"},
    {"wrap", "string?", "With several rules of `wrap`: the one that was chosen", kSometimes},
    {"wraps[]", "object", "With several rules of `wrap`: what each leads to", Presence::kInPart,
     kPlanKeys},
    {"wraps[].wrap", "string", "The rule"},
    {"wraps[].not_chosen", "string?", "Why it was not chosen; null of the chosen one"},
    {"left_out[]", "object", "With `schedule` BEST: what was not planned", kSometimes},
    {"left_out[].schedule", "string", "The schedule"},
    {"left_out[].reason", "string", "Why"},
    {"", "object", "", Presence::kAlways, kMixKeys},
};

constexpr ResultKey kBandwidthKeys[] = {
    {"required_bandwidth[]", "object", "In the order asked, schedule by schedule"},
    {"required_bandwidth[].schedule", "string", "When gradients are synchronised"},
    {"required_bandwidth[].algorithm", "string", "What all gradients are compressed with"},
    {"required_bandwidth[].topology", "string", "How they travel"},
    {"required_bandwidth[].utilization", "number", "Computation's share of the time, as asked"},
    {"required_bandwidth[].bits_per_s", "number?", "The bandwidth for it; null: none will do"},
    {"required_bandwidth[].bits_per_s_p10", "number?", "The start of its 10–90 % interval"},
    {"required_bandwidth[].bits_per_s_p90", "number?", "The end of its 10–90 % interval"},
    {"required_bandwidth[].reason", "string?", "Why no bandwidth will do; null: one does"},
    {"", "object", "", Presence::kAlways, kMixKeys},
};

}  // namespace

constinit const ResultForm kSchedulesForm = {
    "plan", "Plans of schedules", "Of a plan request with `schedule`, `wrap` or `gpu_memory`",
    kKeys};
constinit const ResultForm kBandwidthForm = {
    "plan", "Required bandwidths", "Of a plan request with `required_bandwidth`", kBandwidthKeys};

}  // namespace hipress::requests
