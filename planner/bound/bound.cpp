#include "planner/bound/bound.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <memory>

#include "casync/topology.hpp"
#include "io/error.hpp"
#include "planner/bound/costs.hpp"
#include "planner/bound/relaxation.hpp"
#include "planner/bound/visits.hpp"
#include "planner/bound/work_maker.hpp"

namespace hipress::planner {
namespace {

constexpr double kPrecision = 1e-4;  // relative precision of the bound
constexpr double kFirstStep = 1e-3;  // relative precision of the first step of the search
constexpr double kSafely = 1e-9;     // relative margin that covers rounding errors
constexpr double kSecondsPerPicosecond = 1e-12;
// Limits for VisitBound, which serves models with few gradients and few families.
constexpr std::size_t kMaxGradients = 24;
constexpr std::size_t kMaxFamilies = 32;
// Limit on the visits of all families together, per node of the branch and bound.
constexpr std::size_t kVisitsPerBranchNode = 400'000;
// Limit on gradients × nodes × plans, if each plan is simulated.
constexpr double kMaxSimulated = 4e6;
// Difference of visits' times, relative to the bound, below which they may be merged.
constexpr double kGrain = 2e-4;

/// Schemes with a common lower bound, which is that of `scheme`.
struct Family {
  Scheme scheme;
  std::vector<std::size_t> members = {};  ///< indices of the schemes
};

/// Strictest rule that allows every group that `a` or `b` allows.
casync::Aggregation weaker(const casync::Aggregation& a, const casync::Aggregation& b) {
  casync::Aggregation joined = {.threshold_bytes = std::max(a.threshold_bytes, b.threshold_bytes)};
  if (a.wait && b.wait) joined.wait = std::max(*a.wait, *b.wait);
  if (a.limit_bytes && b.limit_bytes) joined.limit_bytes = std::max(*a.limit_bytes, *b.limit_bytes);
  return joined;
}

/// Groups schemes by topology and bulk threshold. A family's rules allow all that its members' do.
std::vector<Family> families(const Choices& choices) {
  std::vector<Family> found;
  for (std::size_t i = 0; i < choices.schemes.size(); ++i) {
    const Scheme& scheme = choices.schemes[i];
    const auto same = std::find_if(found.begin(), found.end(), [&](const Family& family) {
      return family.scheme.topology == scheme.topology &&
             family.scheme.raw_topology == scheme.raw_topology &&
             family.scheme.bulk.threshold_bytes == scheme.bulk.threshold_bytes;
    });
    if (same == found.end()) {
      found.push_back({scheme, {i}});
      continue;
    }
    same->members.push_back(i);
    same->scheme.bulk = weaker(same->scheme.bulk, scheme.bulk);
    same->scheme.batch = weaker(same->scheme.batch, scheme.batch);
  }
  return found;
}

/// True if each scheme of a family has just one plan: all raw, by the library's all-reduce.
bool is_all_reduced(const Family& family, const Choices& choices) {
  const Scheme& scheme = family.scheme;
  const casync::Topology& topology =
      *casync::topologies_of(scheme.topology, scheme.raw_topology).raw;
  return topology.form == casync::Topology::Form::kWhole &&
         std::ranges::all_of(choices.gradients, [](const std::vector<casync::Decision>& options) {
           return std::ranges::all_of(options, [](const casync::Decision& decision) {
             return decision.algorithm == casync::kRaw;
           });
         });
}

/// Time in ps of the fastest plan if each scheme has only one; 0 if they take too long to simulate.
double fastest(const models::Model& model, const Machines& machines, const Choices& choices,
               const Family& family, const std::function<bool()>& stop) {
  const double tasks = static_cast<double>(model.gradients.size()) * machines.cluster.nodes *
                       static_cast<double>(family.members.size());
  if (tasks > kMaxSimulated) return 0;
  const Problem problem = {
      .model = model, .nodes = machines.cluster.nodes, .algorithms = {}, .machines = &machines};
  const std::vector<std::uint16_t> options(model.gradients.size(), 0);
  double least = kInfinity;
  for (const std::size_t scheme : family.members) {
    if (stop && stop()) return 0;
    const AffordableTime time =
        affordable_iteration(model, make_plan(problem, choices, scheme, options), machines,
                             choices.schemes[scheme].transfer_order);
    if (!time.iteration_s || !time.diagnostic.empty()) return 0;
    least = std::min(least, *time.iteration_s);
  }
  return least / kSecondsPerPicosecond;
}

/// Searches for the earliest end that cannot be refuted for every scheme.
class BoundSearch {
 public:
  BoundSearch(const models::Model& model, const Machines& machines, const Choices& choices,
              const BoundLimits& limits)
      : ready_(ready_times(model, machines.cluster)), limits_(limits) {
    for (const Family& family : families(choices)) {
      families_.push_back(family);
      relaxations_.push_back(std::make_unique<Relaxation>(
          ready_, machines, least_work(model, machines, choices, family.scheme, ready_)));
    }
    for (const Family& family : families_) {
      refuted_.push_back(is_all_reduced(family, choices)
                             ? fastest(model, machines, choices, family, limits.stop)
                             : 0);
    }
    const bool few = ready_.order.size() <= kMaxGradients && families_.size() <= kMaxFamilies;
    if (few && limits.branch_nodes > 0 && VisitBound::holds_for(machines)) {
      bound_by_visits(model, machines, choices);
    }
  }

