#pragma once

#include <cstdint>
#include <iosfwd>
#include <string>
#include <vector>

#include "costs/profile.hpp"

namespace hipress::profiler {

/// A line of nccl-tests' tables, in their terms: `size_bytes` is what the collective is said to be
/// of, algbw = size/time, and busbw what a link carries, which can be laid beside its bandwidth.
struct NcclRow {
  std::string test;  ///< nccl-tests' program: "all_reduce", "sendrecv", "gather", …
  int ranks = 0;
  std::int64_t size_bytes = 0;
  double time_s = 0;
  double algbw = 0, busbw = 0;  ///< bytes per second
};

/// busbw/algbw as nccl-tests define it: 2(n−1)/n of an all-reduce, 1 of sendrecv, (n−1)/n of all
/// else. std::invalid_argument for another test.
double bus_factor(const std::string& test, int ranks);

/// What a profile's samples of links say. A fan-in of N is their gather, x bytes from each rank
/// being N·x in all; a fan-out their scatter; both ways at once their sendrecv.
std::vector<NcclRow> nccl_rows(const costs::Profile& profile);

/// Prints them as nccl-tests do: bytes, fp32 elements, µs, and 1e9 bytes per second.
void print_nccl_table(std::ostream& out, const std::vector<NcclRow>& rows);

}  // namespace hipress::profiler
