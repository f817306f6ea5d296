#include "requests/mix_document.hpp"

namespace hipress::requests {

std::vector<std::pair<std::string, double>> shares_of(const models::Mix& mix) {
  std::vector<std::pair<std::string, double>> shares;
  for (std::size_t i = 0; i < models::kComputeClasses; ++i) {
    shares.emplace_back(models::kComputeClassTable[i].name, mix[i]);
  }
  return shares;
}

void fill_mix(Record& record, const costs::Cluster* cluster, const models::Model* model) {
  record.section(cluster != nullptr && cluster->overlap.matrix, [&] {
    record.by_name(
        "mix", [&] { return shares_of(model->mix.value_or(models::assumed_mix())); },
        "Shares of classes in the computation, where factors are by class", "A share from 0 to 1");
    record.add(
        "mix_assumed", [&] { return !model->mix.has_value(); },
        "Whether the model has no mix, so that one was assumed");
  });
}

}  // namespace hipress::requests
