#include "requests/keys/forms.hpp"

namespace hipress::requests {
namespace {

constexpr auto kSometimes = Presence::kSometimes;

constexpr ResultKey kKeys[] = {
    {"ranks", "integer", "Ranks that took part"},
    {"steps_per_period", "integer", "Steps of an iteration, which is a period of the schedule"},
    {"utilization", "number", "Computation's share of the iteration"},
    {"iterations", "integer", "Iterations that were measured"},
    {"measured_iteration_s", "object",
     "Forward, as the model says, backward, and the part of synchronisation behind it; in seconds"},
    {"measured_iteration_s.median", "number", "The median"},
    {"measured_iteration_s.p10", "number", "One iteration in ten is shorter"},
    {"measured_iteration_s.p90", "number", "One iteration in ten is longer"},
    {"each_measured_iteration_s[]", "number", "In the order in which they were run"},
    {"process_cpu_s", "number",
     "CPU time of rank 0's process in an iteration, or of all ranks that are its threads; median"},
    {"predicted_iteration_s", "number?",
     "The prediction; null without a profile, as its errors are"},
    {"predicted_iteration_s_p10", "number?", "The interval of the median of so many iterations"},
    {"predicted_iteration_s_p90", "number?", "Its end"},
    {"relative_error", "number?", "Predicted less measured, over measured"},
    {"within_interval", "boolean?",
     "Whether the measured median lies in the interval; null where that is too uncertain"},
    {"too_uncertain", "boolean?",
     "Whether the interval is wider than a factor of 3, so that nearly anything lies in it"},
    {"drift", "object?", "Speeds of probes now over then; null: the profile has none"},
    {"drift.copy", "number?", "Copying memory; null: not run"},
    {"drift.codec", "number?", "A codec"},
    {"drift.transport", "number?", "The transport"},
    {"drifted", "boolean?",
     "Whether one of them is beyond the profile's spread, or the speed changed during the replay"},
    {"reprobed_iteration_s", "number?", "With `reprobe`: predicted with costs scaled by `drift`"},
    {"reprobed_iteration_s_p10", "number?", "The start of its interval"},
    {"reprobed_iteration_s_p90", "number?", "The end of its interval"},
    {"reprobed_relative_error", "number?", "Its error"},
    {"notes[]", "string", "What to know before comparing, a sentence each"},
    {"compute_s", "number", "Forward and backward"},
    {"measured_exposed_communication_s", "number", "The measured iteration less `compute_s`"},
    {"predicted_exposed_communication_s", "number?", "The predicted iteration less `compute_s`"},
    {"exposed_communication_relative_error", "number?",
     "The error of that; null: none was exposed"},
    {"verified", "boolean", "True: all values on all ranks; values that differ are an error"},
    {"bytes_sent_per_node[]", "integer", "In an iteration, by rank"},
    {"kinds[]", "object", "Tasks of the median iteration, by kind; empty without a prediction"},
    {"kinds[].kind", "string", "The kind"},
    {"kinds[].tasks", "integer", "How many"},
    {"kinds[].predicted_s", "number", "The sum of their predicted times"},
    {"kinds[].measured_s", "number", "The sum of their measured times"},
    {"predicted_for", "string", "With a profile: the machines that were predicted for", kSometimes},
};

}  // namespace

constinit const ResultForm kExecForm = {"exec", "A replay", "Of hipress-exec", kKeys};

}  // namespace hipress::requests
