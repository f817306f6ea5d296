#include <map>
#include <string>

#include "costs/traffic.hpp"
#include "profiler/nccl_table.hpp"
#include "profiler/rates.hpp"
#include "requests/profile.hpp"
#include "requests/result_forms.hpp"

namespace hipress::requests {
namespace {

/// A codec's costs at one size. Empty: not of such an algorithm.
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
  // A CPU measures no slices that are too large for its caches.
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
  record.add("encode_Bps", rates.encode, "Encoding; of several stages, all together");
  record.add("decode_Bps", rates.decode, "Decoding");
  record.add_if_any("decode_add_Bps", rates.decode_add,
                    "Decoding and adding; not of algorithms with stages");
  record.add_if_any("stages", rates.stages,
                    "Of an algorithm with stages, measured on a 2048 × 2048 matrix");
  record.add_if_any("rank", rates.stages ? std::optional(profiler::kRateRank) : std::nullopt,
                    "The rank that it was measured with");
  record.add_if_any("encode_factor_quotients", rates.encode_factor_quotients,
                    "How many times as long an encode takes that divides what it reads");
  record.add_if_any("message_share", rates.message_share,
                    "Bytes of a message over bytes of its values");
  record.add_if_any("encode_of_ceiling", rates.encode_of_ceiling,
                    "With cuda: the share of the memory's bandwidth that the least traffic takes");
  record.add_if_any("decode_of_ceiling", rates.decode_of_ceiling, "The same of decoding");
}

void fill_class(Record& record, const costs::ClassOverlap& factors) {
  record.add("beside_codec", factors.beside_codec, "The class beside compression");
  record.add("beside_transfer", factors.beside_transfer, "The class beside transfers");
  record.add("slows_codec", factors.slows_codec, "Compression beside the class");
  record.add("slows_transfer", factors.slows_transfer, "Transfers beside the class");
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
             "Computation and compression; of the assumed mix");
  record.add("compute_transfer", constants.compute_transfer, "Computation and transfers");
  record.add("codec_transfer", constants.codec_transfer, "Compression and transfers");
  const auto& matrix = overlap.matrix;
  record.section(matrix.has_value(), [&] {
    record.add(
        "codec_beside_transfer", [&] { return matrix->codec_beside_transfer; },
        "With cuda: compression beside transfers");
    record.add(
        "transfer_beside_codec", [&] { return matrix->transfer_beside_codec; },
        "With cuda: transfers beside compression");
    record.by_name(
        "classes", [&] { return classes_of(*matrix); }, "With cuda: by class of computation",
        "A class", fill_class);
  });
}

void fill_link(Record& record, const profiler::NcclRow& row) {
  record.add("test", row.test, "The collective");
  record.add("ranks", row.ranks, "Ranks that took part");
  record.add("size_bytes", row.size_bytes, "Bytes of the buffer");
  record.add("time_s", row.time_s, "The time that it took");
  record.add("algbw_Bps", row.algbw, "Bytes over time");
  record.add("busbw_Bps", row.busbw, "The bandwidth that links need for it");
}

void fill_spread(Record& record, const costs::Spread& spread) {
  record.add("host", spread.host, "Of compression and copies, from run to run");
  record.add("links", spread.links, "Of links");
  record.add("compute", spread.compute, "Of computation");
  record.add("model", spread.model, "Of the prediction itself");
  record.add("iterations", spread.iterations, "Of iterations of a run");
}

void fill_probes(Record& record, const costs::Probes& probes) {
  record.add("copy_Bps", probes.copy, "Copying memory");
  record.add("codec_Bps", probes.codec, "A codec");
  record.add("transport_Bps", probes.transport, "The transport");
}

void fill_costs(Record& record, const costs::LinkCosts& link) {
  record.add("bandwidth_Bps", link.bandwidth, "Bytes in a second");
  record.add("overhead_s", link.overhead_s, "The link's time for a message besides");
  record.add("latency_s", link.latency_s, "From its end there to its arrival");
  record.add("core_s_per_byte", link.core_s_per_byte, "A core's time for a byte");
  record.add("core_factor_interrupting", link.core_factor_interrupting,
             "How many times that, where a core is interrupted");
  record.add("core_s_per_message", link.core_s_per_message, "A core's time for a message besides");
}

}  // namespace

void fill(Record& record, const Profiled& profiled) {
  const costs::Profile& profile = profiled.profile;
  record.add("profile", profiled.output, "The file that was written");
  record.add("hardware", profile.hardware, "What was measured");
  record.add("device", profile.device, "cpu or cuda");
  record.add("memory_bandwidth_Bps", profile.memory_bandwidth,
             "Bytes that are read or written in a second");
  std::map<std::string, CodecRates> codecs;
  for (const auto& [name, costs] : profile.codecs) codecs[name] = rates_of(name, costs, profile);
  record.by_name("codecs", codecs,
                 "Rates in bytes of gradient in a second, of slices of 2²² elements",
                 "An algorithm", fill_codec);
  record.object("overlap", profile.overlap, "How many times as long things take beside each other",
                fill_overlap);
  record.list("nccl_tests", profiler::nccl_rows(profile), "Collectives, as nccl-tests prints them",
              fill_link);
  record.object("spread", profile.spread,
                "Standard deviations of the logarithms of costs; null: a base has none",
                fill_spread);
  record.object("probes", profile.probes, "Speeds that later replays compare with; 0: not run",
                fill_probes);
  record.add("notes", profile.notes, "What to know before trusting the profile, a sentence each");
  record.object("link", profile.link, "What a message costs", fill_costs);
}

constinit const ResultForm kProfileForm = {"profile", "What was measured",
                                           "Of a profile request, and of hipress-profile",
                                           schema_of<Profiled>};

io::Document document(const Profiled& profiled) { return document_of(profiled); }

}  // namespace hipress::requests
