#include <algorithm>

#include "costs/cluster.hpp"
#include "costs/density.hpp"
#include "costs/link_yaml.hpp"
#include "costs/overlap_yaml.hpp"
#include "costs/profile.hpp"
#include "costs/profile_text.hpp"
#include "costs/stage_yaml.hpp"
#include "costs/starter_profile.hpp"
#include "costs/traffic.hpp"
#include "io/error.hpp"
#include "io/file.hpp"
#include "io/input_file.hpp"
#include "io/quantity.hpp"
#include "io/suggestion.hpp"
#include "io/yaml.hpp"

namespace hipress::costs {
namespace {

using io::YamlNode;

constexpr std::string_view kSchema = "hipress.profile/1";

/// Maximum size in a measurement or in a piece of a curve, in elements or bytes.
constexpr std::int64_t kLargestSize = std::int64_t{1} << 60;
constexpr double kMaxResidual = 1e12;

/// Reads a piece of a curve. `slope_key` is "s_per_element" or "s_per_byte".
Curve::Piece read_piece(const YamlNode& node, std::string_view slope_key) {
  node.expect_keys({"from", "a_s", slope_key});
  constexpr double kMax_s = io::kLongestDuration_s;
  const Curve::Piece piece = {node.at("from").number(0, static_cast<double>(kLargestSize)),
                              node.at("a_s").number(-kMax_s, kMax_s),
                              node.at(slope_key).number(0, kMaxSlope_s)};
  if (piece.a_s + piece.b_s * piece.from < 0) {
    node.at("a_s").fail("makes a negative time at the start of the piece, got " +
                        io::quote(node.at("a_s").text()));
  }
  return piece;
}

Curve read_curve(const YamlNode& node, std::string_view slope_key) {
  node.expect_keys({"floor", "pieces"});
  Curve curve;
  if (const auto floor = node.find("floor")) curve.floor_s = floor->duration();
  for (const YamlNode& item : node.at("pieces").items()) {
    const Curve::Piece piece = read_piece(item, slope_key);
    if (curve.pieces.empty() && piece.a_s < 0) {
      item.at("a_s").fail("must not be negative in the first piece, got " +
                          io::quote(item.at("a_s").text()));
    }
    if (!curve.pieces.empty() && piece.from <= curve.pieces.back().from) {
      item.at("from").fail("pieces must be in increasing order of 'from'");
    }
    curve.pieces.push_back(piece);
  }
  return curve;
}

CodecCosts read_codec(const YamlNode& node, const std::string& name) {
  node.expect_keys(
      {"encode", "decode", "decode_add", "encode_factor_quotients", "message_share", "stages"});
  check_stages(node, name);
  if (node.has("stages")) return read_stages(node);
  CodecCosts codec = {.encode = read_curve(node.at("encode"), "s_per_element"),
                      .decode = read_curve(node.at("decode"), "s_per_element"),
                      .decode_add = read_curve(node.at("decode_add"), "s_per_element")};
  if (const auto factor = node.find("encode_factor_quotients")) {
    codec.encode_factor_quotients =
        factor->number(1, kMaxRatio, "an encode that divides does more");
  }
  if (const auto share = node.find("message_share")) {
    constexpr double kLeast = 1e-6;
    codec.message_share = share->number(kLeast, 1, "a share of the longest message");
  }
  return codec;
}

std::map<std::string, CodecCosts> read_codecs(const YamlNode& node) {
  std::map<std::string, CodecCosts> codecs;
  for (const auto& [name, costs] : node.entries()) codecs[name] = read_codec(costs, name);
  return codecs;
}

GatherCosts read_gather(const YamlNode& links, std::string_view key) {
  GatherCosts costs;
  const auto node = links.find(key);
  if (!node) return costs;
  for (const auto& [nodes, curve] : node->entries()) {
    int count = 0;
    try {
      count = static_cast<int>(io::parse_integer(nodes, "number of nodes", 2, 1 << 20));
    } catch (const io::InputError& error) {
      curve.fail(error.what());
    }
    costs[count] = read_curve(curve, "s_per_byte");
  }
  return costs;
}

Sample read_sample(const YamlNode& node) {
  node.expect_keys({"x", "median", "p10", "p90", "mean", "repetitions"});
  const auto mean = node.find("mean");
  return {.x = node.at("x").integer(0, kLargestSize),
          .median_s = node.at("median").duration(),
          .p10_s = node.at("p10").duration(),
          .p90_s = node.at("p90").duration(),
          .repetitions = static_cast<int>(node.at("repetitions").integer(1, INT32_MAX)),
          .mean_s = mean ? mean->duration() : 0};
}

Profile::Series read_series(const YamlNode& node) {
  node.expect_keys({"name", "median_relative_residual", "max_relative_residual", "points"});
  Profile::Series series;
  series.name = node.at("name").text();
  series.median_relative_residual = node.at("median_relative_residual").number(0, kMaxResidual);
  series.max_relative_residual = node.at("max_relative_residual").number(0, kMaxResidual);
  for (const YamlNode& point : node.at("points").items())
    series.samples.push_back(read_sample(point));
  return series;
}

void read_hardware(const YamlNode& node, Profile& profile) {
  node.expect_keys({"name", "device", "memory_bandwidth", "cores", "core_turn", "shared_host"});
  profile.hardware = node.at("name").text();
  const YamlNode device = node.at("device");
  profile.device = device.text();
  if (profile.device != "cpu" && profile.device != "cuda") {
    device.fail("must be cpu or cuda, got " + io::quote(profile.device));
  }
  profile.memory_bandwidth = node.at("memory_bandwidth").bandwidth();
  if (const auto cores = node.find("cores"))
    profile.cores = static_cast<int>(cores->integer(0, 1 << 20));
  if (const auto turn = node.find("core_turn"))
    profile.core_turn_s = turn->duration(kLongestTurn_s);
  if (const auto shared = node.find("shared_host")) profile.shared_host = shared->boolean();
}

KernelEstimate read_estimate(const YamlNode& node) {
  constexpr double kLeastShare = 1e-3;
  node.expect_keys({"share_of_memory", "first_launch", "next_launch"});
  return {.share_of_memory =
              node.at("share_of_memory").number(kLeastShare, 1, "a share of the memory bandwidth"),
          .first_launch_s = node.at("first_launch").duration(),
          .next_launch_s = node.at("next_launch").duration()};
}

void read_kernels(const YamlNode& node, Profile& profile) {
  node.expect_keys({"measured_at", "estimate", "merge", "codecs"});
  if (const auto at = node.find("measured_at")) profile.kernels_measured_at = at->bandwidth();
  if (const auto estimate = node.find("estimate")) profile.estimate = read_estimate(*estimate);
  profile.merge = read_curve(node.at("merge"), "s_per_element");
  profile.codecs = read_codecs(node.at("codecs"));
  add_estimated_costs(profile);
}

void read_links(const YamlNode& node, Profile& profile) {
  node.expect_keys({"overhead", "rate", "bandwidth", "bandwidth_both_ways", "burst", "latency",
                    "core_s_per_byte", "core_factor_interrupting", "core_time_per_message",
                    "fan_in", "fan_out", "all_reduce", "all_gather", "reduce_scatter",
                    "all_to_all"});
  for (const std::string_view key : {"overhead", "bandwidth", "latency"}) node.at(key);
  profile.link = read_link(node, {}, node.at("bandwidth").bandwidth());
  if (const auto rate = node.find("rate")) {
    profile.link_rate = rate->bandwidth();
    if (profile.link_rate < profile.link.bandwidth) {
      rate->fail("no link carries more than its rate: it must be at least the bandwidth");
    }
  }
  profile.fan_in = read_gather(node, "fan_in");
  profile.fan_out = read_gather(node, "fan_out");
  profile.all_reduce = read_gather(node, "all_reduce");
  profile.all_gather = read_gather(node, "all_gather");
  profile.reduce_scatter = read_gather(node, "reduce_scatter");
  profile.all_to_all = read_gather(node, "all_to_all");
}

Spread read_spread(const YamlNode& node) {
  node.expect_keys({"host", "links", "compute", "model", "iterations"});
  const auto read = [&](std::string_view key) {
    return node.at(key).number(0, kMaxSpread, "the standard deviation of a factor's logarithm");
  };
  return {.host = read("host"),
          .links = read("links"),
          .compute = read("compute"),
          .model = read("model"),
          .iterations = read("iterations")};
}

Probes read_probes(const YamlNode& node) {
  node.expect_keys({"copy", "codec", "transport"});
  const auto read = [&](std::string_view key) {
    const auto entry = node.find(key);
    return entry ? entry->bandwidth() : 0;
  };
  return {.copy = read("copy"), .codec = read("codec"), .transport = read("transport")};
}

/// Throws InputError without the end marker "...": a file truncated after a line is valid YAML.
void require_end_marker(const std::string& bytes, const std::string& path) {
  // A file that is not text gets its own error when it is parsed.
  if (bytes.find('\0') != std::string::npos || bytes.starts_with("\xff\xfe")) return;
  if (io::has_end_marker(bytes)) return;
  const auto lines = static_cast<int>(std::count(bytes.begin(), bytes.end(), '\n'));
  throw io::InputError(path, lines + 1,
                       "the file ends without the line '...', so it was cut short: copy it again, "
                       "or measure anew with hipress-profile");
}

constexpr const char* kProfiles = "profiler/profiles";

[[noreturn]] void refuse_name(const std::string& path_or_name) {
  const std::vector<std::string> shipped = profile_names();
  const std::vector<std::string_view> known(shipped.begin(), shipped.end());
  throw io::InputError(
      "profile " + io::quote(path_or_name) + ": neither a file nor a shipped profile" +
      io::suggestion(path_or_name, known) + "; hipress-profile `output` FILE.yaml measures one");
}

}  // namespace

Profile parse_profile(const std::string& bytes, const std::string& path) {
  const YamlNode root = YamlNode::parse(bytes, path);
  root.expect_schema(kSchema, ": measure anew with this version's hipress-profile");
  require_end_marker(bytes, path);
  root.expect_keys({"schema", "name", "source", "notes", "hardware", "kernels", "links", "overlap",
                    "spread", "probes", "samples"});
  root.at("schema");
  Profile profile;
  profile.fingerprint = io::fingerprint(bytes);
  profile.name = root.at("name").text();
  profile.source = root.at("source").prose();
  if (const auto notes = root.find("notes")) {
    for (const YamlNode& note : notes->items()) profile.notes.push_back(note.prose());
  }
  read_hardware(root.at("hardware"), profile);
  read_kernels(root.at("kernels"), profile);
  read_links(root.at("links"), profile);
  if (const auto overlap = root.find("overlap")) profile.overlap = read_overlap(*overlap, {});
  if (const auto spread = root.find("spread")) profile.spread = read_spread(*spread);
  if (const auto probes = root.find("probes")) profile.probes = read_probes(*probes);
  if (const auto samples = root.find("samples")) {
    for (const YamlNode& series : samples->items()) profile.samples.push_back(read_series(series));
  }
  return profile;
}

std::vector<std::string> profile_names() {
  std::vector<std::string> names = io::data_names(kProfiles, ".yaml");
  for (std::string& name : starter_profile_names()) names.push_back(std::move(name));
  std::ranges::sort(names);
  return names;
}

Profile read_profile(const std::string& path_or_name) {
  const auto path = io::named_file(kProfiles, path_or_name);
  if (path) {
    constexpr std::int64_t kMostBytes = std::int64_t{16} << 20;
    return parse_profile(io::read_file(*path, {.most_bytes = kMostBytes}), *path);
  }
  const auto text = starter_profile(path_or_name);
  if (!text) refuse_name(path_or_name);
  return parse_profile(*text, path_or_name);
}

CodecCosts CodecCosts::times(double encode_factor, double decode_factor) const {
  CodecCosts scaled = *this;
  scaled.encode = encode.times(encode_factor);
  scaled.decode = decode.times(decode_factor);
  scaled.decode_add = decode_add.times(decode_factor);
  for (StageCosts& stage : scaled.stages) stage = stage.times(encode_factor);
  scaled.decode_stages = decode_stages.times(decode_factor);
  return scaled;
}

std::string Profile::row_of(const std::string& algorithm) const {
  // Prefers the row with these parameters, then the nearest density, then any parameters, which
  // change costs little. Brackets before the end of the text belong to a program's path.
  const auto base = [](const std::string& text) {
    return text.ends_with(')') ? text.substr(0, text.rfind('(')) : text;
  };
  if (codecs.contains(algorithm)) return algorithm;
  if (const auto rows = density_rows(*this, algorithm)) return rows->nearest();
  for (const auto& [known_name, costs] : codecs) {
    if (base(known_name) == base(algorithm)) return known_name;
  }
  return {};
}

CodecCosts Profile::codec(const std::string& algorithm) const {
  if (!codecs.contains(algorithm)) {
    const auto rows = density_rows(*this, algorithm);
    if (rows && rows->below != rows->above) {
      return between(codecs.at(rows->below), codecs.at(rows->above), rows->share);
    }
  }
  if (const auto found = codecs.find(row_of(algorithm)); found != codecs.end()) {
    return found->second;
  }
  if (const auto costs = estimated_costs(*this, algorithm)) return *costs;
  std::string known;
  for (const auto& [known_name, costs] : codecs) known += (known.empty() ? "" : ", ") + known_name;
  throw io::InputError("profile " + io::quote(name) + " has no costs of algorithm " +
                       io::quote(algorithm) + "; it has " + (known.empty() ? "none" : known) +
                       ": choose one of these, measure with hipress-profile `algorithm` " +
                       io::quote(algorithm) + ", or assume another's costs: `assume_cost` " +
                       algorithm + "=int8block");
}

}  // namespace hipress::costs
