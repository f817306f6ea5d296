#pragma once

#include <algorithm>
#include <cmath>
#include <optional>
#include <vector>

namespace hipress::planner {

/// Rows with a non-zero or unknown worth, the largest absolute value first, unknown ones last.
template <class Row>
std::vector<const Row*> by_worth(const std::vector<Row>& rows,
                                 std::optional<double> Row::*worth_s) {
  std::vector<const Row*> order;
  for (const Row& row : rows) {
    if (row.*worth_s != 0.0) order.push_back(&row);
  }
  const auto size = [&](const Row* row) {
    return row->*worth_s ? std::abs(*(row->*worth_s)) : -1.0;
  };
  std::stable_sort(order.begin(), order.end(),
                   [&](const Row* a, const Row* b) { return size(a) > size(b); });
  return order;
}

/// True if a row has a negative worth.
template <class Row>
bool has_negative(const std::vector<Row>& rows, std::optional<double> Row::*worth_s) {
  return std::any_of(rows.begin(), rows.end(),
                     [&](const Row& row) { return (row.*worth_s).value_or(0) < 0; });
}

}  // namespace hipress::planner
