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
#include "io/yaml.hpp"

namespace hipress::planner {
namespace {

constexpr double kWidest = 64;  // the range is from 1/64 to 64 times the given value
constexpr double kMostNodes = 512;
constexpr double kSlow_s = 5;   // with more nodes plans take several times as long
constexpr int kBisections = 6;  // of a factor of two: to 1.1 %
constexpr int kOfInterval = 4;  // to 4.4 %

std::string seconds_text(double value) { return fmt::format("{:.12g}s", value); }

double compute_s(const models::Model& model) {
  return models::before_backward_s(model) + models::backward_s(model);
}

constexpr std::array kRows = {
    QuantityRow{
        "bandwidth", "bandwidth", "B/s", false, io::kMinBandwidth, io::kMaxBandwidth,
        [](const PreparedRequest& prepared) { return prepared.machines->cluster.link.bandwidth; },
        [](double value, Request& request) {
          request.machines.bandwidth = fmt::format("{:.12g}B/s", value);
        },
        [](double value) { return costs::describe_bandwidth(value); }},
    QuantityRow{
        "latency", "latency", "s", false, 1e-9, 10,
        [](const PreparedRequest& prepared) { return prepared.machines->cluster.link.latency_s; },
        [](double value, Request& request) { request.machines.latency = seconds_text(value); },
        [](double value) { return io::format_duration(value); }},
    QuantityRow{
        "nodes", "number of nodes", "nodes", true, 2, kMostNodes,
        [](const PreparedRequest& prepared) {
          return static_cast<double>(prepared.machines->cluster.nodes);
        },
        [](double value, Request& request) { request.nodes = static_cast<std::uint32_t>(value); },
        [](double value) { return fmt::format("{:.0f} nodes", value); }},
    QuantityRow{"compute-time", "compute time", "s", false, 1e-6, 1e4,
                [](const PreparedRequest& prepared) { return compute_s(prepared.model); },
                [](double value, Request& request) {
                  request.times.compute_time = seconds_text(value);
                  request.times.forward.clear();
                },
                [](double value) { return io::format_duration(value); }},
};

/// The saving of the fastest that compresses over the fastest that does not, whichever is advised.
Elsewhere elsewhere_of(const PreparedRequest& prepared, const Advice& advice, double value) {
  const Comparison& comparison = advice.comparison;
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

Request request_for(const PreparedRequest& prepared, std::int64_t evaluations) {
  Request request = prepared.request;
  request.analysis = {};
  request.search = prepared.search.optimises ? std::string(prepared.search.name) : "timeline";
  request.budget_s = std::nullopt;
  request.evaluations = evaluations;
  request.write = "advised";
  return request;
}

/// More than 0: compressing saves more than the tolerance.
double margin(const Elsewhere& at, double tolerance) { return at.saving->median - tolerance; }

double middle(const QuantityRow& quantity, double low, double high) {
  const double between = std::sqrt(low * high);
  return quantity.whole ? std::round(between) : between;
}

/// The last value with `low`'s sign of `side`, and the first with the other, as near as `steps`
/// bisections bring them.
std::pair<double, double> bisect(WhatIf& what_if, const QuantityRow& quantity, double low,
                                 double high, int steps,
                                 const std::function<bool(const Elsewhere&)>& side) {
  const bool at_low = side(what_if.at(quantity, low));
  for (int step = 0; step < steps; ++step) {
    const double between = middle(quantity, low, high);
    if (between <= low || between >= high) break;
    const Elsewhere& at = what_if.at(quantity, between);
    if (!at.saving) break;
    (side(at) == at_low ? low : high) = between;
  }
  return {low, high};
}

std::vector<double> grid(const QuantityRow& quantity, double given) {
  const double least = std::max(quantity.least, quantity.whole ? 2 : given / kWidest);
  const double most = std::min(quantity.most, quantity.whole ? kMostNodes : given * kWidest);
  std::vector<double> values = {given};
  for (double value = given / 2; value >= least; value /= 2) {
    values.push_back(quantity.whole ? std::round(value) : value);
  }
  for (double value = given * 2; value <= most; value *= 2) values.push_back(value);
  if (quantity.whole) values.push_back(least);
  std::ranges::sort(values);
  values.erase(std::unique(values.begin(), values.end()), values.end());
  return values;
}

/// The nearest value to a turn, on the side of `step`, at which the advice is sure; between grid
/// points by bisection.
std::optional<double> sure_from(WhatIf& what_if, const QuantityRow& quantity,
                                const std::vector<double>& looked_at, double turn, bool below,
                                bool compresses) {
  const auto sure = [&](const Elsewhere& at) {
    const double probability = at.saving->probability;
    return compresses ? probability >= kSure : probability <= 1 - kSure;
  };
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
    const auto [left, right] = bisect(what_if, quantity, low, high, kOfInterval, sure);
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

/// What to do about a value that the range of its quantity does not have.
std::string remedy_of(const QuantityRow& quantity, double given) {
  if (quantity.name == "compute-time" && given == 0) {
    return "the compute time is not known: give `compute_time`";
  }
  if (quantity.whole && given < quantity.least) {
    return "one node has no other to send to: give `nnodes`, 2 or more";
  }
  return fmt::format("the given value, {}, is not between {} and {}: give one that is",
                     quantity.text(given), quantity.text(quantity.least),
                     quantity.text(quantity.most));
}

/// The grid's values at which there is something to compare; what had nothing is noted. More nodes
/// than could be simulated are not looked at, nor, unless evaluations are counted, more than take
/// long.
std::vector<double> comparable(WhatIf& what_if, const QuantityRow& quantity,
                               BreakEvenPoint& point) {
  std::vector<double> values;
  std::optional<double> first;
  for (const double value : grid(quantity, point.given)) {
    const auto begin = std::chrono::steady_clock::now();
    if (what_if.at(quantity, value).saving) {
      values.push_back(value);
      const std::chrono::duration<double> took = std::chrono::steady_clock::now() - begin;
      const bool slow = quantity.whole && !what_if.prepared().request.evaluations &&
                        took.count() > kSlow_s && 2 * value <= quantity.most;
      if (!slow || value < point.given) continue;
      point.diagnostic = fmt::format(
          "`break_even` {}: more than {} were not looked at, as their plans would take long to "
          "search: `evaluations` has them looked at, however long that takes",
          quantity.name, quantity.text(value));
      break;
    }
    if (!first) first = value;
    point.diagnostic = fmt::format(
        "`break_even` {}: nothing could be compared with {}{}: no plan that may compress, or none "
        "without, could be simulated",
        quantity.name, quantity.text(*first),
        value == first ? "" : fmt::format(" to {}", quantity.text(value)));
    if (quantity.whole && value > point.given) break;
  }
  return values;
}

}  // namespace

void check_break_even(const PreparedRequest& prepared, const QuantityRow& quantity) {
  const double given = quantity.of(prepared);
  if (given < quantity.least || given > quantity.most) {
    throw io::InputError(
        fmt::format("`break_even` {}: {}", quantity.name, remedy_of(quantity, given)));
  }
  const double twice = 2 * given <= quantity.most ? 2 * given : given / 2;
  const double tried = quantity.whole ? given + 1 : twice;
  Request request = request_for(prepared, 1);
  quantity.set(tried, request);
  try {
    const PreparedRequest made(request, prepared.form);
  } catch (const io::InputError& error) {
    throw io::InputError(fmt::format(
        "`break_even` {}: {} cannot be asked for ({}): leave the number out of the file that has "
        "it, or take another quantity, of {}",
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
  throw io::InputError(fmt::format("`break_even` must be one of {}, got {}", quantity_names(),
                                   io::quote(std::string(name))));
}

WhatIf::WhatIf(const PreparedRequest& prepared, std::int64_t evaluations, const Advice* advice)
    : prepared_(prepared),
      evaluations_(evaluations),
      advice_(prepared.search.optimises && !prepared.request.analysis.robust ? advice : nullptr) {}

Elsewhere WhatIf::ask(const Request& request, double value, double faster_codecs) const {
  Hooks hooks;
  hooks.interrupted = prepared_.hooks.interrupted;
  PreparedRequest asked(request, prepared_.form, hooks);
  if (faster_codecs != 1) {
    for (auto& [name, codec] : asked.profile.codecs) codec = codec.times(1 / faster_codecs);
    asked.profile.merge = asked.profile.merge.times(1 / faster_codecs);
  }
  return elsewhere_of(asked, advise(asked), value);
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
  return known_[key] = ask(request, value, 1);
}

Elsewhere WhatIf::with_faster_codecs(double factor) const {
  return ask(request_for(prepared_, evaluations_), factor, factor);
}

BreakEvenPoint break_even_point(WhatIf& what_if, const QuantityRow& quantity) {
  const PreparedRequest& prepared = what_if.prepared();
  const double tolerance = prepared.problem.tolerance;
  BreakEvenPoint point{.quantity = &quantity,
                       .given = quantity.of(prepared),
                       .hides_nothing = compute_s(prepared.model) == 0};
  const std::vector<double> values = comparable(what_if, quantity, point);
  const auto compresses = [&](const Elsewhere& at) { return margin(at, tolerance) > 0; };
  std::vector<double> looked_at = values;
  for (std::size_t i = 0; i + 1 < values.size(); ++i) {
    const bool below = compresses(what_if.at(quantity, values[i]));
    if (below == compresses(what_if.at(quantity, values[i + 1]))) continue;
    const auto [low, high] =
        bisect(what_if, quantity, values[i], values[i + 1], kBisections, compresses);
    Turn turn{.value = quantity.whole ? high : std::sqrt(low * high), .compress_below = below};
    turn.low = sure_from(what_if, quantity, values, low, true, below);
    turn.high = sure_from(what_if, quantity, values, high, false, !below);
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

std::vector<std::string> describe(const BreakEvenPoint& point, double tolerance) {
  const auto& text = point.quantity->text;
  if (point.curve.empty()) return {"there is no break-even: nothing could be compared"};
  const std::string range =
      fmt::format("from {} to {}", text(point.curve.front().value), text(point.curve.back().value));
  std::vector<std::string> sentences;
  if (point.hides_nothing) {
    sentences.emplace_back(
        "computation's time is not known, so this is as if it hid nothing of what is sent: give "
        "`compute_time`, and compressing pays less");
  }
  if (point.turns.empty()) {
    sentences.push_back(
        margin(point.curve.front(), tolerance) > 0
            ? fmt::format("compressing pays at every {} {}", point.quantity->words, range)
            : fmt::format("compressing pays at no {} {}", point.quantity->words, range));
  }
  for (const Turn& turn : point.turns) {
    const auto side = [&](const std::optional<double>& value, bool below) {
      const char* const sure = turn.compress_below == below ? "surely" : "surely not";
      if (!value) return fmt::format("nowhere {} {}", sure, below ? "below" : "above");
      return below ? fmt::format("{} up to {}", sure, text(*value))
                   : fmt::format("{} from {} on", sure, text(*value));
    };
    sentences.push_back(fmt::format("compress {} {} ({}, {})",
                                    turn.compress_below ? "below" : "from", text(turn.value),
                                    side(turn.low, true), side(turn.high, false)));
  }
  return sentences;
}

}  // namespace hipress::planner
