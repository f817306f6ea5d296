#include "costs/stage_yaml.hpp"

#include <fmt/format.h>

#include <stdexcept>

#include "io/error.hpp"

namespace hipress::costs {
namespace {

StageCosts read_stage(const io::YamlNode& node) {
  node.expect_keys({kStageKeys[0].name, kStageKeys[1].name, kStageKeys[2].name, kStageKeys[3].name,
                    kStageKeys[4].name});
  StageCosts stage;
  stage.a_s = node.at("a_s").number(0, io::kLongestDuration_s, "seconds of any stage");
  for (const StageKey& key : kStageKeys) {
    if (key.cost == &StageCosts::a_s) continue;
    if (const auto slope = node.find(key.name))
      stage.*key.cost = slope->number(0, kMaxSlope_s, "seconds");
  }
  return stage;
}

}  // namespace

CodecCosts read_stages(const io::YamlNode& codec) {
  for (const std::string_view curve : {"encode", "decode_add", "encode_factor_quotients"}) {
    if (const auto found = codec.find(curve)) {
      found->fail("applies to algorithms without stages: beside 'stages' give 'decode' alone");
    }
  }
  CodecCosts costs;
  for (const io::YamlNode& stage : codec.at("stages").items())
    costs.stages.push_back(read_stage(stage));
  if (costs.stages.empty()) {
    codec.at("stages").fail("must have an entry for the encode of each stage, got none");
  }
  costs.decode_stages = read_stage(codec.at("decode"));
  return costs;
}

std::string complaint_about_stages(std::string_view algorithm, const kernels::CodecTraits& traits,
                                   std::size_t stages) {
  if (!traits.additive && stages > 0) {
    return fmt::format(
        "apply to staged algorithms, and {} has no stages: give the curves 'encode', 'decode' and "
        "'decode_add' instead",
        algorithm);
  }
  if (!traits.additive || stages == static_cast<std::size_t>(traits.stages)) return {};
  const std::string measured =
      fmt::format("hipress-profile `algorithm` {} measures them", io::quote(algorithm));
  if (stages == 0) {
    return fmt::format(
        "{} is a staged algorithm: instead of curves give {} 'stages' and 'decode'; {}", algorithm,
        traits.stages, measured);
  }
  return fmt::format("must have {} entries, one per stage of {}, got {}; {}", traits.stages,
                     algorithm, stages, measured);
}

void check_stages(const io::YamlNode& codec, std::string_view algorithm) {
  const kernels::AlgorithmRow* const row = kernels::find_algorithm(algorithm);
  if (row == nullptr) return;
  const auto stages = codec.find("stages");
  if (!row->additive && !stages) return;
  const std::size_t count = stages ? stages->items().size() : 0;
  const std::string complaint =
      complaint_about_stages(algorithm, kernels::make_codec(row->name)->traits(), count);
  if (!complaint.empty()) (stages ? *stages : codec).fail(complaint);
}

}  // namespace hipress::costs
