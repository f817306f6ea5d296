#include "planner/search/timeline_search.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <stdexcept>

#include "planner/problem/budget.hpp"
#include "planner/search/moves.hpp"
#include "planner/search/starts.hpp"
#include "planner/timing/evaluation.hpp"
#include "sim/parallel.hpp"

namespace hipress::planner {
namespace {

// Shares of the budget at which phases end. After kSearchShare, the best plans are simulated on the
// requested network. If that network is not `port`, kOwnSearchShare replaces kSearchShare.
constexpr double kGreedyShare = 0.15;
constexpr double kStartShare = 0.4;
constexpr double kSearchShare = 0.9;
constexpr double kOwnSearchShare = 0.75;

// Candidates that are simulated together. Constant, so that the plan does not depend on the jobs.
constexpr std::size_t kBatch = 8;
// Rounds of local search that begin with a start, not with a kick.
constexpr std::size_t kFirstStarts = 4;
constexpr std::size_t kVerifiedStarts = 12;
// Seconds per task on network port, until a simulation was timed.
constexpr double kExactTask_s = 4e-7;
// Seconds per task on the requested network, until a simulation was timed there.
constexpr double kFirstTask_s = 1e-6;
constexpr std::size_t kFinalists = 4;
// Local search uses exact simulations if the budget allows at least this many.
constexpr double kMinExactRuns = 150;
// With a budget in evaluations: local search uses exact simulations of up to this many steps.
constexpr std::size_t kMaxExactSteps = 50000;
// A candidate is simulated exactly if its coarse time is at most this times the incumbent's.
constexpr double kWorthLooking = 1.03;
// Largest ratio of exact to coarse steps for exact simulations without a coarse filter.
constexpr std::size_t kLookDirectly = 4;
// Largest relative increase from one local optimum to the next, at the beginning of the search.
constexpr double kWarmth = 0.02;

/// Detail of simulations: from coarse patterns, or exact.
enum class Detail : std::uint8_t { kCoarse, kExact };

/// Starting point of the local search.
struct Incumbent {
  Candidate candidate;
  std::int64_t time = kNever;  ///< time at the incumbent's detail
  /// Coarse time of the same candidate, if `time` is exact.
  std::int64_t coarse_time = kNever;
  Recording recording;
};

class TimelineSearch {
 public:
  TimelineSearch(const Problem& problem, const Choices& choices)
      : problem_(problem),
        budget_(problem.limits),
        choices_(choices),
        evaluator_(problem, choices_),
        neighbourhoods_(problem, choices_),
        draws_(problem.limits.seed),
        search_share_(problem.machines->network == sim::Network::kPort ? kSearchShare
                                                                       : kOwnSearchShare),
        timelines_(std::max(1u, problem.limits.jobs),
                   PatternSimulator([this] { return stops(); })) {
    evaluator_.set_stop([this] { return stops(); });
  }
  TimelineSearch(const TimelineSearch&) = delete;
  TimelineSearch& operator=(const TimelineSearch&) = delete;

  SearchResult run() {
    try {
      begin();
      begun_ = true;
      if (!problem_.model.gradients.empty() && problem_.nodes > 1) iterate();
    } catch (const sim::Stopped&) {
      // The best candidates until then are the result.
    }
    return finish();
  }

 private:
  struct Found {
    Candidate candidate;
    std::int64_t time;  ///< exact if the candidate can_be_exact(), otherwise as on the requested
                        ///< network or coarse
  };

  /// True if a running simulation must be aborted; never in the first start, which gives a plan.
  bool stops() const {
    constexpr double kLate = 1.25;  // an exact simulation may take longer than expected
    if (starts_.empty()) return false;
    return budget_.interrupted() ||
           (begun_ && !budget_.in_evaluations() && budget_.share() > kLate);
  }

  // ---- simulating ----

  PatternGraph schedule(Detail detail, const Candidate& candidate) {
    return detail == Detail::kCoarse ? evaluator_.coarse(candidate) : evaluator_.exact(candidate);
  }

