#include "planner/advice/break_even_point.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <cmath>
#include <utility>

#include "costs/description.hpp"
#include "io/error.hpp"
#include "io/quantity.hpp"
#include "io/suggestion.hpp"
#include "io/yaml.hpp"
#include "planner/advice/comparison.hpp"

namespace hipress::planner {
namespace {

constexpr double kWidest = 64;      // the range is from 1/64 to 64 times the given value
constexpr double kManyNodes = 512;  // upper end of the range for numbers of nodes
constexpr double kWider = 4;        // factor by which a range without a turn grows
// If the advice for a value takes longer, the range grows no further.
constexpr double kSlow_s = 5;
constexpr double kNear = 1.011;        // final ratio of two values in the bisection for a turn
constexpr double kNearEnough = 1.045;  // the same in the bisection for the end of a sure answer
// Largest factor from the request's value at which known plans are compared.
constexpr double kKnownReach = 2;
constexpr double kNearOfKnown = 1.1;  // the same in both bisections, if known plans are compared

std::string seconds_text(double value) { return fmt::format("{:.12g}s", value); }

std::string bandwidth_text(double value) {
  constexpr double kTerabit = 1e12 / 8;
  return value >= kTerabit ? fmt::format("{:.4g} Tbit/s", value / kTerabit)
                           : costs::describe_bandwidth(value);
}

double compute_s(const models::Model& model) {
  return models::before_backward_s(model) + models::backward_s(model);
}

constexpr std::array kRows = {
    QuantityRow{
        "bandwidth",
        "bandwidth",
        "B/s",
        false,
        {io::kMinBandwidth, io::kMaxBandwidth},
        {1e6 / 8, 1e14 / 8},
        [](const PreparedRequest& prepared) { return prepared.machines->cluster.link.bandwidth; },
        [](double value, Request& request) {
          request.machines.bandwidth = fmt::format("{:.12g}B/s", value);
        },
        bandwidth_text},
    QuantityRow{
        "latency",
        "latency",
        "s",
        false,
        {1e-9, 10},
        {1e-8, 1},
        [](const PreparedRequest& prepared) { return prepared.machines->cluster.link.latency_s; },
        [](double value, Request& request) { request.machines.latency = seconds_text(value); },
        [](double value) { return io::format_duration(value); }},
    QuantityRow{
        "nodes",
        "number of nodes",
        "nodes",
        true,
        {2, 8192},
        {2, 2048},
        [](const PreparedRequest& prepared) { return static_cast<double>(prepared.given_nodes); },
        [](double value, Request& request) {
          request.nodes = static_cast<std::uint32_t>(value);
          request.machines.node_count = costs::NodeCount::kAsAsked;
        },
        [](double value) { return fmt::format("{:.0f} nodes", value); }},
    QuantityRow{"compute-time",
                "compute time",
                "s",
                false,
                {1e-6, 1e4},
                {1e-5, 1e3},
                [](const PreparedRequest& prepared) { return compute_s(prepared.model); },
                [](double value, Request& request) {
                  request.times.compute_time = seconds_text(value);
                  request.times.forward.clear();
                },
                [](double value) { return io::format_duration(value); }},
};

/// Saving of the fastest plan with compression over the fastest without, whatever was advised.
Elsewhere elsewhere_of(const PreparedRequest& prepared, const Advice& advice, double value) {
  const Comparison comparison = by_progress(*advice.problem, advice.found.plan, advice.comparison);
  Elsewhere made{.value = value, .answer = advice.verdict.answer};
  std::optional<Contender> compressed = comparison.compressed;
  const auto& other = comparison.elsewhere;
  if (other && (!compressed || other->plan.iteration_s < compressed->plan.iteration_s)) {
    compressed = other;
  }
  const std::optional<Contender>& raw = comparison.uncompressed;
  if (compressed) made.compressed_s = compressed->plan.iteration_s;
  if (raw) made.uncompressed_s = raw->plan.iteration_s;
  if (!compressed || !raw) return made;
  if (compressed->response && raw->response) {
    made.saving = sim::saving(*compressed->response, *raw->response, comparison.spread,
                              prepared.problem.tolerance);
  } else {
    const double saved = 1 - *made.compressed_s / *made.uncompressed_s;
    made.saving = {saved, saved, saved, saved > prepared.problem.tolerance ? 1.0 : 0.0};
  }
  return made;
}

/// Advice that takes its plan from `known`, with the costs of `prepared`.
Advice advise_among(const Comparison& known, const PreparedRequest& prepared) {
  Advice advice;
  advice.problem = &prepared.problem;
  TimedPlan planned;
  advice.comparison = compare_again(prepared.problem, known, planned);
  advice.found.plan = std::move(planned.plan);
  advice.verdict = judge(prepared.problem, advice.found.plan, advice.comparison);
  weaken(models::missing_times(prepared.model), advice.verdict, advice.comparison);
  return advice;
}

Request request_for(const PreparedRequest& prepared, std::int64_t evaluations) {
  Request request = prepared.request;
  request.analysis = {};
  request.search = prepared.search.optimises ? std::string(prepared.search.name) : "timeline";
  request.budget_s = std::nullopt;
  request.evaluations = evaluations;
  request.write = "advised";
  return request;
}

/// Saving beyond the tolerance: above 0 if compression saves more than that.
double margin(const Elsewhere& at, double tolerance) { return at.saving->median - tolerance; }

double middle(const QuantityRow& quantity, double low, double high) {
  const double between = std::sqrt(low * high);
  return quantity.whole ? std::round(between) : between;
}

/// Bisects the range from `low` to `high`. Returns two values between which side() changes, the
/// lower one on the side of `low`. Ends if their ratio is at most `near`, or if the value between
/// them cannot be compared.
std::pair<double, double> bisect(WhatIf& what_if, const QuantityRow& quantity, double low,
                                 double high, double near,
                                 const std::function<bool(const Elsewhere&)>& side) {
  const bool at_low = side(what_if.at(quantity, low));
  while (high > near * low) {
    const double between = middle(quantity, low, high);
    if (between <= low || between >= high) break;
    const Elsewhere& at = what_if.at(quantity, between);
    if (!at.saving) break;
    (side(at) == at_low ? low : high) = between;
  }
  return {low, high};
}

std::vector<double> grid(const QuantityRow& quantity, double given, double factor) {
  const double least =
      quantity.whole ? quantity.may_be.least : std::max(quantity.may_be.least, given / kWidest);
  const double most = quantity.whole ? std::max(kManyNodes, given)
                                     : std::min(quantity.may_be.most, given * kWidest);
  std::vector<double> values = {given};
  for (double value = given / factor; value >= least; value /= factor) {
    values.push_back(quantity.whole ? std::round(value) : value);
  }
  for (double value = given * factor; value <= most; value *= factor) values.push_back(value);
  if (quantity.whole) values.push_back(least);
  std::ranges::sort(values);
  values.erase(std::unique(values.begin(), values.end()), values.end());
  return values;
}

bool is_sure(const Elsewhere& at, bool compresses) {
  if (at.answer == Answer::kTooUncertain) return false;
  const double probability = at.saving->probability;
  return compresses ? probability >= kSure : probability <= 1 - kSure;
}

/// Value below or above a turn at which the advice is sure, as near to the turn as possible: the
/// first such value in `looked_at`, moved by bisection towards its neighbour.
std::optional<double> sure_from(WhatIf& what_if, const QuantityRow& quantity,
                                const std::vector<double>& looked_at, double turn, bool below,
                                bool compresses) {
  const auto sure = [&](const Elsewhere& at) { return is_sure(at, compresses); };
  if (sure(what_if.at(quantity, turn))) return turn;
  double nearer = turn;
  const auto visit = [&](double value) -> std::optional<double> {
    const Elsewhere& at = what_if.at(quantity, value);
    if (!at.saving) return std::nullopt;
    if (!sure(at)) {
      nearer = value;
      return std::nullopt;
    }
    const double low = std::min(value, nearer), high = std::max(value, nearer);
    const double near = what_if.is_brief() ? kNearOfKnown : kNearEnough;
    const auto [left, right] = bisect(what_if, quantity, low, high, near, sure);
    return below ? left : right;
  };
  if (below) {
    for (auto value = looked_at.rbegin(); value != looked_at.rend(); ++value) {
      if (*value > turn) continue;
      if (const auto found = visit(*value)) return found;
    }
  } else {
    for (const double value : looked_at) {
      if (value < turn) continue;
      if (const auto found = visit(value)) return found;
    }
  }
  return std::nullopt;
}

/// Remedy for a value outside its quantity's range.
std::string remedy_of(const QuantityRow& quantity, double given) {
  if (quantity.name == "compute-time" && given == 0) {
    return "the compute time is unknown: give `compute_time`";
  }
  if (quantity.whole && given < quantity.may_be.least) {
    return "a job of one node sends nothing: give `nnodes`, 2 or more";
  }
  return fmt::format("the given value, {}, is not between {} and {}: give one that is",
                     quantity.text(given), quantity.text(quantity.may_be.least),
                     quantity.text(quantity.may_be.most));
}

/// Evaluates values of a quantity, and reports why some were left out.
class Look {
 public:
  Look(WhatIf& what_if, BreakEvenPoint& point)
      : what_if_(what_if),
        quantity_(*point.quantity),
        point_(point),
        tolerance_(what_if.prepared().problem.tolerance) {}