  Bound take() {
    double low = std::max(earliest_end(), *std::min_element(refuted_.begin(), refuted_.end()));
    double high = limits_.known_s > 0 ? limits_.known_s / kSecondsPerPicosecond : kInfinity;
    low = std::min(low, high);
    double step = kFirstStep;
    while (low < high * (1 - kPrecision) && !(limits_.stop && limits_.stop())) {
      const double end =
          high < kInfinity && low * (1 + step) >= high ? low + (high - low) / 2 : low * (1 + step);
      if (refuted(end)) {
        low = end;
        step *= 4;
      } else {
        high = end;
      }
    }
    return {.seconds = std::max(0.0, low * (1 - kSafely) - 1) * kSecondsPerPicosecond,
            .options = rounded()};
  }

 private:
  /// Sets each family's bound to that of VisitBound, which is at most the known plan's time.
  void bound_by_visits(const models::Model& model, const Machines& machines,
                       const Choices& choices) {
    const double known = limits_.known_s > 0 ? limits_.known_s / kSecondsPerPicosecond : kInfinity;
    // Visits that one family does not use are left to the following ones.
    std::size_t left = kVisitsPerBranchNode * limits_.branch_nodes;
    for (std::size_t i = 0; i < families_.size(); ++i) {
      if (limits_.stop && limits_.stop()) return;
      if (refuted_[i] > 0) continue;
      const std::size_t most = left / (families_.size() - i);
      const bool grouped = families_[i].scheme.bulk.threshold_bytes > 0;
      VisitBound visits(model, machines, choices, families_[i].scheme, ready_,
                        relaxations_[i]->all_work(), kGrain * earliest_end());
      refuted_[i] = visits.least(known, grouped ? most / 4 : most);
      left -= std::min(left, visits.visits());
      if (refuted_[i] < known && grouped) {
        refuted_[i] = std::max(
            refuted_[i], least_of_rules(model, machines, choices, families_[i], known, most, left));
      }
    }
  }

  /// Finds the VisitBound of each bulk rule of a family, so that decisions determine the groups.
  /// Returns the lowest.
  double least_of_rules(const models::Model& model, const Machines& machines,
                        const Choices& choices, const Family& family, double known,
                        std::size_t most, std::size_t& left) {
    std::vector<Scheme> schemes;
    for (const std::size_t member : family.members) {
      const casync::Aggregation& bulk = choices.schemes[member].bulk;
      if (std::ranges::any_of(schemes, [&](const Scheme& one) { return one.bulk == bulk; }))
        continue;
      schemes.push_back(family.scheme);
      schemes.back().bulk = bulk;
    }
    double least = kInfinity;
    for (std::size_t i = 0; i < schemes.size(); ++i) {
      const Scheme& scheme = schemes[i];
      if (limits_.stop && limits_.stop()) return 0;
      const std::vector<std::vector<OptionWork>> work =
          least_work(model, machines, choices, scheme, ready_);
      VisitBound visits(model, machines, choices, scheme, ready_, work, kGrain * earliest_end(),
                        VisitBound::Groups::kByRule);
      // The smallest bound counts, so no rule needs a bound above that of the previous rules.
      least = std::min(least, visits.least(std::min(known, least), most / (schemes.size() - i)));
      most -= std::min(most, visits.visits());
      left -= std::min(left, visits.visits());
    }
    return least;
  }