  /// Times of the candidates in ps; kNever if above `limit`.
  std::vector<std::int64_t> times(Detail detail, const std::vector<Candidate>& candidates,
                                  std::int64_t limit, const Recording* base) {
    std::vector<PatternGraph> schedules;
    for (const Candidate& candidate : candidates) schedules.push_back(schedule(detail, candidate));
    std::vector<std::int64_t> result(candidates.size());
    sim::run_parallel(candidates.size(), problem_.limits.jobs, [&](std::size_t i, unsigned job) {
      result[i] = timelines_[job].run(schedules[i], limit, base);
    });
    budget_.count(static_cast<std::int64_t>(candidates.size()));
    return result;
  }

  Incumbent make_incumbent(Detail detail, const Candidate& candidate) {
    Incumbent incumbent;
    incumbent.candidate = candidate;
    incumbent.recording = timelines_[0].record(schedule(detail, candidate));
    incumbent.time = incumbent.recording.iteration;
    incumbent.coarse_time = detail == Detail::kCoarse
                                ? incumbent.time
                                : timelines_[0].run(evaluator_.coarse(candidate));
    return incumbent;
  }

  /// Simulates a candidate as exactly as possible. Keeps it if it is among the best.
  std::int64_t verify(const Candidate& candidate) {
    for (const Found& known : pool_) {
      if (known.candidate == candidate) return known.time;
    }
    std::int64_t time = 0;
    if (evaluator_.can_be_exact(candidate)) {
      const double before_s = budget_.elapsed_s();
      time = timelines_[0].run(evaluator_.exact(candidate));
      exact_s_ = budget_.elapsed_s() - before_s;
      evaluator_.trim();
    } else {
      time = asked_for(candidate);
      remember(candidate, time);
      return time;
    }
    budget_.count(1);
    remember(candidate, time);
    return time;
  }

  void remember(const Candidate& candidate, std::int64_t time) {
    const auto same = [&](const Found& known) { return known.candidate == candidate; };
    if (std::any_of(pool_.begin(), pool_.end(), same)) return;
    const auto place = std::find_if(pool_.begin(), pool_.end(),
                                    [&](const Found& known) { return time < known.time; });
    const bool best = place == pool_.begin();
    pool_.insert(place, {candidate, time});
    if (pool_.size() > kFinalists) pool_.pop_back();
    if (best) report();
  }

  /// The candidate's iteration time on the requested network, in ps; kNever if its graph is too
  /// large to simulate, or the budget leaves too little time.
  std::int64_t asked_for(const Candidate& candidate) {
    const casync::Plan plan = make_plan(problem_, choices_, candidate.scheme, candidate.options);
    const double tasks = simulated_tasks(problem_.model, plan, *problem_.machines);
    const double before_s = budget_.elapsed_s();
    const AffordableTime time =
        affordable_iteration(problem_.model, plan, *problem_.machines,
                             choices_.schemes[candidate.scheme].transfer_order);
    if (tasks > 0 && time.iteration_s) task_s_ = (budget_.elapsed_s() - before_s) / tasks;
    budget_.count(1);
    return time.iteration_s ? casync::from_seconds(*time.iteration_s).count() : kNever;
  }

  /// True if the budget allows a simulation of the candidate that takes `task_s` per task.
  bool affords(const Candidate& candidate, double task_s) const {
    const casync::Plan plan = make_plan(problem_, choices_, candidate.scheme, candidate.options);
    const double tasks = simulated_tasks(problem_.model, plan, *problem_.machines);
    return !budget_.interrupted() && budget_.affords(task_s * tasks, 1) >= 1;
  }

  void report() {
    if (!problem_.limits.progress) return;
    const std::int64_t best = pool_.empty() ? coarse_best_.time : pool_.front().time;
    problem_.limits.progress(std::min(1.0, budget_.share()),
                             casync::to_seconds(casync::Picoseconds(best)));
  }

  // ---- searching ----

