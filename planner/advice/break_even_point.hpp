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

/// What the advice would be if one quantity of the job or its machines were different.
namespace hipress::planner {

struct Span {
  double least = 0, most = 0;
};

/// A quantity that can be varied. Adding one is one row in quantities().
struct QuantityRow {
  std::string_view name;                          ///< "compute-time"
  std::string_view words;                         ///< "compute time"
  std::string_view unit;                          ///< of its values: "B/s", "s", "nodes"
  bool whole = false;                             ///< its values are whole numbers
  Span may_be;                                    ///< the values that it may have
  Span makes_sense;                               ///< those at which a turn is looked for
  double (*of)(const PreparedRequest& prepared);  ///< its value in a request
  void (*set)(double value, Request& request);    ///< gives it another
  std::string (*text)(double value);              ///< "25 Gbit/s"
};
std::span<const QuantityRow> quantities();
/// io::InputError, with the known ones, for another name.
const QuantityRow& find_quantity(std::string_view name);
/// "bandwidth, latency, …": for help.
std::string quantity_names();

/// The advice for one value of a quantity, with plans made for that value.
struct Elsewhere {
  double value = 0;
  std::optional<double> compressed_s = {};    ///< the fastest plan known that compresses
  std::optional<double> uncompressed_s = {};  ///< the fastest known that does not
  /// What share of the time without compression is saved by compressing: 10th percentile, median,
  /// 90th percentile, and the probability that it is more than the tolerance. None where one of the
  /// two times is not known.
  std::optional<sim::Saving> saving = {};
  Answer answer = Answer::kTooClose;
};

/// Asks for advice with other values of quantities. Each value is asked for once, and every search
/// has the same number of evaluations.
class WhatIf {
 public:
  /// `prepared`, and `advice` if given, must outlive the object. Plans are searched on the timeline
  /// even if the request names neither profile nor cluster. `advice` is the answer to the request:
  /// if the request asks for the best plan, at() takes from it what it says of the request's own
  /// values, which then agrees with the verdict.
  WhatIf(const PreparedRequest& prepared, std::int64_t evaluations, const Advice* advice = nullptr);

  /// The advice with that value. io::InputError if the request cannot be made with it.
  const Elsewhere& at(const QuantityRow& quantity, double value);
  /// The advice if every kernel of codecs were `factor` times as fast.
  Elsewhere with_faster_codecs(double factor) const;

  const PreparedRequest& prepared() const { return prepared_; }

 private:
  Elsewhere ask(const Request& request, double value, double faster_codecs) const;

  const PreparedRequest& prepared_;
  const std::int64_t evaluations_;
  const Advice* const advice_;
  std::map<std::pair<std::string_view, double>, Elsewhere> known_;
};

/// A value at which compressing begins, or ceases, to save more than the tolerance.
struct Turn {
  double value = 0;
  /// The nearest value below and above at which the answer is sure, with probability kSure. None if
  /// it is nowhere sure on that side within the range that was looked at.
  std::optional<double> low = {}, high = {};
  bool compress_below = true;  ///< else above
};

/// The turns of a quantity, and the advice for all the values that were looked at.
struct BreakEvenPoint {
  const QuantityRow* quantity = nullptr;
  double given = 0;                   ///< the request's own value
  std::vector<Turn> turns = {};       ///< ascending
  std::vector<Elsewhere> curve = {};  ///< by value, ascending, where both times are known
  std::string diagnostic = {};  ///< what kept part of the range from being looked at; else empty
  bool hides_nothing = false;   ///< the compute time is not known
};

/// To be called before a search. io::InputError, with its remedy, if the quantity's given value
/// lies outside its range, or if the request fixes the value, as a cluster file does with nodes.
void check_break_even(const PreparedRequest& prepared, const QuantityRow& quantity);

/// Looks at values from 1/64 to 64 times the given one (of nodes, from 2 to 512), by factors of
/// two. If the answer is the same at all of them, it looks further, as far as the quantity makes
/// sense. It bisects the logarithm between values that differ.
BreakEvenPoint break_even_point(WhatIf& what_if, const QuantityRow& quantity);

/// One sentence per stretch in which compressing pays: "compressing pays below 18.3 Gbit/s: surely
/// up to 12 Gbit/s, surely not from 25 Gbit/s on". Without turns, one that there is no break-even.
std::vector<std::string> describe(const BreakEvenPoint& point, double tolerance);

}  // namespace hipress::planner
