#include "planner/broadcast/broadcast.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <limits>
#include <memory>
#include <numeric>
#include <span>
#include <utility>

#include "casync/folding.hpp"
#include "casync/topology.hpp"
#include "io/error.hpp"
#include "kernels/codec/algorithm_list.hpp"
#include "planner/bound/costs.hpp"
#include "plans/lossless.hpp"
#include "plans/plan_builder.hpp"
#include "sim/message_sizes.hpp"
#include "sim/simulator.hpp"

namespace hipress::planner {
namespace {

using casync::SliceCosts;
using casync::Slices;

constexpr double kMostTasks = 8e6;  ///< largest graph to simulate
constexpr double kPicosecond_s = 1e-12;

std::int64_t divided_up(std::int64_t x, std::int64_t by) { return (x + by - 1) / by; }

const models::Gradient& largest(const models::Model& model) {
  return *std::ranges::max_element(model.gradients, {}, &models::Gradient::elements);
}

std::int64_t most_chunks(std::int64_t elements) {
  return std::min(divided_up(elements, casync::kSliceWord), plans::kMaxPartitions);
}

/// Candidates with one topology and one algorithm, one for each chunk count.
class Candidates {
 public:
  Candidates(const BroadcastProblem& problem, const std::string& topology,
             const std::string& algorithm)
      : problem_(problem),
        topology_(casync::find_topology(topology)),
        message_(problem.machines),
        wire_{.nodes = static_cast<double>(problem.machines.cluster.nodes),
              .latency = message_.latency(),
              .burst = message_.burst()} {
    choice_.topology = topology;
    choice_.algorithm = algorithm;
    const plans::PlanContext context = {
        .model = problem.model, .topology = topology, .nodes = problem.machines.cluster.nodes};
    plans::PlanBuilder builder(context);
    for (std::size_t g = 0; g < problem.model.gradients.size(); ++g) {
      builder.decide(g, algorithm.empty() ? casync::kRaw : builder.algorithm(algorithm), 1);
    }
    plan_ = builder.take().plan;
    sim::predict_sizes(problem.machines.profile, plan_.algorithms);
    plan_.root = problem.root;
    plan_.gpus_per_node = problem.machines.cluster.gpus_per_node;
    find_forms();
    for (const ChunkCount& count : counts()) {
      cut(count);
      candidates_.push_back({count, least(), estimate()});
    }
    std::ranges::stable_sort(candidates_, {}, &Candidate::estimate);
    choice_.counts = static_cast<std::int64_t>(candidates_.size());
    choice_.proven = true;
  }

  /// Estimated time of the most promising count, in seconds.
  double estimate_s() const { return candidates_.front().estimate * kPicosecond_s; }

  void try_first(std::int64_t& evaluations) { try_one(candidates_.front(), evaluations); }

  /// Simulates all other counts that may be faster than the best so far.
  void try_others(std::int64_t& evaluations) {
    for (const Candidate& candidate : std::span(candidates_).subspan(1)) {
      try_one(candidate, evaluations);
    }
  }

  double best_s() const { return best_s_.value_or(std::numeric_limits<double>::infinity()); }

  std::optional<BroadcastChoice> best() const {
    if (!best_s_) return std::nullopt;
    return choice_;
  }

  /// Plan with the chosen chunks.
  casync::Plan plan_of(const BroadcastChoice& choice) {
    cut({choice.chunks, choice.chunk_elements});
    return plan_;
  }

 private:
  /// A chunk count, with a lower bound and an estimate of its time, in ps.
  struct Candidate {
    ChunkCount count;
    double least = 0, estimate = 0;
  };

  void try_one(const Candidate& candidate, std::int64_t& evaluations) {
    const double least_s = candidate.least * kSlack * kPicosecond_s;
    if (best_s_ && least_s >= *best_s_) return;
    cut(candidate.count);
    const std::optional<double> seconds = simulated(evaluations);
    if (!seconds) choice_.proven = false;
    if (!seconds || (best_s_ && *seconds >= *best_s_)) return;
    best_s_ = choice_.seconds = *seconds;
    choice_.chunks = candidate.count.chunks;
    choice_.chunk_elements = candidate.count.elements;
  }

  /// Simulated time of the plan, in seconds; unset if there is no time or memory for it.
  std::optional<double> simulated(std::int64_t& evaluations) {
    const auto& budget = problem_.machines.budget;
    if (evaluations <= 0 || (budget && budget->over())) return std::nullopt;
    if (casync::whole_tasks(problem_.model, plan_) > kMostTasks) return std::nullopt;
    try {
      const double seconds = simulated_iteration_s(problem_.model, plan_, problem_.machines);
      --evaluations;
      ++choice_.simulations;
      return seconds;
    } catch (const sim::Stopped&) {
      return std::nullopt;
    }
  }

  std::vector<ChunkCount> counts() const {
    const std::int64_t elements = largest(problem_.model).elements;
    if (!problem_.chunks) return chunk_counts(elements);
    return {{*problem_.chunks, casync::slice(elements, *problem_.chunks, 0).elements}};
  }

