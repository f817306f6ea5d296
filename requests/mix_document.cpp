#include "requests/mix_document.hpp"

#include <string>

namespace hipress::requests {

io::Document json_of(const models::Mix& mix) {
  io::Document json;
  for (std::size_t i = 0; i < models::kComputeClasses; ++i) {
    json[std::string(models::kComputeClassTable[i].name)] = mix[i];
  }
  return json;
}

void add_mix(const costs::Cluster& cluster, const models::Model& model, io::Document& report) {
  if (!cluster.overlap.matrix) return;
  report["mix"] = json_of(model.mix.value_or(models::assumed_mix()));
  report["mix_assumed"] = !model.mix.has_value();
}

}  // namespace hipress::requests
