#include <fmt/format.h>
#include <yaml-cpp/yaml.h>

#include <cmath>
#include <string>
#include <string_view>

#include "costs/exact_text.hpp"
#include "costs/profile.hpp"
#include "costs/profile_text.hpp"
#include "costs/stage_yaml.hpp"
#include "io/file.hpp"
#include "io/quantity.hpp"

namespace hipress::costs {
namespace {

/// Shortest text that reads back to the same number.
std::string number(double value) { return fmt::format("{}", value); }

void entry(YAML::Emitter& out, const std::string& key, const std::string& value) {
  out << YAML::Key << key << YAML::Value << value;
}

/// Opens a map as the value of `key`.
void open_map(YAML::Emitter& out, const std::string& key) {
  out << YAML::Key << key << YAML::Value << YAML::BeginMap;
}

void write_curve(YAML::Emitter& out, const std::string& key, const Curve& curve,
                 const std::string& slope_key) {
  open_map(out, key);
  if (curve.floor_s > 0) entry(out, "floor", exact_duration(curve.floor_s));
  out << YAML::Key << "pieces" << YAML::Value << YAML::BeginSeq;
  for (const Curve::Piece& piece : curve.pieces) {
    out << YAML::Flow << YAML::BeginMap;
    entry(out, "from", number(piece.from));
    entry(out, "a_s", number(piece.a_s));
    entry(out, slope_key, number(piece.b_s));
    out << YAML::EndMap;
  }
  out << YAML::EndSeq << YAML::EndMap;
}

void write_stage(YAML::Emitter& out, const StageCosts& stage) {
  out << YAML::Flow << YAML::BeginMap;
  for (const StageKey& key : kStageKeys) entry(out, std::string(key.name), number(stage.*key.cost));
  out << YAML::EndMap;
}

void write_stages(YAML::Emitter& out, const CodecCosts& costs) {
  out << YAML::Key << "stages" << YAML::Value << YAML::BeginSeq;
  for (const StageCosts& stage : costs.stages) write_stage(out, stage);
  out << YAML::EndSeq;
  out << YAML::Key << "decode" << YAML::Value;
  write_stage(out, costs.decode_stages);
}

void write_curves(YAML::Emitter& out, const CodecCosts& costs) {
  write_curve(out, "encode", costs.encode, "s_per_element");
  write_curve(out, "decode", costs.decode, "s_per_element");
  write_curve(out, "decode_add", costs.decode_add, "s_per_element");
  if (costs.encode_factor_quotients != 1)
    entry(out, "encode_factor_quotients", number(costs.encode_factor_quotients));
  if (costs.message_share != 1) entry(out, "message_share", number(costs.message_share));
}

void write_hardware(YAML::Emitter& out, const Profile& profile) {
  open_map(out, "hardware");
  entry(out, "name", profile.hardware);
  entry(out, "device", profile.device);
  entry(out, "memory_bandwidth", exact_bandwidth(profile.memory_bandwidth));
  entry(out, "cores", std::to_string(profile.cores));
  entry(out, "core_turn", exact_duration(profile.core_turn_s));
  out << YAML::Key << "shared_host" << YAML::Value << profile.shared_host;
  out << YAML::EndMap;
}

void write_kernels(YAML::Emitter& out, const Profile& profile) {
  open_map(out, "kernels");
  if (profile.kernels_measured_at > 0)
    entry(out, "measured_at", exact_bandwidth(profile.kernels_measured_at));
  if (profile.estimate) {
    open_map(out, "estimate");
    entry(out, "share_of_memory", number(profile.estimate->share_of_memory));
    entry(out, "first_launch", exact_duration(profile.estimate->first_launch_s));
    entry(out, "next_launch", exact_duration(profile.estimate->next_launch_s));
    out << YAML::EndMap;
  }
  write_curve(out, "merge", profile.merge, "s_per_element");
  open_map(out, "codecs");
  for (const auto& [name, costs] : profile.codecs) {
    open_map(out, name);
    costs.stages.empty() ? write_curves(out, costs) : write_stages(out, costs);
    out << YAML::EndMap;
  }
  out << YAML::EndMap << YAML::EndMap;
}

void write_gather(YAML::Emitter& out, const std::string& key, const GatherCosts& costs) {
  if (costs.empty()) return;
  open_map(out, key);
  for (const auto& [nodes, curve] : costs)
    write_curve(out, std::to_string(nodes), curve, "s_per_byte");
  out << YAML::EndMap;
}

void write_links(YAML::Emitter& out, const Profile& profile) {
  const LinkCosts& link = profile.link;
  open_map(out, "links");
  entry(out, "overhead", exact_duration(link.overhead_s));
  if (profile.link_rate > 0) entry(out, "rate", exact_bandwidth(profile.link_rate));
  entry(out, "bandwidth", exact_bandwidth(link.bandwidth));
  entry(out, "bandwidth_both_ways", exact_bandwidth(link.bandwidth_both_ways));
  if (link.burst_bytes > 0) entry(out, "burst", fmt::format("{}B", link.burst_bytes));
  entry(out, "latency", exact_duration(link.latency_s));
  entry(out, "core_s_per_byte", number(link.core_s_per_byte));
  if (link.core_factor_interrupting != 1)
    entry(out, "core_factor_interrupting", number(link.core_factor_interrupting));
  entry(out, "core_time_per_message", exact_duration(link.core_s_per_message));
  write_gather(out, "fan_in", profile.fan_in);
  write_gather(out, "fan_out", profile.fan_out);
  write_gather(out, "all_reduce", profile.all_reduce);
  write_gather(out, "all_gather", profile.all_gather);
  write_gather(out, "reduce_scatter", profile.reduce_scatter);
  write_gather(out, "all_to_all", profile.all_to_all);
  out << YAML::EndMap;
}

void write_matrix(YAML::Emitter& out, const OverlapMatrix& matrix) {
  entry(out, "codec_beside_transfer", number(matrix.codec_beside_transfer));
  entry(out, "transfer_beside_codec", number(matrix.transfer_beside_codec));
  open_map(out, "classes");
  for (std::size_t i = 0; i < models::kComputeClasses; ++i) {
    out << YAML::Key << std::string(models::kComputeClassTable[i].name) << YAML::Value << YAML::Flow
        << YAML::BeginMap;
    for (const ClassOverlapKey& key : kClassOverlapKeys) {
      entry(out, std::string(key.name), number(matrix.classes[i].*key.factor));
    }
    out << YAML::EndMap;
  }
  out << YAML::EndMap;
}

void write_overlap(YAML::Emitter& out, const OverlapFactors& overlap) {
  if (overlap == OverlapFactors{}) return;
  open_map(out, "overlap");
  if (overlap.matrix) {
    write_matrix(out, *overlap.matrix);
  } else {
    for (const OverlapConstant& constant : kOverlapConstants) {
      entry(out, std::string(constant.name), number(overlap.*constant.factor));
    }
  }
  out << YAML::EndMap;
}

void write_spread(YAML::Emitter& out, const Spread& spread) {
  open_map(out, "spread");
  entry(out, "host", number(spread.host));
  entry(out, "links", number(spread.links));
  entry(out, "compute", number(spread.compute));
  entry(out, "model", number(spread.model));
  entry(out, "iterations", number(spread.iterations));
  out << YAML::EndMap;
}

void write_probes(YAML::Emitter& out, const Probes& probes) {
  if (probes == Probes{}) return;
  open_map(out, "probes");
  if (probes.copy > 0) entry(out, "copy", exact_bandwidth(probes.copy));
  if (probes.codec > 0) entry(out, "codec", exact_bandwidth(probes.codec));
  if (probes.transport > 0) entry(out, "transport", exact_bandwidth(probes.transport));
  out << YAML::EndMap;
}

void write_series(YAML::Emitter& out, const Profile::Series& series) {
  out << YAML::BeginMap;
  entry(out, "name", series.name);
  entry(out, "median_relative_residual", number(series.median_relative_residual));
  entry(out, "max_relative_residual", number(series.max_relative_residual));
  out << YAML::Key << "points" << YAML::Value << YAML::BeginSeq;
  for (const Sample& sample : series.samples) {
    out << YAML::Flow << YAML::BeginMap;
    entry(out, "x", std::to_string(sample.x));
    entry(out, "median", exact_duration(sample.median_s));
    entry(out, "p10", exact_duration(sample.p10_s));
    entry(out, "p90", exact_duration(sample.p90_s));
    if (sample.mean_s > 0) entry(out, "mean", exact_duration(sample.mean_s));
    entry(out, "repetitions", std::to_string(sample.repetitions));
    out << YAML::EndMap;
  }
  out << YAML::EndSeq << YAML::EndMap;
}

void write_samples(YAML::Emitter& out, const Profile& profile) {
  if (profile.samples.empty()) return;
  out << YAML::Key << "samples" << YAML::Value << YAML::BeginSeq;
  for (const Profile::Series& series : profile.samples) write_series(out, series);
  out << YAML::EndSeq;
}

}  // namespace

void write_profile(const std::string& path, const Profile& profile) {
  YAML::Emitter out;
  out << YAML::BeginMap;
  entry(out, "schema", "hipress.profile/1");
  entry(out, "name", profile.name);
  entry(out, "source", profile.source);
  if (!profile.notes.empty()) out << YAML::Key << "notes" << YAML::Value << profile.notes;
  write_hardware(out, profile);
  write_kernels(out, profile);
  write_links(out, profile);
  write_overlap(out, profile.overlap);
  if (profile.spread) write_spread(out, *profile.spread);
  write_probes(out, profile.probes);
  write_samples(out, profile);
  out << YAML::EndMap;
  const std::string text = std::string(out.c_str()) + "\n...\n";
  parse_profile(text, path);  // refuses text that read_profile() would refuse
  io::write_file(path, [&](std::ostream& file) { file << text; });
}

}  // namespace hipress::costs