  /// Simulates the starts of every topology. The first start is simulated whatever the budget.
  void begin() {
    const std::function<bool()> stop = [&] { return budget_.over(kGreedyShare); };
    std::int64_t evaluations = 0;
    for (const std::uint32_t scheme : neighbourhoods_.schemes()) {
      if (choices_.schemes[scheme].bulk.threshold_bytes > 0) continue;
      const std::size_t first = starts_.size();
      const StartContext context = {problem_, choices_, neighbourhoods_, evaluator_,
                                    scheme,   stop,     evaluations};
      for (const Start& start : starts()) {
        if (!starts_.empty() && budget_.over(kStartShare)) return;
        std::vector<Candidate> candidates = start.make(context);
        budget_.count(std::exchange(evaluations, 0));
        if (start.for_any_network)
          std::ranges::copy(candidates, std::back_inserter(for_any_network_));
        const bool is_first = starts_.size() == first;
        add_starts(std::move(candidates));
        if (is_first) group_starts(first);
      }
    }
  }

  void add_starts(std::vector<Candidate> candidates) {
    const std::vector<std::int64_t> found = times(Detail::kCoarse, candidates, kNever, nullptr);
    for (std::size_t i = 0; i < candidates.size(); ++i) {
      starts_.push_back({std::move(candidates[i]), found[i]});
    }
  }

  std::size_t best_start(std::size_t first) const {
    const auto best =
        std::min_element(starts_.begin() + static_cast<std::ptrdiff_t>(first), starts_.end(),
                         [](const Found& a, const Found& b) { return a.time < b.time; });
    return static_cast<std::size_t>(best - starts_.begin());
  }

  /// Combines the best of the starts from index `first` on with every bulk rule, then all of them
  /// with the best rule. With high fixed costs of messages, the rule matters more than the options.
  void group_starts(std::size_t first) {
    const std::size_t last = starts_.size();
    const Candidate best = starts_[best_start(first)].candidate;
    std::vector<Candidate> grouped;
    for (const std::uint32_t scheme : neighbourhoods_.schemes()) {
      Scheme plain = choices_.schemes[scheme];
      plain.bulk = {};
      if (scheme != best.scheme && plain == choices_.schemes[best.scheme]) {
        grouped.push_back({scheme, best.options});
      }
    }
    if (grouped.empty()) return;
    add_starts(std::move(grouped));
    const std::uint32_t scheme = starts_[best_start(first)].candidate.scheme;
    if (scheme == best.scheme) return;
    std::vector<Candidate> others;
    for (std::size_t i = first; i < last; ++i) {
      others.push_back({scheme, starts_[i].candidate.options});
    }
    add_starts(std::move(others));
  }

  void iterate() {
    std::stable_sort(starts_.begin(), starts_.end(),
                     [](const Found& a, const Found& b) { return a.time < b.time; });
    const auto same = [](const Found& a, const Found& b) { return a.time == b.time; };
    starts_.erase(std::unique(starts_.begin(), starts_.end(), same), starts_.end());
    if (!affords(starts_.front().candidate, kExactTask_s)) return;
    verify(starts_.front().candidate);
    for (std::size_t i = 1; i < std::min(kVerifiedStarts, starts_.size()); ++i) {
      if (budget_.over(kStartShare) || !affords_exact(starts_[i].candidate)) break;
      verify(starts_[i].candidate);
    }
    Candidate current = pool_.front().candidate;
    std::int64_t current_time = kNever;
    for (std::size_t round = 0; !budget_.over(search_share_); ++round) {
      const bool first = round < std::min(kFirstStarts, starts_.size());
      Candidate from =
          first ? starts_[round].candidate : apply(neighbourhoods_.kick(current, draws_), current);
      // Coarse times are too short if nodes differ. In every second round, all nodes do equal work.
      const bool rotate = round % 2 == 1;
      if (rotate) from = rotating(std::move(from));
      const std::int64_t used = budget_.used();
      const Found found = search_from(from, rotate);
      if (budget_.used() == used) budget_.count(1);  // there was no move to evaluate
      const double warmth = kWarmth * std::max(0.0, 1 - budget_.share());
      const auto limit =
          current_time == kNever
              ? kNever
              : static_cast<std::int64_t>(static_cast<double>(current_time) * (1 + warmth));
      if (found.time <= limit) {
        current = found.candidate;
        current_time = found.time;
      }
      if (round + 1 == kFirstStarts && !pool_.empty()) current = pool_.front().candidate;
      report();
    }
  }

