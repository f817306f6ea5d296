#pragma once

#include <cstdint>
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

/// Advice for other values of one quantity of the job or its machines.
namespace hipress::planner {

struct Span {
  double least = 0, most = 0;
};

/// A quantity that can be varied. Adding one is one row in quantities().
struct QuantityRow {
  std::string_view name;   ///< "compute-time"
  std::string_view words;  ///< "compute time"
  std::string_view unit;   ///< unit of the values: "B/s", "s", "nodes"
  bool whole = false;      ///< values are whole numbers
  Span may_be;             ///< possible values
  Span makes_sense;        ///< widest range in which turns (see Turn) are searched for
  double (*of)(const PreparedRequest& prepared);  ///< value in a request
  void (*set)(double value, Request& request);    ///< changes the value
  std::string (*text)(double value);              ///< "25 Gbit/s"
};
std::span<const QuantityRow> quantities();
/// Row of that name. Throws io::InputError, with the known names, for any other name.
const QuantityRow& find_quantity(std::string_view name);
/// Names of all quantities, for help: "bandwidth, latency, …".
std::string quantity_names();

/// Advice for one value of a quantity, with plans made for that value.
struct Elsewhere {
  double value = 0;
  std::optional<double> compressed_s = {};    ///< time of the fastest known plan with compression
  std::optional<double> uncompressed_s = {};  ///< time of the fastest known plan without
                                              ///< compression
  /// Share of the uncompressed time saved by compression: 10th percentile, median, 90th percentile,
  /// and the probability that it exceeds the tolerance. None if one of the two times is unknown.
  std::optional<sim::Saving> saving = {};
  Answer answer = Answer::kTooClose;
};

/// Plans that WhatIf compares at other values.
enum class Compared : std::uint8_t {
  kSearched,  ///< those found by a search at each value
  /// If the value is at most twice and at least half of the request's, the plans of the given
  /// advice are simulated again. Beyond that, and for other numbers of nodes, a brief search finds
  /// plans. With a pilot, same as kSearched.
  kKnown,
};

/// Answers what the advice would be for other values of a quantity. Evaluates each value once. All
/// searches have the same number of evaluations.
class WhatIf {
 public:
  /// `prepared`, and `advice` if given, must outlive the object. The plans are searched with
  /// simulations (search timeline) even if the request names neither profile nor cluster. `advice`
  /// is the answer to the request. If the request asks for the best plan, at() returns it for the
  /// request's own values, so that both agree.
  WhatIf(const PreparedRequest& prepared, std::int64_t evaluations, const Advice* advice = nullptr,
         Compared compared = Compared::kSearched);

  /// Advice for that value. Throws io::InputError if the request is impossible with it.
  const Elsewhere& at(const QuantityRow& quantity, double value);
  /// Advice if every codec kernel were `factor` times as fast.
  Elsewhere with_faster_codecs(double factor) const;

  const PreparedRequest& prepared() const { return prepared_; }
  /// True if turns need only be found roughly, as known plans are compared.
  bool is_brief() const { return known_plans_ != nullptr; }

 private:
  /// `far`: the value is too far from the request's to compare the known plans.
  Elsewhere ask(const Request& request, double value, double faster_codecs, bool far) const;

  const PreparedRequest& prepared_;
  const std::int64_t evaluations_;
  const Advice* const advice_;
  const Comparison* const known_plans_;  ///< null: plans are searched for
  std::map<std::pair<std::string_view, double>, Elsewhere> known_;
};

/// A value at which the answer turns: compression begins or ceases to save more than the tolerance.
struct Turn {
  double value = 0;
  /// Nearest values below and above the turn at which the answer is sure (probability of at least
  /// kSure). Unset if the range has no such value on that side.
  std::optional<double> low = {}, high = {};
  bool compress_below = true;  ///< false: compress above
};

/// Turns of a quantity, with the advice for all evaluated values.
struct BreakEvenPoint {
  const QuantityRow* quantity = nullptr;
  double given = 0;                   ///< value of the request
  std::vector<Turn> turns = {};       ///< ascending
  std::vector<Elsewhere> curve = {};  ///< ascending values for which both times are known
  std::string diagnostic = {};        ///< reason why part of the range was not evaluated, or empty
  bool hides_nothing = false;  ///< the compute time is unknown, so no communication is hidden
};

/// Checks before a search that the quantity can be varied. Throws io::InputError, with a remedy, if
/// its value is out of range, or if the request fixes it, as a cluster file fixes the nodes.
void check_break_even(const PreparedRequest& prepared, const QuantityRow& quantity);

/// Evaluates the values from 1/64 to 64 times the given one (nodes: 2 to 512), in factors of two.
/// If all answers agree, the range grows up to QuantityRow::makes_sense. Between neighbours with
/// different answers, bisects the logarithm of the value.
BreakEvenPoint break_even_point(WhatIf& what_if, const QuantityRow& quantity);

/// One sentence per range in which compression pays: "compressing pays below 18.3 Gbit/s: surely up
/// to 12 Gbit/s, surely not from 25 Gbit/s on". Without turns, says that there is no break-even.
std::vector<std::string> describe(const BreakEvenPoint& point, double tolerance);

}  // namespace hipress::planner
