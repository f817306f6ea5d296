#include "replay/prediction.hpp"

namespace hipress::replay {
namespace {

costs::Cluster cluster_of(const costs::Profile& profile, std::uint32_t nodes,
                          const PredictionOptions& options) {
  return costs::load(options.machines, profile, nodes, nodes).cluster;
}

}  // namespace

void check_prediction(const costs::Profile& profile,
                      const std::vector<casync::Algorithm>& algorithms, std::uint32_t nodes,
                      const PredictionOptions& options) {
  cluster_of(profile, nodes, options);
  sim::TaskCosts(profile, algorithms);
}

Prediction predict(const casync::TaskGraph& graph, const std::vector<casync::Algorithm>& algorithms,
                   const costs::Profile& profile, const costs::Spread& spread,
                   const RankPlaces& places, const PredictionOptions& options) {
  const Comparable compared = comparable(cluster_of(profile, graph.nodes, options),
                                         costs::cluster_from_profile(profile, graph.nodes), places);
  sim::Options simulated = {
      .network = options.network, .computing = options.computing, .record_timeline = true};
  const auto simulate = [&](const costs::Profile& costs, const costs::Cluster& cluster) {
    return sim::simulate(graph, sim::TaskCosts(costs, algorithms), cluster, simulated);
  };
  Prediction made{
      .result = simulate(profile, compared.cluster), .interval = {}, .differs = compared.differs};
  simulated.record_timeline = false;
  const sim::TimeOf time_s = [&](const costs::Profile& costs, const costs::Cluster& cluster) {
    return std::optional(casync::to_seconds(simulate(costs, cluster).iteration));
  };
  const sim::Response response =
      *sim::respond(casync::to_seconds(made.result.iteration),
                    casync::to_seconds(made.result.compute), profile, compared.cluster, time_s);
  made.interval = sim::interval(response, spread, options.iterations);
  return made;
}

}  // namespace hipress::replay
