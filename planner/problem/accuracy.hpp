#pragma once

#include <compare>
#include <map>
#include <string>
#include <string_view>
#include <vector>

namespace hipress::planner {

/// Accuracy loss of a gradient, compared by algorithm first, then by number of encodings, then by
/// rank.
struct Coarseness {
  int place = 0;          ///< place of the algorithm in the AccuracyOrder; 0: no loss
  int encodings = 0;      ///< casync::Topology::encodings; 1 for factors, which travel raw
  int negative_rank = 0;  ///< minus the algorithm's rank, if it has one: a higher rank keeps more
  auto operator<=>(const Coarseness&) const = default;
};

/// Order of algorithms by accuracy loss, the coarsest last.
struct AccuracyOrder {
  /// Places of programs, and of built-in algorithms whose place is overridden.
  std::map<std::string, int> places = {};

  /// Place of an algorithm: 0 for raw ("none"), else the place given here, else the built-in row's.
  /// `name` may have parameters. A program (x.pse) without a place counts as the coarsest. Throws
  /// std::invalid_argument for unknown names.
  int coarseness(std::string_view name) const;

  /// Loss of the algorithm, with its rank ("powersgd(rank=4)"), encoded `encodings` times.
  Coarseness given_up(std::string_view name, int encodings = 1) const;

  /// True if `name` is a program whose place is only assumed.
  bool is_assumed(std::string_view name) const;

  /// Filters `algorithms`, in their order, by place: at most that of `coarsest` ("none": raw and
  /// lossless ones). Among algorithms of the same place, if both have a rank, only those of at
  /// least its rank.
  std::vector<std::string> not_coarser(const std::vector<std::string>& algorithms,
                                       std::string_view coarsest) const;
};

/// Order of the built-in algorithms: "none, lossless < fp16, bf16 < int8block, fp8block < …".
std::string describe_accuracy_order();

/// Parses an order given on the command line. Each text is "tern.pse=terngrad" (the same place as
/// that algorithm) or "tern.pse=2" (a place). Throws io::InputError for anything else.
AccuracyOrder parse_accuracy(const std::vector<std::string>& texts);

}  // namespace hipress::planner
