#include "requests/keys/forms.hpp"

namespace hipress::requests {
namespace {

constexpr ResultKey kKeys[] = {
    {"error", "object", "Why there is no result"},
    {"error.kind", "string",
     "input: the request is wrong; unmet: a requirement is not met; environment: memory, threads "
     "or disks; interrupted; internal: anything else"},
    {"error.message", "string", "What is wrong, and where"},
    {"error.file", "string?", "The file that is wrong; null: none, or not known"},
    {"error.line", "integer?", "The line there"},
    {"error.field", "string?", "The member of the request that is wrong"},
    {"error.remedy", "string?", "What to do"},
    {"result", "value", "Of kind unmet: what was found out all the same", Presence::kSometimes},
};

}  // namespace

constinit const ResultForm kErrorForm = {
    "error", "An error", "Of any request that C or Python made and that failed", kKeys};

}  // namespace hipress::requests