  bool compresses(double value) { return margin(what_if_.at(quantity_, value), tolerance_) > 0; }

  /// Values of the grid for which a comparison was possible, ascending. If all answers agree, more
  /// values are added at its ends until the answer changes.
  std::vector<double> values() {
    std::vector<double> found = of_grid();
    const auto same = [&](double value) { return compresses(value) == compresses(found.front()); };
    if (found.empty() || !std::ranges::all_of(found, same)) return found;
    const auto far = [&](double value) {
      return std::abs(margin(what_if_.at(quantity_, value), tolerance_));
    };
    // Begin at the end where the saving is closer to the tolerance.
    const bool below_first = far(found.front()) < far(found.back());
    for (const bool below : {below_first, !below_first}) {
      if (widened(found, below)) break;
    }
    return found;
  }

 private:
  /// Values of the grid for which a comparison was possible. Numbers of nodes end before the first
  /// one that cannot be simulated and, unless evaluations are counted, at the first slow one.
  std::vector<double> of_grid() {
    std::vector<double> values;
    std::optional<double> first;
    for (const double value : grid(quantity_, point_.given, what_if_.is_brief() ? kWider : 2)) {
      bool slow = false;
      if (comparable(value, slow)) {
        values.push_back(value);
        if (!quantity_.whole || !slow || value < point_.given) continue;
        tell_slow(value);
        break;
      }
      if (!first) first = value;
      point_.diagnostic = fmt::format(
          "`break_even` {}: no comparison is possible with {}{}: no plan with compression, or none "
          "without, could be simulated",
          quantity_.name, quantity_.text(*first),
          value == first ? "" : fmt::format(" to {}", quantity_.text(value)));
      if (quantity_.whole && value > point_.given) break;
    }
    slow_ = !point_.diagnostic.empty();
    return values;
  }

