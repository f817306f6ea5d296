#include "requests/keys/forms.hpp"

namespace hipress::requests {
namespace {

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

constinit const ResultForm kBandwidthForm = {
    "plan", "Required bandwidths", "Of a plan request with `required_bandwidth`", kBandwidthKeys};

}  // namespace hipress::requests
