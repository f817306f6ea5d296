#include "requests/keys/forms.hpp"

namespace hipress::requests {
namespace {

constexpr ResultKey kKeys[] = {
    {"provenance[]", "string", "What the rows depend on, a sentence each"},
    {"points", "integer", "Points that the spec lists, or the shard has"},
    {"known_points", "integer", "Of these, taken from the cache"},
    {"plans", "integer", "Plans that were searched"},
    {"graphs", "integer", "Graphs that were built"},
    {"simulations", "integer", "Simulations"},
    {"tasks", "number", "Tasks that were simulated"},
    {"columns[]", "string", "Columns of a row, as in the CSV"},
    {"axes[]", "string", "Those of them that are axes"},
    {"rows[][]", "value", "Values of a row in the order of the columns; null where there is none"},
};

}  // namespace

constinit const ResultForm kSweepForm = {"sweep", "A sweep", "Of a sweep request", kKeys};

}  // namespace hipress::requests
