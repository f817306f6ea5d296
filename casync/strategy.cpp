#include "casync/strategy.hpp"

#include <algorithm>
#include <array>
#include <cctype>
#include <stdexcept>

namespace hipress::casync {
namespace {

using Form = Strategy::Form;

constexpr std::array kStrategies{
    Strategy{"ps", "parameter servers co-located with the workers, one per partition", expand_ps},
    Strategy{"ring", "ring all-reduce: partial sums travel N-1 hops, then the mean does",
             expand_ring},
    Strategy{"allreduce", "a library's own all-reduce, uncompressed, as measured", expand_allreduce,
             Form::kRawAndWhole},
};

bool equal_in_any_case(std::string_view a, std::string_view b) {
  return std::equal(a.begin(), a.end(), b.begin(), b.end(), [](unsigned char x, unsigned char y) {
    return std::tolower(x) == std::tolower(y);
  });
}

}  // namespace

std::span<const Strategy> strategies() { return kStrategies; }

const Strategy& find_strategy(std::string_view name) {
  for (const Strategy& strategy : kStrategies) {
    if (equal_in_any_case(strategy.name, name)) return strategy;
  }
  std::string known;
  for (const Strategy& strategy : kStrategies) {
    known += (known.empty() ? "" : ", ") + std::string(strategy.name);
  }
  throw std::invalid_argument("unknown topology '" + std::string(name) + "'; known are " + known);
}

}  // namespace hipress::casync