  /// Looks up the costs of plan_'s algorithms, as lower bounds.
  void find_forms() {
    const costs::Cluster& cluster = problem_.machines.cluster;
    double fastest = 1;
    bool by_speed = false;
    for (const double speed : cluster.compute_speed) {
      fastest = std::max(fastest, speed);
      by_speed = by_speed || speed != 1;
    }
    for (const casync::Algorithm& algorithm : plan_.algorithms) {
      const costs::CodecCosts& codec = problem_.machines.profile.codec(algorithm.name);
      Form& form = forms_.emplace_back();
      form.algorithm = &algorithm;
      form.encode = LeastCost(codec.encode, cluster.gpus_per_node, fastest, by_speed);
      form.decode = LeastCost(codec.decode, cluster.gpus_per_node, fastest, by_speed);
    }
  }

  void cut(const ChunkCount& count) {
    for (std::size_t g = 0; g < problem_.model.gradients.size(); ++g) {
      const std::int64_t elements = problem_.model.gradients[g].elements;
      plan_.decisions[g].partitions = static_cast<std::int32_t>(
          std::min(divided_up(elements, count.elements), plans::kMaxPartitions));
    }
    // Keep the number that the user gave, even if some chunks are empty.
    if (problem_.model.gradients.size() == 1 && problem_.chunks) {
      plan_.decisions[0].partitions = *problem_.chunks;
    }
  }

  SliceCosts costs_of(std::size_t g, std::int64_t elements) const {
    const std::int8_t algorithm = plan_.decisions[g].algorithm;
    static const Form kRawForm{};
    const Form& form =
        algorithm == casync::kRaw ? kRawForm : forms_[static_cast<std::size_t>(algorithm)];
    const std::int64_t bytes = form.bytes(elements);
    return {.encode = form.encode.of(elements),
            .decode = form.decode.of(elements),
            .message = message_.time(bytes),
            .port = message_.work(bytes)};
  }

  Slices slices_of(std::size_t g) const {
    const std::int64_t elements = problem_.model.gradients[g].elements;
    const std::int64_t length = casync::slice(elements, plan_.decisions[g].partitions, 0).elements;
    Slices slices;
    slices.count = divided_up(elements, length);
    const std::int64_t rest = elements - (slices.count - 1) * length;
    slices.first = slices.first_load = costs_of(g, length);
    slices.last = slices.last_load = costs_of(g, rest);
    const auto before = static_cast<double>(slices.count - 1);
    slices.total = {.encode = before * slices.first.encode + slices.last.encode,
                    .decode = before * slices.first.decode + slices.last.decode,
                    .message = before * slices.first.message + slices.last.message,
                    .port = before * slices.first.port + slices.last.port};
    return slices;
  }

  double spread(const Slices& slices) const {
    return topology_.spread == nullptr ? 0 : std::max(0.0, topology_.spread(slices, wire_));
  }

  /// Lower bound of the broadcast, in ps: the time of the longest tensor, or of all the root's
  /// sends. A single tensor is also scattered among a node's GPUs before, and gathered afterwards.
  double least() const {
    double port = -wire_.burst, longest = 0;
    for (std::size_t g = 0; g < problem_.model.gradients.size(); ++g) {
      const Slices slices = slices_of(g);
      port += slices.total.port;
      longest = std::max(longest, spread(slices));
    }
    if (problem_.model.gradients.size() > 1) return std::max(port, longest);
    const std::int64_t bytes =
        problem_.model.gradients[0].elements * static_cast<std::int64_t>(sizeof(float));
    return longest + 2 * picoseconds(costs::local_s(problem_.machines.cluster, bytes));
  }

  /// Estimate in ps: the busiest stage processes all tensors, the other stages the largest.
  double estimate() const {
    double bottleneck = 0, longest = 0, beside = 0;
    for (std::size_t g = 0; g < problem_.model.gradients.size(); ++g) {
      const Slices slices = slices_of(g);
      const double own = std::max({slices.total.encode, slices.total.port, slices.total.decode});
      bottleneck += own;
      if (const double all = spread(slices); all > longest) {
        longest = all;
        beside = own;
      }
    }
    return std::max(least(), bottleneck + longest - beside);
  }

