#include "sim/sensitivity.hpp"

#include <array>

namespace hipress::sim {
namespace {

constexpr double kFaster = 1.1;  // a rate that is 10 % better
constexpr double kShorter = 0.9;

/// The same work at a 10 % higher speed.
void hurry(double& seconds) { seconds /= kFaster; }

void hurry(costs::Curve& curve) {
  for (costs::Curve::Piece& piece : curve.pieces) {
    hurry(piece.a_s);
    hurry(piece.b_s);
  }
  hurry(curve.floor_s);
}

void raise_bandwidth(Scenario& scenario) {
  scenario.cluster.link.bandwidth *= kFaster;
  scenario.cluster.link.bandwidth_both_ways *= kFaster;
}

void cut_latency(Scenario& scenario) { scenario.cluster.link.latency_s *= kShorter; }
void cut_overhead(Scenario& scenario) { scenario.cluster.link.overhead_s *= kShorter; }

void hurry_encode(Scenario& scenario) {
  for (auto& [name, codec] : scenario.profile.codecs) hurry(codec.encode);
}

void hurry_decode(Scenario& scenario) {
  for (auto& [name, codec] : scenario.profile.codecs) {
    hurry(codec.decode);
    hurry(codec.decode_add);
  }
}

void hurry_merge(Scenario& scenario) { hurry(scenario.profile.merge); }

void hurry_compute(Scenario& scenario) {
  hurry(scenario.model.forward_s);
  for (models::Gradient& gradient : scenario.model.gradients) hurry(gradient.ready_s);
}

void cut_transfer_work(Scenario& scenario) {
  scenario.cluster.link.core_s_per_byte *= kShorter;
  scenario.cluster.link.core_s_per_message *= kShorter;
}

constexpr std::array kImprovements = {
    Improvement{"bandwidth", "links carry 10 % more, one way and both ways", raise_bandwidth},
    Improvement{"latency", "10 % less time on the wire", cut_latency},
    Improvement{"overhead", "10 % less time that a message costs its ports", cut_overhead},
    Improvement{"encode", "encoding at 1.1 times its speed", hurry_encode},
    Improvement{"decode", "decoding, with or without adding, at 1.1 times its speed", hurry_decode},
    Improvement{"merge", "adding raw slices at 1.1 times its speed", hurry_merge},
    Improvement{"compute", "forward and backward at 1.1 times their speed", hurry_compute},
    Improvement{"transfer_cores", "10 % less CPU work of moving bytes (where cores are shared)",
                cut_transfer_work},
};

/// Only computation is part of the graph; everything else is what the graph's tasks cost.
bool changes_graph(const Improvement& improvement) { return improvement.apply == hurry_compute; }

}  // namespace

std::span<const Improvement> improvements() { return kImprovements; }

std::vector<Sensitivity> sensitivities(const Scenario& scenario, const casync::TaskGraph& graph,
                                       Picoseconds iteration) {
  std::vector<Sensitivity> rows;
  for (const Improvement& improvement : kImprovements) {
    Scenario better = scenario;
    improvement.apply(better);
    const Picoseconds changed = changes_graph(improvement) ? iteration_time(better, expand(better))
                                                           : iteration_time(better, graph);
    rows.push_back({improvement.name, changed, changed - iteration});
  }
  return rows;
}

}  // namespace hipress::sim