  /// Adds values at one end, within QuantityRow::makes_sense, until compresses() changes, a value
  /// cannot be compared, or a comparison is slow. Returns true if compresses() changed.
  bool widened(std::vector<double>& values, bool below) {
    const Span& sense = quantity_.makes_sense;
    const double factor = quantity_.whole ? 2 : kWider;
    const bool first = compresses(values.front());
    for (bool slow = slow_; !slow;) {
      const double edge = below ? values.front() : values.back();
      const double next =
          below ? std::max(edge / factor, sense.least) : std::min(edge * factor, sense.most);
      if (below ? next >= edge : next <= edge) return false;
      if (!comparable(next, slow)) return false;
      values.insert(below ? values.begin() : values.end(), next);
      if (compresses(next) != first) return true;
      if (slow) tell_slow(next);
    }
    return false;
  }

  /// True if a comparison was possible. Sets `slow` if that took over kSlow_s, unless evaluations
  /// are counted.
  bool comparable(double value, bool& slow) {
    const auto begin = std::chrono::steady_clock::now();
    if (!what_if_.at(quantity_, value).saving) return false;
    const std::chrono::duration<double> took = std::chrono::steady_clock::now() - begin;
    slow = !what_if_.prepared().request.evaluations && took.count() > kSlow_s;
    return true;
  }