  const BroadcastProblem& problem_;
  const casync::Topology& topology_;
  const LeastMessage message_;
  const casync::Wire wire_;
  casync::Plan plan_;
  std::vector<Form> forms_;            ///< by place in plan_.algorithms, to which they point
  std::vector<Candidate> candidates_;  ///< the most promising first
  BroadcastChoice choice_;
  std::optional<double> best_s_;
};

void check(const BroadcastProblem& problem) {
  const std::uint32_t nodes = problem.machines.cluster.nodes;
  if (nodes < 2) {
    throw io::InputError("a broadcast needs at least two nodes: give `nnodes` 2 or more");
  }
  if (problem.root >= nodes) {
    throw io::InputError(
        fmt::format("`root` {} is not one of the {} nodes, which count from 0: give one from 0 to "
                    "{}, or more `nnodes`",
                    problem.root, nodes, nodes - 1));
  }
  const std::int64_t elements = largest(problem.model).elements;
  if (problem.chunks && *problem.chunks > most_chunks(elements)) {
    throw io::InputError(fmt::format(
        "`chunks` {}: a chunk has at least {} elements, so the largest tensor, of {} bytes, makes "
        "at most {}; give no more, or leave `chunks` out for the best count",
        *problem.chunks, casync::kSliceWord,
        elements * models::size_of(largest(problem.model).dtype), most_chunks(elements)));
  }
}

void require_slices(const std::vector<std::string>& algorithms) {
  for (const std::string& name : algorithms) {
    if (!kernels::make_codec(name)->traits().additive) continue;
    throw io::InputError(
        fmt::format("{} sends factors to be averaged, and a broadcast averages nothing: leave it "
                    "out of `algorithm`",
                    name));
  }
}

std::vector<std::string> topologies_of(const BroadcastProblem& problem) {
  if (!problem.topologies.empty()) return problem.topologies;
  std::vector<std::string> names;
  for (const casync::Topology* row : casync::topologies_for(casync::Operation::kBroadcast)) {
    names.emplace_back(row->name);
  }
  return names;
}

}  // namespace

std::vector<ChunkCount> chunk_counts(std::int64_t elements) {
  std::vector<ChunkCount> counts;
  const std::int64_t most = most_chunks(elements);
  for (std::int64_t chunks = 1; chunks <= most;) {
    const std::int64_t length = casync::slice(elements, chunks, 0).elements;
    counts.push_back({divided_up(elements, length), length});
    if (length <= casync::kSliceWord) break;
    const std::int64_t padded = divided_up(length, casync::kSliceWord) * casync::kSliceWord;
    chunks = std::max(chunks + 1, divided_up(elements, padded - casync::kSliceWord));
  }
  return counts;
}

std::vector<std::string> lossy_of(const std::vector<std::string>& names,
                                  const models::Model& model) {
  std::vector<std::string> lossy;
  for (const std::string& name : names) {
    const auto codec = kernels::make_codec(name);
    const bool keeps = std::ranges::all_of(model.gradients, [&](const models::Gradient& tensor) {
      return plans::keeps_every_bit(*codec, tensor.dtype);
    });
    if (!keeps) lossy.push_back(name);
  }
  return lossy;
}

std::vector<std::string> lossless_algorithms(const costs::Profile& profile,
                                             const models::Model& model) {
  std::vector<std::string> names;
  for (const auto& [name, costs] : profile.codecs) {
    if (kernels::program_file(name) || !kernels::names_algorithm(name)) continue;
    const bool is_cast = std::ranges::any_of(
        model.gradients,
        [&own = name](const models::Gradient& g) { return own == plans::cast_of(g.dtype); });
    if (!is_cast && lossy_of({name}, model).empty()) names.push_back(name);
  }
  return names;
}

BroadcastResult plan_broadcast(const BroadcastProblem& problem) {
  check(problem);
  require_slices(problem.algorithms);
  std::vector<std::string> algorithms = {""};
  algorithms.insert(algorithms.end(), problem.algorithms.begin(), problem.algorithms.end());
  std::vector<std::unique_ptr<Candidates>> all;
  for (const std::string& algorithm : algorithms) {
    for (const std::string& topology : topologies_of(problem)) {
      all.push_back(std::make_unique<Candidates>(problem, topology, algorithm));
    }
  }
  std::vector<std::size_t> order(all.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  std::ranges::stable_sort(order, {}, [&](std::size_t i) { return all[i]->estimate_s(); });

  // Try one count of each topology and algorithm first, to spend a limited budget on fast ones.
  std::int64_t evaluations = problem.evaluations;
  for (const std::size_t i : order) all[i]->try_first(evaluations);
  std::ranges::stable_sort(order, {}, [&](std::size_t i) { return all[i]->best_s(); });
  for (const std::size_t i : order) all[i]->try_others(evaluations);
  std::vector<std::optional<BroadcastChoice>> found;
  for (const auto& candidates : all) found.push_back(candidates->best());

  BroadcastResult result;
  for (std::size_t i = 0; i < all.size(); ++i) {
    result.proven = result.proven && found[i] && found[i]->proven;
    if (!found[i]) continue;
    result.choices.push_back(*found[i]);
    if (result.choices.size() > 1 && found[i]->seconds >= result.best.seconds) continue;
    result.best = *found[i];
    result.plan = all[i]->plan_of(*found[i]);
  }
  if (result.choices.empty()) {
    throw io::InputError(
        "no plan was simulated: give a larger `budget` or `evaluations`, fewer nodes, or `chunks`");
  }
  return result;
}

}  // namespace hipress::planner
