#pragma once

#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "planner/advice/advice.hpp"
#include "sim/forecast.hpp"

/// What would be if one thing about the job or its machines were different.
namespace hipress::planner {

/// Something that may be different. Adding one is one row in quantities().
struct QuantityRow {
  std::string_view name;   ///< "compute-time"
  std::string_view words;  ///< "compute time"
  std::string_view unit;   ///< of its values: "B/s", "s", "nodes"
  bool whole = false;      ///< its values are whole numbers
  double least = 0, most = 0;
  double (*of)(const PreparedRequest& prepared);
  void (*set)(double value, Request& request);
  std::string (*text)(double value);  ///< "25 Gbit/s"
};
std::span<const QuantityRow> quantities();
/// io::InputError, with the known ones, for another name.
const QuantityRow& find_quantity(std::string_view name);
/// "bandwidth, latency, …": for help.
std::string quantity_names();

/// What advice would be with another value of a quantity, with plans made anew.
struct Elsewhere {
  double value = 0;
  std::optional<double> compressed_s = {};    ///< the fastest plan known that compresses
  std::optional<double> uncompressed_s = {};  ///< the fastest known without
  /// What compressing saves of the time without: 10th percentile, median, 90th, and how probably it
  /// is more than the tolerance. None: one of the two is not known.
  std::optional<sim::Saving> saving = {};
  Answer answer = Answer::kTooClose;
};

/// Asks for advice with other values, each once: with as many evaluations for every search.
class WhatIf {
 public:
  /// The prepared request and its advice, if given, must outlive it. Without a profile or cluster,
  /// plans are still searched on the timeline. Of a request that asks for the best plan, the advice
  /// answers for the given values, so that these say what the verdict does.
  WhatIf(const PreparedRequest& prepared, std::int64_t evaluations, const Advice* advice = nullptr);

  /// io::InputError if the request cannot be made with that value.
  const Elsewhere& at(const QuantityRow& quantity, double value);
  /// With every kernel of codecs that many times as fast.
  Elsewhere with_faster_codecs(double factor) const;

  const PreparedRequest& prepared() const { return prepared_; }

 private:
  Elsewhere ask(const Request& request, double value, double faster_codecs) const;

  const PreparedRequest& prepared_;
  const std::int64_t evaluations_;
  const Advice* const advice_;
  std::map<std::pair<std::string_view, double>, Elsewhere> known_;
};

/// Where compressing begins, or ceases, to save more than the tolerance.
struct Turn {
  double value = 0;
  /// The nearest values at which it is sure, with probability kSure, what holds on either side;
  /// none: within the range that was looked at it never is.
  std::optional<double> low = {}, high = {};
  bool compress_below = true;  ///< else above
};

/// The turns of a quantity, and the curve between its least and most values that were looked at.
struct BreakEvenPoint {
  const QuantityRow* quantity = nullptr;
  double given = 0;                   ///< the request's own value
  std::vector<Turn> turns = {};       ///< ascending
  std::vector<Elsewhere> curve = {};  ///< ascending, of the values with both times
  std::string diagnostic = {};  ///< what kept part of the range from being looked at; else empty
  bool hides_nothing = false;   ///< the compute time is not known
};

/// Before a search: io::InputError, with its remedy, for a quantity whose given value is outside
/// its range, or that the request cannot have another value of (nodes that a cluster file counts).
void check_break_even(const PreparedRequest& prepared, const QuantityRow& quantity);

/// Looks at values from 1/64 to 64 times the given one (of nodes, from 2 to 512), by factors of
/// two, and bisects the logarithm between those that differ.
BreakEvenPoint break_even_point(WhatIf& what_if, const QuantityRow& quantity);

/// "compress below 18.3 Gbit/s (surely up to 12 Gbit/s, surely not from 25 Gbit/s on)", a sentence
/// per turn, or the one that says that there is none.
std::vector<std::string> describe(const BreakEvenPoint& point, double tolerance);

}  // namespace hipress::planner