  /// Returns a local optimum near a candidate, by exact simulations if the budget allows them.
  Found search_from(const Candidate& from, bool rotate) {
    Incumbent coarse = make_incumbent(Detail::kCoarse, from);
    foldable_only_ = rotate;
    halve_the_rest();
    improve(Detail::kCoarse, coarse);
    foldable_only_ = false;
    if (coarse.time < coarse_best_.time) coarse_best_ = {coarse.candidate, coarse.time};
    const std::int64_t time = verify(coarse.candidate);
    if (!affords_exact(coarse.candidate) || budget_.over(search_share_)) {
      return {coarse.candidate, time};
    }
    const bool back = !(from == coarse.candidate) && verify(from) < time;
    halve_the_rest();
    Incumbent exact = make_incumbent(Detail::kExact, back ? from : coarse.candidate);
    improve(Detail::kExact, exact);
    remember(exact.candidate, exact.time);
    return {exact.candidate, exact.time};
  }

  /// Limits local search to half of the remaining budget, so that there is time for other starts.
  void halve_the_rest() { improve_share_ = (budget_.share() + search_share_) / 2; }

  bool rotates(const casync::Decision& decision) const {
    return decision.partitions % static_cast<std::int64_t>(problem_.nodes) == 0;
  }

  /// True if the nodes' work stays equal under all options of the move.
  bool rotates(const Move& move) const {
    return std::all_of(move.changes.begin(), move.changes.end(), [&](const Move::Change& change) {
      return rotates(choices_.gradients[change.gradient][change.option]);
    });
  }

  /// Replaces options, if possible, by ones with the same algorithm and a multiple of N as K.
  Candidate rotating(Candidate candidate) const {
    for (std::size_t g = 0; g < candidate.options.size(); ++g) {
      const std::vector<casync::Decision>& options = choices_.gradients[g];
      const casync::Decision& now = options[candidate.options[g]];
      if (rotates(now)) continue;
      const auto found =
          std::find_if(options.begin(), options.end(), [&](const casync::Decision& option) {
            return option.algorithm == now.algorithm && rotates(option);
          });
      if (found != options.end()) {
        candidate.options[g] = static_cast<std::uint16_t>(found - options.begin());
      }
    }
    return candidate;
  }

  /// True if the budget allows a local search with exact simulations.
  bool affords_exact(const Candidate& candidate) {
    if (!evaluator_.can_be_exact(candidate)) return false;
    if (!budget_.in_evaluations()) {
      return budget_.affords(exact_s_, search_share_) >= kMinExactRuns;
    }
    return steps_of(evaluator_.exact(candidate)) <= kMaxExactSteps;
  }

  static std::size_t steps_of(const PatternGraph& schedule) {
    std::size_t steps = 0;
    for (const PlacedUnit& unit : schedule.units) steps += unit.pattern->count();
    return steps;
  }

  /// Applies moves until no neighbourhood has an improvement, or the budget's share is used.
  void improve(Detail detail, Incumbent& incumbent) {
    const auto rows = Neighbourhoods::rows();
    std::size_t in_vain = 0;
    for (std::size_t row = 0; in_vain < rows.size(); row = (row + 1) % rows.size()) {
      if (detail == Detail::kExact) refresh(incumbent);
      const std::vector<Move> moves =
          (neighbourhoods_.*rows[row].moves)(incumbent.candidate, draws_);
      in_vain = improve_by(detail, moves, incumbent) ? 0 : in_vain + 1;
      if (budget_.over(improve_share_)) return;
    }
  }

  /// Trims exact patterns, which may take much memory, and then records the incumbent again.
  void refresh(Incumbent& incumbent) {
    evaluator_.trim();
    incumbent.recording = timelines_[0].record(evaluator_.exact(incumbent.candidate));
  }

