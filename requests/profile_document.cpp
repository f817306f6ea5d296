#include <map>
#include <string>

#include "costs/traffic.hpp"
#include "profiler/nccl_table.hpp"
#include "profiler/rates.hpp"
#include "requests/profile.hpp"
#include "requests/result_forms.hpp"

namespace hipress::requests {
namespace {

/// Rates (profiler/rates.hpp) and factors of a codec. Empty values do not apply to the algorithm.
struct CodecRates {
  double encode = 0, decode = 0;
  std::optional<double> decode_add = {}, encode_factor_quotients = {}, message_share = {};
  std::optional<double> encode_of_ceiling = {}, decode_of_ceiling = {};
  std::optional<std::size_t> stages = {};
};

CodecRates rates_of(const std::string& name, const costs::CodecCosts& costs,
                    const costs::Profile& profile) {
  CodecRates rates = {.encode = profiler::encode_rate(costs),
                      .decode = profiler::decode_rate(costs)};
  if (!costs.stages.empty()) {
    rates.stages = costs.stages.size();
    return rates;
  }
  rates.decode_add = profiler::rate(costs.decode_add);
  rates.encode_factor_quotients = costs.encode_factor_quotients;
  rates.message_share = costs.message_share;
  // Shares of the memory ceiling are for GPUs only: on CPUs, the measured slices fit into caches.
  if (profile.device != "cuda") return rates;
  const auto traffic = costs::least_traffic(name);
  if (!traffic) return rates;
  const auto share = [&](const costs::Curve& work, double bytes_per_element) {
    return costs::share_of_bandwidth(work, bytes_per_element, profile.memory_bandwidth);
  };
  rates.encode_of_ceiling = share(costs.encode, traffic->encode);
  rates.decode_of_ceiling = share(costs.decode, traffic->decode);
  return rates;
}

void fill_codec(Record& record, const CodecRates& rates) {
  record.add("encode_Bps", rates.encode, "Encoding; for several stages, all together");
  record.add("decode_Bps", rates.decode, "Decoding");
  record.add_if_any("decode_add_Bps", rates.decode_add,
                    "Decoding and adding; not for staged algorithms");
  record.add_if_any(
      "stages", rates.stages,
      "Rates of each stage, measured on a 2048 × 2048 matrix; only for staged algorithms");
  record.add_if_any("rank", rates.stages ? std::optional(profiler::kRateRank) : std::nullopt,
                    "Rank of the algorithm during measurement");
  record.add_if_any("encode_factor_quotients", rates.encode_factor_quotients,
                    "Factor on the encode time if the encoder also divides its input");
  record.add_if_any("message_share", rates.message_share,
                    "Bytes of a message over bytes of its values");
  record.add_if_any(
      "encode_of_ceiling", rates.encode_of_ceiling,
      "Share of the memory bandwidth that the least traffic of an encode takes; with cuda");
  record.add_if_any(
      "decode_of_ceiling", rates.decode_of_ceiling,
      "Share of the memory bandwidth that the least traffic of a decode takes; with cuda");
}

void fill_class(Record& record, const costs::ClassOverlap& factors) {
  record.add("beside_codec", factors.beside_codec, "Slowdown of the class beside compression");
  record.add("beside_transfer", factors.beside_transfer, "Slowdown of the class beside transfers");
  record.add("slows_codec", factors.slows_codec, "Slowdown of compression beside the class");
  record.add("slows_transfer", factors.slows_transfer, "Slowdown of transfers beside the class");
}

std::map<std::string, costs::ClassOverlap> classes_of(const costs::OverlapMatrix& matrix) {
  std::map<std::string, costs::ClassOverlap> classes;
  for (std::size_t i = 0; i < models::kComputeClasses; ++i) {
    classes[std::string(models::kComputeClassTable[i].name)] = matrix.classes[i];
  }
  return classes;
}

void fill_overlap(Record& record, const costs::OverlapFactors& overlap) {
  const costs::OverlapFactors constants = costs::constants_of(overlap);
  record.add("compute_codec", constants.compute_codec,
             "Computation beside compression, for the assumed mix");
  record.add("compute_transfer", constants.compute_transfer, "Computation and transfers");
  record.add("codec_transfer", constants.codec_transfer, "Compression and transfers");
  const auto& matrix = overlap.matrix;
  record.section(matrix.has_value(), [&] {
    record.add(
        "codec_beside_transfer", [&] { return matrix->codec_beside_transfer; },
        "Compression beside transfers; with cuda");
    record.add(
        "transfer_beside_codec", [&] { return matrix->transfer_beside_codec; },
        "Transfers beside compression; with cuda");
    record.by_name(
        "classes", [&] { return classes_of(*matrix); },
        "Slowdowns by class of computation; with cuda", "A class", fill_class);
  });
}

void fill_link(Record& record, const profiler::NcclRow& row) {
  record.add("test", row.test, "The collective");
  record.add("ranks", row.ranks, "Number of ranks");
  record.add("size_bytes", row.size_bytes, "Size of the buffer in bytes");
  record.add("time_s", row.time_s, "Time of the collective");
  record.add("algbw_Bps", row.algbw, "Bytes over time");
  record.add("busbw_Bps", row.busbw, "Bus bandwidth, as nccl-tests define it");
}

void fill_spread(Record& record, const costs::Spread& spread) {
  record.add("host", spread.host, "Compression and copies, from run to run");
  record.add("links", spread.links, "Links");
  record.add("compute", spread.compute, "Computation");
  record.add("model", spread.model, "Error of the prediction itself");
  record.add("iterations", spread.iterations, "Iterations of a run");
}

void fill_probes(Record& record, const costs::Probes& probes) {
  record.add("copy_Bps", probes.copy, "Copying memory");
  record.add("codec_Bps", probes.codec, "A codec");
  record.add("transport_Bps", probes.transport, "The transport");
}

void fill_costs(Record& record, const costs::LinkCosts& link) {
  record.add("bandwidth_Bps", link.bandwidth, "Bytes per second");
  record.add("overhead_s", link.overhead_s,
             "Time that each message occupies the link, besides its bytes");
  record.add("latency_s", link.latency_s, "Time from the end of a transmission to its arrival");
  record.add("core_s_per_byte", link.core_s_per_byte, "Core time per byte");
  record.add("core_factor_interrupting", link.core_factor_interrupting,
             "Factor on the core time per byte if the transfer interrupts a core");
  record.add("core_s_per_message", link.core_s_per_message, "Core time per message");
}

}  // namespace

void fill(Record& record, const Profiled& profiled) {
  const costs::Profile& profile = profiled.profile;
  record.add("profile", profiled.output, "Profile file that was written");
  record.add("hardware", profile.hardware, "Hardware that was measured");
  record.add("device", profile.device, "cpu or cuda");
  record.add("memory_bandwidth_Bps", profile.memory_bandwidth, "Bytes read or written per second");
  std::map<std::string, CodecRates> codecs;
  for (const auto& [name, costs] : profile.codecs) codecs[name] = rates_of(name, costs, profile);
  record.by_name(
      "codecs", codecs,
      "Rates of each algorithm in bytes of gradient per second, for slices of 2²² elements",
      "An algorithm", fill_codec);
  record.object("overlap", profile.overlap, "Slowdown factors of activities that overlap",
                fill_overlap);
  record.list("nccl_tests", profiler::nccl_rows(profile), "Collectives, in the terms of nccl-tests",
              fill_link);
  record.object("spread", profile.spread,
                "Standard deviations of the logarithms of costs; null for a `base` without them",
                fill_spread);
  record.object("probes", profile.probes,
                "Speeds that later replays compare with; 0 if not measured", fill_probes);
  record.add("notes", profile.notes, "Notes on the reliability of the profile, one sentence each");
  record.object("link", profile.link, "Costs of a message", fill_costs);
}

constinit const ResultForm kProfileForm = {"profile", "What was measured",
                                           "Result of a profile request, and of hipress-profile",
                                           schema_of<Profiled>};

io::Document document(const Profiled& profiled) { return document_of(profiled); }

}  // namespace hipress::requests
