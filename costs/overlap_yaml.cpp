#include "costs/overlap_yaml.hpp"

namespace hipress::costs {

OverlapFactors read_overlap(const io::YamlNode& node, const OverlapFactors& fallback) {
  node.expect_keys({"compute_codec", "compute_transfer", "codec_transfer"});
  const auto read = [&](std::string_view key, double otherwise) {
    const auto entry = node.find(key);
    if (!entry) return otherwise;
    return entry->number(1, kMaxOverlap, "1: no slower together, 8: 8 times as long");
  };
  return {read("compute_codec", fallback.compute_codec),
          read("compute_transfer", fallback.compute_transfer),
          read("codec_transfer", fallback.codec_transfer)};
}

}  // namespace hipress::costs