  bool improve_by(Detail detail, const std::vector<Move>& moves, Incumbent& incumbent) {
    bool improved = false;
    for (std::size_t first = 0; first < moves.size(); first += kBatch) {
      if (budget_.over(improve_share_)) break;
      std::vector<Candidate> candidates;
      for (std::size_t i = first; i < std::min(first + kBatch, moves.size()); ++i) {
        Candidate changed = apply(moves[i], incumbent.candidate);
        if (foldable_only_ && !rotates(moves[i])) continue;
        if (!(changed == incumbent.candidate)) candidates.push_back(std::move(changed));
      }
      if (detail == Detail::kExact) candidates = worth_looking(std::move(candidates), incumbent);
      const std::vector<std::int64_t> found =
          times(detail, candidates, incumbent.time - 1, &incumbent.recording);
      const auto best = std::min_element(found.begin(), found.end());
      if (best == found.end() || *best == kNever) continue;
      incumbent =
          make_incumbent(detail, candidates[static_cast<std::size_t>(best - found.begin())]);
      improved = true;
    }
    return improved;
  }

  /// Returns the candidates worth an exact simulation: those that can_be_exact(), and whose coarse
  /// time is at most kWorthLooking times the incumbent's. There is no coarse filter if the
  /// incumbent's exact graph has at most kLookDirectly times as many steps as its coarse one.
  std::vector<Candidate> worth_looking(std::vector<Candidate> candidates,
                                       const Incumbent& incumbent) {
    std::erase_if(candidates,
                  [&](const Candidate& candidate) { return !evaluator_.can_be_exact(candidate); });
    if (candidates.empty()) return candidates;
    const std::size_t coarse_steps = steps_of(evaluator_.coarse(incumbent.candidate));
    if (steps_of(incumbent.recording.graph) <= kLookDirectly * coarse_steps) return candidates;
    const auto limit =
        static_cast<std::int64_t>(static_cast<double>(incumbent.coarse_time) * kWorthLooking);
    const std::vector<std::int64_t> coarse = times(Detail::kCoarse, candidates, limit, nullptr);
    std::vector<Candidate> kept;
    for (std::size_t i = 0; i < candidates.size(); ++i) {
      if (coarse[i] != kNever) kept.push_back(std::move(candidates[i]));
    }
    return kept;
  }

  // ---- finishing ----

  /// Simulates the best candidates on the requested network, also with batches, and returns the
  /// fastest. Without time in the budget, returns the best so far.
  SearchResult finish() {
    if (pool_.empty()) {
      const auto best =
          std::min_element(starts_.begin(), starts_.end(),
                           [](const Found& a, const Found& b) { return a.time < b.time; });
      pool_.push_back(*best);
    }
    const Found& front = pool_.front();
    Candidate best = front.candidate;
    std::int64_t best_time = kNever;
    std::vector<Candidate> finalists;
    if (problem_.machines->network == sim::Network::kPort && evaluator_.can_be_exact(best)) {
      best_time = front.time;  // already on the requested network
    } else {
      for (const Found& found : pool_) finalists.push_back(found.candidate);
      for (std::size_t i = 0; i < std::min(kFirstStarts, starts_.size()); ++i) {
        finalists.push_back(starts_[i].candidate);
      }
      std::ranges::copy(for_any_network_, std::back_inserter(finalists));
      if (coarse_best_.time != kNever) finalists.push_back(coarse_best_.candidate);
    }
    for (const std::uint32_t scheme : with_batches(best.scheme)) {
      finalists.push_back({scheme, front.candidate.options});
    }
    if (finalists.size() == 1 && best_time == kNever)
      finalists.clear();  // with a single finalist there is nothing to compare
    for (const Candidate& finalist : finalists) {
      if (!affords(finalist, task_s_)) continue;
      const std::int64_t time = asked_for(finalist);
      if (time >= best_time) continue;
      best_time = time;
      best = finalist;
    }
    if (problem_.machines->network != sim::Network::kPort && best_time != kNever) {
      try {
        descend_on_network(best, best_time);
      } catch (const sim::Stopped&) {
        // Keep the best so far.
      }
    }
    SearchResult result = {.plan = make_plan(problem_, choices_, best.scheme, best.options),
                           .diagnostics = {},
                           .evaluations = budget_.used(),
                           .transfer_order = choices_.schemes[best.scheme].transfer_order};
    result.complete = !budget_.interrupted();
    for (const Found& found : pool_) {
      const Candidate& other = found.candidate;
      if (other == best) continue;
      result.finalists.push_back({make_plan(problem_, choices_, other.scheme, other.options),
                                  choices_.schemes[other.scheme].transfer_order});
    }
    return result;
  }

