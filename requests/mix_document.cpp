#include "requests/mix_document.hpp"

namespace hipress::requests {

std::vector<std::pair<std::string, double>> shares_of(const models::Mix& mix) {
  std::vector<std::pair<std::string, double>> shares;
  for (std::size_t i = 0; i < models::kComputeClasses; ++i) {
    shares.emplace_back(models::kComputeClassTable[i].name, mix[i]);
  }
  return shares;
}

void add_mix(const costs::Cluster& cluster, const models::Model& model, io::Document& report) {
  if (!cluster.overlap.matrix) return;
  for (const auto& [name, share] : shares_of(model.mix.value_or(models::assumed_mix()))) {
    report["mix"][name] = share;
  }
  report["mix_assumed"] = !model.mix.has_value();
}

}  // namespace hipress::requests
