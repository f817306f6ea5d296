#pragma once

#include <compare>
#include <map>
#include <string>
#include <string_view>
#include <vector>

namespace hipress::planner {

/// Accuracy loss of a gradient, compared by algorithm first, then number of encodings, then rank.
struct Coarseness {
  int place = 0;          ///< place of the algorithm in the AccuracyOrder; 0: no loss
  int encodings = 0;      ///< casync::Topology::encodings; 1 for factors, which travel raw
  int negative_rank = 0;  ///< minus the algorithm's rank, if it has one: a higher rank keeps more
  auto operator<=>(const Coarseness&) const = default;
};

/// Order of the algorithms by accuracy loss, from the finest to the coarsest.
struct AccuracyOrder {
  /// Places that differ from the built-in ones, and places of programs.
  std::map<std::string, int> places = {};

  /// Place of an algorithm: 0 for raw ("none"), else the place given here, else the built-in row's.
  /// `name` may have parameters. A program (x.pse) without a place counts as the coarsest. Throws
  /// std::invalid_argument for unknown names.
  int coarseness(std::string_view name) const;

  /// Loss of the algorithm, with its rank ("powersgd(rank=4)"), after `encodings` encodings.
  Coarseness given_up(std::string_view name, int encodings = 1) const;

  /// True if `name` is a program without a place of its own, which counts as the coarsest.
  bool is_assumed(std::string_view name) const;

  /// Algorithms of a list, in its order, with places up to that of `coarsest` ("none": raw and
  /// lossless ones). If `coarsest` gives a rank, leaves out lower ranks at its place.
  std::vector<std::string> not_coarser(const std::vector<std::string>& algorithms,
                                       std::string_view coarsest) const;
};

/// Order of the built-in algorithms: "none, lossless < fp16, bf16 < int8block, fp8block < …".
std::string describe_accuracy_order();

/// Parses an order given on the command line. Each text is "tern.pse=terngrad" (the same place as
/// that algorithm) or "tern.pse=2" (a place). Throws io::InputError for anything else.
AccuracyOrder parse_accuracy(const std::vector<std::string>& texts);

}  // namespace hipress::planner