  /// Applies moves that are faster on the requested network, until the budget is used up. The best
  /// plan for one message at a time per port may not be the best for flows that share links.
  void descend_on_network(Candidate& best, std::int64_t& best_time) {
    const auto rows = Neighbourhoods::rows();
    std::size_t in_vain = 0;
    std::int64_t coarse_limit = worth_looking(best);
    for (std::size_t row = 0; in_vain < rows.size(); row = (row + 1) % rows.size()) {
      const std::int64_t before = best_time;
      for (const Move& move : (neighbourhoods_.*rows[row].moves)(best, draws_)) {
        if (budget_.over()) return;
        const Candidate candidate = apply(move, best);
        if (candidate == best) continue;
        budget_.count(1);
        if (timelines_[0].run(evaluator_.coarse(candidate), coarse_limit) == kNever) continue;
        if (!affords(candidate, task_s_)) continue;
        const std::int64_t time = asked_for(candidate);
        if (time >= best_time) continue;
        best_time = time;
        best = candidate;
        coarse_limit = worth_looking(best);
      }
      in_vain = best_time < before ? 0 : in_vain + 1;
    }
  }

  /// Coarse time up to which neighbours of this candidate are simulated on the requested network.
  std::int64_t worth_looking(const Candidate& best) {
    return static_cast<std::int64_t>(
        static_cast<double>(timelines_[0].run(evaluator_.coarse(best))) * kWorthLooking);
  }

  /// Schemes that differ from this one only in their batches.
  std::vector<std::uint32_t> with_batches(std::uint32_t like) const {
    std::vector<std::uint32_t> schemes;
    for (std::uint32_t i = 0; i < choices_.schemes.size(); ++i) {
      Scheme scheme = choices_.schemes[i];
      if (scheme.batch.threshold_bytes == 0) continue;
      scheme.batch = {};
      if (scheme == choices_.schemes[like]) schemes.push_back(i);
    }
    return schemes;
  }

  const Problem& problem_;
  Budget budget_;
  const Choices& choices_;
  Evaluator evaluator_;
  const Neighbourhoods neighbourhoods_;
  Neighbourhoods::Draws draws_;
  // Share of the budget at which the search on network port ends.
  const double search_share_;
  std::vector<PatternSimulator> timelines_;  // one per job
  std::vector<Found> starts_;
  std::vector<Found> pool_;  // the best first
  std::vector<Candidate> for_any_network_;
  double exact_s_ = 0;  // duration of the last exact simulation
  // Seconds per task in the last simulation on the requested network.
  double task_s_ = kFirstTask_s;
  Found coarse_best_ = {{}, kNever};  // best result of coarse local search
  double improve_share_ = kSearchShare;
  bool begun_ = false;  // all starts were simulated
  // True: skips moves after which nodes would do different work.
  bool foldable_only_ = false;
};

}  // namespace

SearchResult search_timeline(const Problem& problem) {
  return search_timeline(problem, make_choices(problem));
}

SearchResult search_timeline(const Problem& problem, const Choices& choices) {
  if (!problem.machines) {
    throw std::invalid_argument("search timeline simulates: it needs a profile and a cluster");
  }
  return TimelineSearch(problem, choices).run();
}

}  // namespace hipress::planner
