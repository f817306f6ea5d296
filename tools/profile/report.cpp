#include "tools/profile/report.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstdio>
#include <iostream>
#include <utility>
#include <vector>

#include "costs/traffic.hpp"
#include "io/quantity.hpp"
#include "io/spelling.hpp"
#include "profiler/nccl_table.hpp"

namespace hipress::profiler {
namespace {

/// Gradient bytes per second at 2^22 elements, the slice size at which most of the time goes.
constexpr std::int64_t kElements = 1 << 22;
double rate_of(double seconds) { return 4.0 * kElements / seconds; }
double rate(const costs::Curve& curve) { return rate_of(curve(kElements)); }

/// What stages are told of: a square matrix of kElements, and that rank.
constexpr std::int64_t kRows = 1 << 11;
constexpr int kRank = 4;
constexpr std::int64_t kFactor = kRows * kRank;

/// All encodes of a step, where there are stages of factors of kFactor values.
double encode_rate(const costs::CodecCosts& costs) {
  double seconds = costs.encode(kElements);
  for (const auto& stage : costs.stages)
    seconds += costs::stage_seconds(stage, kElements, kFactor, kRank);
  return rate_of(seconds);
}

double decode_rate(const costs::CodecCosts& costs) {
  const auto factors = static_cast<std::int64_t>(costs.stages.size()) * kFactor;
  return rate_of(costs.decode(kElements) +
                 costs::stage_seconds(costs.decode_stages, kElements, factors, kRank));
}

io::Document codec_json(const std::string& name, const costs::CodecCosts& costs,
                        const costs::Profile& profile) {
  io::Document json = {{"encode_Bps", encode_rate(costs)}, {"decode_Bps", decode_rate(costs)}};
  if (!costs.stages.empty()) {
    json["stages"] = costs.stages.size();
    json["rank"] = kRank;
    return json;
  }
  json["decode_add_Bps"] = rate(costs.decode_add);
  json["encode_factor_quotients"] = costs.encode_factor_quotients;
  json["message_share"] = costs.message_share;
  // A CPU measures no slices that are too large for its caches.
  if (profile.device != "cuda") return json;
  const auto traffic = costs::least_traffic(name);
  if (!traffic) return json;
  const auto share = [&](const costs::Curve& work, double bytes_per_element) {
    return costs::share_of_bandwidth(work, bytes_per_element, profile.memory_bandwidth);
  };
  json["encode_of_ceiling"] = share(costs.encode, traffic->encode);
  json["decode_of_ceiling"] = share(costs.decode, traffic->decode);
  return json;
}

/// A decode-and-add, or where there is none of what matrix the stages' rates are.
std::string describe_other(const costs::CodecCosts& costs) {
  const std::size_t stages = costs.stages.size();
  if (stages == 0) return fmt::format("{:12.2f}", rate(costs.decode_add) / 1e9);
  return fmt::format("{:>12}   {} x {}, rank {}, {} of encode", "", kRows, kRows, kRank,
                     stages == 1 ? "one stage" : fmt::format("{} stages", stages));
}

io::Document overlap_json(const costs::OverlapFactors& overlap) {
  const costs::OverlapFactors constants = costs::constants_of(overlap);
  io::Document json;
  for (const costs::OverlapConstant& constant : costs::kOverlapConstants) {
    json[std::string(constant.name)] = constants.*constant.factor;
  }
  if (!overlap.matrix) return json;
  json["codec_beside_transfer"] = overlap.matrix->codec_beside_transfer;
  json["transfer_beside_codec"] = overlap.matrix->transfer_beside_codec;
  io::Document classes;
  for (std::size_t i = 0; i < models::kComputeClasses; ++i) {
    io::Document row;
    for (const costs::ClassOverlapKey& key : costs::kClassOverlapKeys) {
      row[std::string(key.name)] = overlap.matrix->classes[i].*key.factor;
    }
    classes[std::string(models::kComputeClassTable[i].name)] = row;
  }
  json["classes"] = classes;
  return json;
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

/// All members in the order of their names.
io::Document sorted(const io::Document& document) {
  if (const io::Document::List* items = document.items()) {
    io::Document::List all;
    for (const io::Document& item : *items) all.push_back(sorted(item));
    return io::Document::list(std::move(all));
  }
  if (document.members() == nullptr) return document;
  io::Document::Object members = *document.members();
  std::ranges::sort(members, {}, &io::Document::Member::name);
  io::Document object = io::Document::object();
  for (const io::Document::Member& member : members) object[member.name] = sorted(member.value);
  return object;
}

void print_spread(const costs::Profile& profile) {
  const costs::Spread& spread = *profile.spread;
  fmt::print(
      "\ntwo runs in three are within {:.0f} % of these host costs and {:.0f} % of these links, "
      "two iterations in three within {:.0f} % of their run\n",
      100 * std::expm1(spread.host), 100 * std::expm1(spread.links),
      100 * std::expm1(spread.iterations));
  for (const std::string& note : profile.notes) fmt::print("note: {}\n", io::as_command_line(note));
}

}  // namespace

io::Document to_json(const costs::Profile& profile, const std::string& path) {
  io::Document codecs = io::Document::object();
  for (const auto& [name, costs] : profile.codecs) codecs[name] = codec_json(name, costs, profile);
  io::Document links = io::Document::list();
  for (const NcclRow& row : nccl_rows(profile)) {
    links.push_back({{"test", row.test},
                     {"ranks", row.ranks},
                     {"size_bytes", row.size_bytes},
                     {"time_s", row.time_s},
                     {"algbw_Bps", row.algbw},
                     {"busbw_Bps", row.busbw}});
  }
  return sorted({{"profile", path},
                 {"hardware", profile.hardware},
                 {"device", profile.device},
                 {"memory_bandwidth_Bps", profile.memory_bandwidth},
                 {"codecs", codecs},
                 {"overlap", overlap_json(profile.overlap)},
                 {"nccl_tests", links},
                 {"spread",
                  {{"host", profile.spread->host},
                   {"links", profile.spread->links},
                   {"compute", profile.spread->compute},
                   {"model", profile.spread->model},
                   {"iterations", profile.spread->iterations}}},
                 {"probes",
                  {{"copy_Bps", profile.probes.copy},
                   {"codec_Bps", profile.probes.codec},
                   {"transport_Bps", profile.probes.transport}}},
                 {"notes", profile.notes},
                 {"link",
                  {{"bandwidth_Bps", profile.link.bandwidth},
                   {"overhead_s", profile.link.overhead_s},
                   {"latency_s", profile.link.latency_s},
                   {"core_s_per_byte", profile.link.core_s_per_byte},
                   {"core_factor_interrupting", profile.link.core_factor_interrupting},
                   {"core_s_per_message", profile.link.core_s_per_message}}}});
}

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
  print_spread(profile);
  fmt::print("written to {}\n", path);
}

}  // namespace hipress::profiler
