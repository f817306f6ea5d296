#pragma once

#include <cstdint>
#include <iosfwd>
#include <string>
#include <vector>

#include "costs/profile.hpp"

namespace hipress::profiler {

/// A row of nccl-tests' tables, in their terms: `size_bytes` is the nominal size of the collective,
/// algbw is size/time, and busbw is the rate on a link, comparable with the link's bandwidth.
struct NcclRow {
  std::string test;  ///< nccl-tests' program: "all_reduce", "sendrecv", "gather", …
  int ranks = 0;
  std::int64_t size_bytes = 0;
  double time_s = 0;
  double algbw = 0, busbw = 0;  ///< bytes per second
};

/// Ratio busbw/algbw as nccl-tests define it: 2(n−1)/n for all-reduce, 1 for sendrecv, (n−1)/n for
/// all others. Throws std::invalid_argument for an unknown test.
double bus_factor(const std::string& test, int ranks);

/// Rows for a profile's samples of links. Fan-in becomes gather, fan-out scatter, and both ways at
/// once sendrecv. The size of a gather or scatter of x bytes per rank is N·x.
std::vector<NcclRow> nccl_rows(const costs::Profile& profile);

/// Prints rows in the format of nccl-tests: bytes, fp32 elements, µs, and 1e9 bytes per second.
void print_nccl_table(std::ostream& out, const std::vector<NcclRow>& rows);

}  // namespace hipress::profiler
