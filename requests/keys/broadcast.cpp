#include "requests/keys/forms.hpp"

namespace hipress::requests {
namespace {

constexpr ResultKey kChoiceKeys[] = {
    {"topology", "string", "How they travel"},
    {"algorithm", "string", "What they are encoded with"},
    {"chunks", "integer", "Chunks that a tensor is cut into"},
    {"chunk_elements", "integer", "Elements of a chunk"},
    {"predicted_s", "number", "The simulated time, in seconds"},
    {"counts", "integer", "Numbers of chunks that were possible"},
    {"simulations", "integer", "Numbers of chunks that were simulated"},
    {"proven", "boolean", "Whether no number of chunks is faster"},
};

constexpr ResultKey kKeys[] = {
    {"operation", "string", "broadcast"},
    {"root", "integer", "The node that has the values"},
    {"nodes", "integer", "Nodes that are to have them"},
    {"tensors", "integer", "Tensors that are sent"},
    {"elements", "integer", "Their elements together"},
    {"", "object", "The fastest", Presence::kAlways, kChoiceKeys},
    {"predicted_s_p10", "number?", "One broadcast in ten is faster"},
    {"predicted_s_p90", "number?", "One broadcast in ten is slower"},
    {"choices[]", "object", "The best of each topology and algorithm, the fastest first",
     Presence::kAlways, kChoiceKeys},
    {"output", "string?", "The plan file that was written"},
};

}  // namespace

constinit const ResultForm kBroadcastForm = {"plan", "A broadcast's plan",
                                             "Of a plan request with `job` broadcast", kKeys};

}  // namespace hipress::requests