  /// Lower bound: the latest end of computation or of a gradient alone, in the best scheme.
  double earliest_end() const {
    double least = kInfinity;
    for (const auto& relaxation : relaxations_) {
      double end = *std::max_element(ready_.compute_end.begin(), ready_.compute_end.end());
      for (std::size_t place = 0; place < relaxation->places(); ++place) {
        double own = kInfinity;
        for (const OptionWork& work : relaxation->work(place)) own = std::min(own, work.end);
        end = std::max(end, own);
      }
      least = std::min(least, end);
    }
    return least;
  }

  /// True if every scheme is refuted. Begins with the scheme that was not refuted in the last call.
  bool refuted(double end) {
    for (std::size_t i = 0; i < relaxations_.size(); ++i) {
      const std::size_t which = (easiest_ + i) % relaxations_.size();
      if (refuted_[which] > end) continue;
      Relaxation& relaxation = *relaxations_[which];
      std::size_t nodes = limits_.branch_nodes;
      Relaxation::Verdict verdict = relaxation.test(end, relaxation.all());
      if (verdict.refuted || (nodes > 0 && refuted_by_branches(relaxation, end, relaxation.all(),
                                                               verdict.mixture, nodes))) {
        continue;
      }
      easiest_ = which;
      suggestion_ = std::move(verdict.mixture);
      return false;
    }
    return true;
  }

  /// Chooses the gradient in whose mixture the options differ most in port work.
  static bool choose(const Relaxation& relaxation, const Mixture& mixture, std::size_t& place,
                     double& middle) {
    double most = 0;
    for (std::size_t i = 0; i < mixture.gradients.size(); ++i) {
      double mean = 0, spread = 0;
      const auto port = [&](const Mixture::Share& share) {
        return relaxation.work(i)[share.option].port.average;
      };
      for (const Mixture::Share& share : mixture.gradients[i]) mean += share.weight * port(share);
      for (const Mixture::Share& share : mixture.gradients[i]) {
        spread += share.weight * std::abs(port(share) - mean);
      }
      if (spread <= most) continue;
      most = spread;
      place = i;
      middle = mean;
    }
    return most > 0;
  }

  bool refuted_by_branches(Relaxation& relaxation, double end, const Allowed& allowed,
                           const Mixture& mixture, std::size_t& nodes) {
    std::size_t place = 0;
    double middle = 0;
    if (!choose(relaxation, mixture, place, middle)) return false;
    for (const bool upper : {false, true}) {
      Allowed part = allowed;
      std::erase_if(part[place], [&](std::uint16_t option) {
        return (relaxation.work(place)[option].port.average > middle) != upper;
      });
      if (part[place].empty()) continue;
      if (nodes == 0) return false;
      --nodes;
      const Relaxation::Verdict verdict = relaxation.test(end, part);
      if (verdict.refuted) continue;
      if (!refuted_by_branches(relaxation, end, part, verdict.mixture, nodes)) return false;
    }
    return true;
  }

  std::vector<std::uint16_t> rounded() const {
    const Relaxation& relaxation = *relaxations_[easiest_];
    std::vector<std::uint16_t> options(ready_.order.size(), 0);
    for (std::size_t place = 0; place < suggestion_.gradients.size(); ++place) {
      double most = 0;
      for (const Mixture::Share& share : suggestion_.gradients[place]) {
        if (share.weight <= most) continue;
        most = share.weight;
        options[ready_.order[place]] = relaxation.work(place)[share.option].option;
      }
    }
    return options;
  }

  const ReadyTimes ready_;
  const BoundLimits limits_;
  std::vector<Family> families_;
  std::vector<std::unique_ptr<Relaxation>> relaxations_;
  std::vector<double> refuted_;  ///< lower bound per family, in ps
  std::size_t easiest_ = 0;
  Mixture suggestion_;
};

}  // namespace

const casync::Topology* topology_without_bound(const Choices& choices) {
  for (const Scheme& scheme : choices.schemes) {
    const casync::TopologyPair pair = casync::topologies_of(scheme.topology, scheme.raw_topology);
    for (const casync::Topology* topology : {pair.encoded, pair.raw}) {
      if (!topology->has_bound()) return topology;
    }
  }
  return nullptr;
}

Bound lower_bound(const models::Model& model, const Machines& machines, const Choices& choices,
                  const BoundLimits& limits) {
  if (const casync::Topology* const unknown = topology_without_bound(choices)) {
    throw io::InputError(
        fmt::format("topology {} has no lower bound, so its plans have none", unknown->name));
  }
  return BoundSearch(model, machines, choices, limits).take();
}

}  // namespace hipress::planner
