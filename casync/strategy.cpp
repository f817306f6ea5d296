#include "casync/strategy.hpp"

#include <algorithm>
#include <array>
#include <cctype>
#include <stdexcept>

namespace hipress::casync {
namespace {

using Form = Strategy::Form;

/// Of ps and ring: 2(N-1) messages are sent and received and N-1 slices added; compressed, N slices
/// are encoded and the mean is decoded on N nodes.
double tasks_of_messages(double nodes, bool compressed) {
  return 5 * (nodes - 1) + (compressed ? 2 * nodes : 0);
}

/// The all-reduces and the Join before them.
double tasks_of_allreduce(double nodes, bool) { return nodes > 1 ? nodes + 1 : 0; }

constexpr std::array kStrategies{
    Strategy{"ps", "parameter servers co-located with the workers, one per partition", expand_ps,
             tasks_of_messages},
    Strategy{"ring", "ring all-reduce: partial sums travel N-1 hops, then the mean does",
             expand_ring, tasks_of_messages},
    Strategy{"allreduce", "a library's own all-reduce, as measured: raw, or in half precision",
             expand_allreduce, tasks_of_allreduce, Form::kWhole},
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
