#include "requests/keys/forms.hpp"

namespace hipress::requests {
namespace {

constexpr auto kSometimes = Presence::kSometimes;

constexpr ResultKey kTotalKeys[] = {
    {"count", "number", "How many"},
    {"bytes", "number",
     "What they carry: all ranks' shards together; of other collectives, what a rank has"},
    {"time_s", "number?", "The sum of their times"},
    {"exposed_s", "number?", "Of that, what nothing hides"},
};

constexpr ResultKey kKeys[] = {
    {"format", "string", "What kind of trace it is"},
    {"events", "integer", "Events or nodes in it"},
    {"steps[]", "object", "The steps that it has whole; times are in seconds"},
    {"steps[].name", "string", "As the trace calls it"},
    {"steps[].step_s", "number?", "The step's window"},
    {"steps[].forward_s", "number?", "Up to the start of backward"},
    {"steps[].compute_s", "number?", "The union of the kernels that compute"},
    {"steps[].communication_s", "number?", "The union of the kernels that communicate"},
    {"steps[].exposed_communication_s", "number?", "Of that, what no kernel that computes covers"},
    {"steps[].modelled_exposed_s", "number?", "Of that, what carries gradients or shards of them"},
    {"steps[].idle_s", "number?", "What no activity of the GPU covers"},
    {"steps[].collective_elements", "integer?", "Elements of the step's buckets"},
    {"gradients", "integer?", "Gradients of the model; null: there is none"},
    {"elements", "integer?", "Their elements together"},
    {"world_size", "integer?", "Ranks of the traced job"},
    {"hardware", "string?", "The GPU that the trace names"},
    {"collectives", "integer", "Collectives of a Chakra trace"},
    {"cpu_duplicates", "integer",
     "Collectives that were recorded on the CPU, too, and left out there"},
    {"not_told[]", "string", "What the trace does not tell, a sentence each"},
    {"diagnostics[]", "string", "What was assumed or left out, a sentence each"},
    {"mix", "object?",
     "Of a trace with kernels: shares of classes in the computation; null: too many not recognised",
     kSometimes},
    {"mix.*", "number", "A share from 0 to 1"},
    {"mix_unrecognised_share", "number", "The share of kernels that were not recognised",
     kSometimes},
    {"most_gain", "string", "How much of a step no plan can save more than, in a sentence",
     kSometimes},
    {"gradient_ranks", "integer?", "Ranks that average a gradient; null: not told", kSometimes},
    {"sent_bytes", "integer?", "What a step of the trace sends of gradients and parameters",
     kSometimes},
    {"model_bytes", "integer?", "What a step of the model sends of them, with `schedule`",
     kSometimes},
    {"sent_dtype", "string?", "Of a job without shards: the type that gradients travel in",
     kSometimes},
    {"schedule", "string", "Of a job with shards: the schedule that it trained with", kSometimes},
    {"shards", "integer", "Ranks that have all shards between them", kSometimes},
    {"replicas", "integer", "Groups of these", kSometimes},
    {"micro_steps", "integer", "Of a step", kSometimes},
    {"reduces_once", "boolean", "Whether the last micro-step alone reduces", kSometimes},
    {"layers[]", "object", "In the order of forward", kSometimes},
    {"layers[].name", "string", "As the trace calls it, else layer0 …"},
    {"layers[].elements", "integer", "Its elements"},
    {"layers[].gradients", "integer?", "Gradients in it; null: not told"},
    {"layers[].forward_gathers", "number", "Gathers in a step's forward"},
    {"layers[].backward_gathers", "number", "Gathers in a step's backward"},
    {"layers[].gathered_dtype", "string?", "The type that is gathered"},
    {"layers[].gathered_bytes", "number", "Bytes that are gathered in a step"},
    {"layers[].reduced_dtype", "string?", "The type that is reduced"},
    {"layers[].reduced_bytes", "number", "Bytes that are reduced in a step"},
    {"layers[].ready_s", "number?", "When its gradients are ready, from the start of backward"},
    {"all_gather", "object", "All-gathers of a step", kSometimes, kTotalKeys},
    {"reduce_scatter", "object", "Reduce-scatters of a step", kSometimes, kTotalKeys},
    {"all_reduce", "object", "All-reduces of a step, of gradients or of their shards", kSometimes,
     kTotalKeys},
    {"other_collectives", "object", "Other collectives of a step", kSometimes, kTotalKeys},
};

}  // namespace

constinit const ResultForm kImportForm = {"import_trace", "An imported trace",
                                          "Of an import_trace request", kKeys};

}  // namespace hipress::requests
