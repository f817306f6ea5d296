#include "requests/shared_records.hpp"

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
        "Shares of classes in the computation, if factors are given by class", "Share from 0 to 1");
    record.add(
        "mix_assumed", [&] { return !model->mix.has_value(); },
        "True if the model has no mix, so that one was assumed");
  });
}

void fill_load(Record& record, const sim::ComputeUtilisation& utilisation,
               const sim::Traffic& traffic) {
  record.add("utilization", utilisation.share, "Computation's share of the time");
  record.add("utilization_p10", utilisation.p10, "The start of its 10–90 % interval");
  record.add("utilization_p90", utilisation.p90, "The end of its 10–90 % interval");
  record.add("bytes_per_step", traffic.bytes_per_step,
             "Bytes that the node that sends most sends in a step");
  record.add("bytes_per_day", traffic.bytes_per_day, "Bytes that it sends in a day of training");
  record.add("peak_bits_per_s", traffic.peak_bits_per_s,
             "Peak rate of that node, averaged over a window as long as a step's computation");
}

}  // namespace hipress::requests