  void tell_slow(double value) {
    point_.diagnostic = fmt::format(
        "`break_even` {}: values beyond {} were left out, since their plans take long to search: "
        "`evaluations` includes them, without a limit of time",
        quantity_.name, quantity_.text(value));
  }

  WhatIf& what_if_;
  const QuantityRow& quantity_;
  BreakEvenPoint& point_;
  const double tolerance_;
  bool slow_ = false;  ///< some values of the grid were left out
};

/// Two values between which Look::compresses() changes.
struct Bracket {
  double low = 0, high = 0;
  bool compress_below = false;
};

/// Values between two brackets, including the brackets' ends; null: no bracket on that side.
std::vector<double> between(const std::vector<double>& values, const Bracket* before,
                            const Bracket* after) {
  std::vector<double> found;
  if (before != nullptr) found.push_back(before->high);
  for (const double value : values) {
    if (before != nullptr && value <= before->high) continue;
    if (after != nullptr && value >= after->low) continue;
    found.push_back(value);
  }
  if (after != nullptr) found.push_back(after->low);
  return found;
}

}  // namespace

void check_break_even(const PreparedRequest& prepared, const QuantityRow& quantity) {
  const double given = quantity.of(prepared);
  if (given < quantity.may_be.least || given > quantity.may_be.most) {
    throw io::InputError(
        fmt::format("`break_even` {}: {}", quantity.name, remedy_of(quantity, given)));
  }
  const double twice = 2 * given <= quantity.may_be.most ? 2 * given : given / 2;
  const double tried = quantity.whole ? given + 1 : twice;
  Request request = request_for(prepared, 1);
  quantity.set(tried, request);
  try {
    const PreparedRequest made(request, prepared.form);
  } catch (const io::InputError& error) {
    throw io::InputError(
        fmt::format("`break_even` {}: {} cannot be tried ({}): leave the number out of its file, "
                    "or take another quantity, of {}",
                    quantity.name, quantity.text(tried), error.what(), quantity_names()));
  }
}

std::span<const QuantityRow> quantities() { return kRows; }

std::string quantity_names() {
  std::string names;
  for (const QuantityRow& row : kRows) {
    names += fmt::format("{}{}", names.empty() ? "" : ", ", row.name);
  }
  return names;
}

const QuantityRow& find_quantity(std::string_view name) {
  const auto row = std::ranges::find(kRows, name, &QuantityRow::name);
  if (row != kRows.end()) return *row;
  std::vector<std::string_view> known;
  for (const QuantityRow& one : kRows) known.push_back(one.name);
  throw io::InputError(fmt::format("`break_even` {}", io::none_of(name, known)));
}

WhatIf::WhatIf(const PreparedRequest& prepared, std::int64_t evaluations, const Advice* advice,
               Compared compared)
    : prepared_(prepared),
      evaluations_(evaluations),
      advice_(prepared.search.optimises && !prepared.request.analysis.robust ? advice : nullptr),
      known_plans_(compared == Compared::kKnown && advice != nullptr && !prepared.learning
                       ? &advice->comparison
                       : nullptr) {}

Elsewhere WhatIf::ask(const Request& request, double value, double faster_codecs, bool far) const {
  Hooks hooks;
  hooks.interrupted = prepared_.hooks.interrupted;
  PreparedRequest asked(request, prepared_.form, hooks);
  if (faster_codecs != 1) {
    for (auto& [name, codec] : asked.profile.codecs) codec = codec.times(1 / faster_codecs);
    asked.profile.merge = asked.profile.merge.times(1 / faster_codecs);
  }
  if (known_plans_ == nullptr) return elsewhere_of(asked, advise(asked), value);
  if (far || asked.given_nodes != prepared_.given_nodes) {
    return elsewhere_of(asked, advise_briefly(asked), value);
  }
  return elsewhere_of(asked, advise_among(*known_plans_, asked), value);
}

const Elsewhere& WhatIf::at(const QuantityRow& quantity, double value) {
  const auto key = std::pair(quantity.name, value);
  const auto known = known_.find(key);
  if (known != known_.end()) return known->second;
  if (advice_ != nullptr && value == quantity.of(prepared_)) {
    const Elsewhere here = elsewhere_of(prepared_, *advice_, value);
    if (here.saving) return known_[key] = here;
  }
  Request request = request_for(prepared_, evaluations_);
  quantity.set(value, request);
  const double given = quantity.of(prepared_);
  const bool far = value > kKnownReach * given || value * kKnownReach < given;
  return known_[key] = ask(request, value, 1, far);
}

Elsewhere WhatIf::with_faster_codecs(double factor) const {
  return ask(request_for(prepared_, evaluations_), factor, factor, false);
}

BreakEvenPoint break_even_point(WhatIf& what_if, const QuantityRow& quantity) {
  const PreparedRequest& prepared = what_if.prepared();
  const double tolerance = prepared.problem.tolerance;
  BreakEvenPoint point{.quantity = &quantity,
                       .given = quantity.of(prepared),
                       .hides_nothing = compute_s(prepared.model) == 0};
  Look look(what_if, point);
  const std::vector<double> values = look.values();
  const auto compresses = [&](const Elsewhere& at) { return margin(at, tolerance) > 0; };
  std::vector<Bracket> brackets;
  for (std::size_t i = 0; i + 1 < values.size(); ++i) {
    const bool below = look.compresses(values[i]);
    if (below == look.compresses(values[i + 1])) continue;
    const double near = what_if.is_brief() ? kNearOfKnown : kNear;
    const auto [low, high] = bisect(what_if, quantity, values[i], values[i + 1], near, compresses);
    brackets.push_back({low, high, below});
  }
  std::vector<double> looked_at = values;
  for (std::size_t i = 0; i < brackets.size(); ++i) {
    const auto& [low, high, below] = brackets[i];
    const Bracket* const before = i > 0 ? &brackets[i - 1] : nullptr;
    const Bracket* const after = i + 1 < brackets.size() ? &brackets[i + 1] : nullptr;
    const std::vector<double> near = between(values, before, after);
    Turn turn{.value = quantity.whole ? high : std::sqrt(low * high), .compress_below = below};
    turn.low = sure_from(what_if, quantity, near, low, true, below);
    turn.high = sure_from(what_if, quantity, near, high, false, !below);
    point.turns.push_back(turn);
    looked_at.insert(looked_at.end(), {low, high});
  }
  std::ranges::sort(looked_at);
  for (const double value : looked_at) {
    if (point.curve.empty() || point.curve.back().value != value) {
      point.curve.push_back(what_if.at(quantity, value));
    }
  }
  return point;
}

namespace {

bool is_too_uncertain(const BreakEvenPoint& point) {
  return std::ranges::all_of(
      point.curve, [](const Elsewhere& at) { return at.answer == Answer::kTooUncertain; });
}

/// Describes a range without a known turn: its answer, and the values at which this answer is sure.
std::string describe_range(const BreakEvenPoint& point, double tolerance) {
  const auto& text = point.quantity->text;
  const auto& curve = point.curve;
  const bool pays = margin(curve.front(), tolerance) > 0;
  const auto at_every = [&](const char* what) {
    return fmt::format("no break-even between {} and {}: {} at every {} in between",
                       text(curve.front().value), text(curve.back().value), what,
                       point.quantity->words);
  };
  if (is_too_uncertain(point)) return at_every("predictions are too uncertain");
  std::vector<const Elsewhere*> sure;
  for (const Elsewhere& at : curve) {
    if (is_sure(at, pays)) sure.push_back(&at);
  }
  if (sure.empty()) {
    return at_every(pays ? "it is too close to call"
                         : "compressing saves too little, but it is close");
  }
  const std::string answer = at_every(pays ? "compressing pays" : "compressing does not pay");
  if (sure.size() == curve.size()) return answer;
  const auto steps = static_cast<std::size_t>(sure.back() - sure.front()) + 1;
  return answer + (steps == sure.size()
                       ? fmt::format(", surely from {} to {}", text(sure.front()->value),
                                     text(sure.back()->value))
                       : fmt::format(", surely at {} of {} values", sure.size(), curve.size()));
}

/// Describes the values from one turn to another at which the answer is sure; null stands for an
/// end of the range. `verb` is the answer. Returns `close` if there are no such values.
std::string describe_sure(const QuantityRow& quantity, const Turn* from, const Turn* to,
                          const char* verb, const std::string& close) {
  const auto& text = quantity.text;
  if (from == nullptr) {
    return to->low ? fmt::format("{} up to {}", verb, text(*to->low)) : close;
  }
  if (to == nullptr) {
    return from->high ? fmt::format("{} from {} on", verb, text(*from->high)) : close;
  }
  return from->high && to->low && *from->high <= *to->low
             ? fmt::format("{} from {} to {}", verb, text(*from->high), text(*to->low))
             : close;
}

std::string describe_place(const QuantityRow& quantity, const Turn* from, const Turn* to) {
  const auto& text = quantity.text;
  if (from == nullptr) return "below " + text(to->value);
  if (to == nullptr) return "from " + text(from->value) + " on";
  return fmt::format("between {} and {}", text(from->value), text(to->value));
}

/// Sentences for the ranges in which compression pays, each with the next, in which it does not.
std::vector<std::string> describe_stretches(const BreakEvenPoint& point) {
  const QuantityRow& quantity = *point.quantity;
  const auto does_not = [&](const Turn* from, const Turn* to) {
    return ", " + describe_sure(quantity, from, to, "surely not",
                                "too close to call " + describe_place(quantity, from, to));
  };
  std::vector<const Turn*> ends = {nullptr};  // ends of ranges; null: the end of all values
  for (const Turn& turn : point.turns) ends.push_back(&turn);
  ends.push_back(nullptr);
  std::vector<std::string> sentences;
  const std::size_t first = point.turns.front().compress_below ? 0 : 1;
  for (std::size_t i = first; i + 1 < ends.size(); i += 2) {
    std::string sentence = fmt::format(
        "compressing pays {}: {}", describe_place(quantity, ends[i], ends[i + 1]),
        describe_sure(quantity, ends[i], ends[i + 1], "surely", "savings too small to be sure"));
    if (i == 1) sentence += does_not(nullptr, ends[1]);
    if (i + 2 < ends.size()) sentence += does_not(ends[i + 1], ends[i + 2]);
    sentences.push_back(std::move(sentence));
  }
  return sentences;
}

}  // namespace

std::vector<std::string> describe(const BreakEvenPoint& point, double tolerance) {
  if (point.curve.empty()) return {"no break-even: no plans could be compared"};
  std::vector<std::string> sentences;
  if (point.hides_nothing) {
    sentences.emplace_back(
        "computation's time is not known, so all communication counts as exposed: give "
        "`compute_time`, and compressing pays less");
  }
  if (point.turns.empty() || is_too_uncertain(point)) {
    sentences.push_back(describe_range(point, tolerance));
  } else {
    for (std::string& sentence : describe_stretches(point))
      sentences.push_back(std::move(sentence));
  }
  return sentences;
}

}  // namespace hipress::planner
