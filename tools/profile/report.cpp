#include "tools/profile/report.hpp"

#include <fmt/format.h>

#include <cmath>
#include <cstdio>
#include <iostream>
#include <vector>

#include "io/quantity.hpp"
#include "io/spelling.hpp"
#include "profiler/nccl_table.hpp"
#include "profiler/rates.hpp"

namespace hipress::profiler {
namespace {

/// End of a codec's row: its decode-and-add rate or, for a staged codec, its matrix and stages.
std::string describe_other(const costs::CodecCosts& costs) {
  const std::size_t stages = costs.stages.size();
  if (stages == 0) return fmt::format("{:12.2f}", rate(costs.decode_add) / 1e9);
  return fmt::format("{:>12}   {} x {}, rank {}, {} of encode", "", kRateRows, kRateRows, kRateRank,
                     stages == 1 ? "one stage" : fmt::format("{} stages", stages));
}

void print_matrix(const costs::OverlapMatrix& matrix) {
  fmt::print("{:13}", "times as long");
  for (const costs::ClassOverlapKey& key : costs::kClassOverlapKeys) fmt::print("{:>17}", key.name);
  fmt::print("\n");
  for (std::size_t i = 0; i < models::kComputeClasses; ++i) {
    fmt::print("{:13}", models::kComputeClassTable[i].name);
    for (const costs::ClassOverlapKey& key : costs::kClassOverlapKeys) {
      fmt::print("{:17.2f}", matrix.classes[i].*key.factor);
    }
    fmt::print("\n");
  }
  fmt::print("\n");
}

void print_spread(const costs::Spread& spread) {
  fmt::print(
      "\ntwo runs in three are within {:.0f} % of these host costs and {:.0f} % of these links, "
      "two iterations in three within {:.0f} % of their run\n",
      100 * std::expm1(spread.host), 100 * std::expm1(spread.links),
      100 * std::expm1(spread.iterations));
}

}  // namespace

void print(const costs::Profile& profile, const std::string& path) {
  fmt::print("{}\n\n{:12} {:>12} {:>12} {:>12}   GB/s of gradient, slices of 2^22 elements\n",
             profile.hardware, "codec", "encode", "decode", "decode+add");
  for (const auto& [name, costs] : profile.codecs) {
    fmt::print("{:12} {:12.2f} {:12.2f} {}\n", name, encode_rate(costs) / 1e9,
               decode_rate(costs) / 1e9, describe_other(costs));
  }
  using io::format_bit_rate, io::format_duration;
  fmt::print("{:12} {:>12} {:>12} {:12.2f}\n\n", "raw merge", "", "", rate(profile.merge) / 1e9);
  if (profile.device == "cuda") {
    const costs::OverlapFactors slower = costs::constants_of(profile.overlap);
    fmt::print(
        "memory moves {:.1f} GB/s in a copy, reads and writes counted; slower together: "
        "compute and codec {:.2f} times, compute and transfer {:.2f}, codec and transfer "
        "{:.2f}\n\n",
        profile.memory_bandwidth / 1e9, slower.compute_codec, slower.compute_transfer,
        slower.codec_transfer);
    if (profile.overlap.matrix) print_matrix(*profile.overlap.matrix);
  }
  fmt::print("one flow {}, per message {} and {} of latency\n",
             format_bit_rate(profile.link.bandwidth), format_duration(profile.link.overhead_s),
             format_duration(profile.link.latency_s));
  fmt::print("a byte costs {:.3f} ns of a core, a message {}; {} cores\n",
             profile.link.core_s_per_byte * 1e9, format_duration(profile.link.core_s_per_message),
             profile.cores);
  if (profile.link.core_factor_interrupting > 1) {
    fmt::print("and {:.2f} times as much where it interrupts long codec tasks\n",
               profile.link.core_factor_interrupting);
  }
  const std::vector<NcclRow> rows = nccl_rows(profile);
  fmt::print("\nlinks, in the terms of nccl-tests:\n");
  std::fflush(stdout);
  print_nccl_table(std::cout, rows);
  std::cout.flush();
  if (profile.spread) print_spread(*profile.spread);
  for (const std::string& note : profile.notes) fmt::print("note: {}\n", io::as_command_line(note));
  fmt::print("written to {}\n", path);
}

}  // namespace hipress::profiler
