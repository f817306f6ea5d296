#pragma once

#include <fmt/format.h>

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "casync/topology.hpp"
#include "kernels/codec/codec.hpp"
#include "models/model.hpp"
#include "plans/plan_builder.hpp"
#include "plans/plan_file.hpp"

namespace hipress::runtime {

/// Arguments of a replay. The members refer to each other by index only.
struct Case {
  models::Model model;
  plans::ResolvedPlan plan;
  casync::TaskGraph graph;
};

/// fp16, but decoding makes one element wrong in every slice, or in slices of one length.
class WrongCodec : public kernels::Codec {
 public:
  explicit WrongCodec(std::int64_t element, std::optional<std::int64_t> length = {})
      : element_(element), length_(length) {}
  const kernels::CodecTraits& traits() const override { return right_->traits(); }
  std::int64_t encoded_bytes(std::int64_t elements) const override {
    return right_->encoded_bytes(elements);
  }
  void encode(std::span<const kernels::EncodeItem> items, void* stream) const override {
    right_->encode(items, stream);
  }
  void decode(std::span<const kernels::DecodeItem> items, void* stream) const override {
    right_->decode(items, stream);
    for (const kernels::DecodeItem& item : items) {
      if (item.mode != kernels::DecodeMode::kOverwrite) continue;
      if (item.elements == length_.value_or(item.elements)) {
        static_cast<float*>(item.values)[element_] += 0.5f;
      }
    }
  }

 private:
  std::unique_ptr<kernels::Codec> right_ = kernels::make_codec("fp16");
  std::int64_t element_;
  std::optional<std::int64_t> length_;
};

/// Model with gradients "g0", "g1" … of these sizes, which are all ready at once.
inline models::Model make_model(const std::vector<std::int64_t>& sizes) {
  models::Model model{.name = "test", .source = {}, .unit = {}, .gradients = {}};
  for (const std::int64_t elements : sizes) {
    model.gradients.push_back(
        {.name = fmt::format("g{}", model.gradients.size()), .elements = elements});
  }
  return model;
}

/// Plan that cuts every gradient into `partitions` and compresses them with `codec`. Gradients are
/// raw if the codec is null or cannot take their shape.
inline plans::ResolvedPlan make_plan(const models::Model& model, const std::string& topology,
                                     std::uint32_t nodes, std::int32_t partitions,
                                     std::shared_ptr<const kernels::Codec> codec) {
  plans::ResolvedPlan resolved;
  resolved.plan.topology = topology;
  resolved.plan.nodes = nodes;
  for (const models::Gradient& gradient : model.gradients) {
    const bool takes = codec && codec->refusal(shape_of(gradient)).empty();
    resolved.plan.decisions.push_back({takes ? std::int8_t{0} : casync::kRaw, partitions});
  }
  if (codec) {
    resolved.plan.algorithms.push_back(plans::algorithm_of("codec", codec));
    resolved.codecs.push_back(std::move(codec));
  }
  return resolved;
}

inline std::shared_ptr<const kernels::Codec> codec_or_raw(const std::string& algorithm) {
  if (algorithm == "raw") return nullptr;
  return kernels::make_codec(algorithm);
}

/// True if a library's all-reduce can sum the values that the algorithm sends.
inline bool can_be_summed(const std::string& algorithm) {
  return algorithm == "raw" || kernels::make_codec(algorithm)->traits().half_precision;
}

inline Case make_case(const std::string& topology, std::uint32_t nodes, std::int32_t partitions,
                      const std::string& algorithm, const std::vector<std::int64_t>& sizes) {
  Case made{.model = make_model(sizes), .plan = {}, .graph = {}};
  made.plan = make_plan(made.model, topology, nodes, partitions, codec_or_raw(algorithm));
  made.graph = casync::expand_to_run(made.model, made.plan.plan);
  return made;
}

}  // namespace hipress::runtime
