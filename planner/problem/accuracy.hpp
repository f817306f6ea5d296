#pragma once

#include <compare>
#include <map>
#include <string>
#include <string_view>
#include <vector>

namespace hipress::planner {

/// How much of a gradient is given up: by the algorithm's place, within it by how often it is
/// encoded on its way, and by rank.
struct Coarseness {
  int place = 0;          ///< 0: nothing
  int encodings = 0;      ///< casync::Topology::encodings; of factors, which travel raw, 1
  int negative_rank = 0;  ///< of algorithms that have one: a higher rank keeps more
  auto operator<=>(const Coarseness&) const = default;
};

/// How much of a gradient algorithms give up, as places in an order, the coarsest last.
struct AccuracyOrder {
  /// Places of programs, and of built-in algorithms that are to have another one.
  std::map<std::string, int> places = {};

  /// Raw 0, else the algorithm's row's. `name` may have parameters. A program (x.pse) that has no
  /// place is as coarse as the coarsest. std::invalid_argument for others.
  int coarseness(std::string_view name) const;

  /// The same with the algorithm's rank, "powersgd(rank=4)", encoded so often; raw: nothing.
  Coarseness given_up(std::string_view name, int encodings = 1) const;

  /// Whether it is a program whose place is only assumed.
  bool is_assumed(std::string_view name) const;

  /// The algorithms that are not coarser than `coarsest` ("none": raw, and lossless ones), in their
  /// order; of those of its place that have a rank, if it has one too, those of its rank or more.
  std::vector<std::string> not_coarser(const std::vector<std::string>& algorithms,
                                       std::string_view coarsest) const;
};

/// "none, lossless < fp16, bf16 < int8block, fp8block < …", of the built-in algorithms.
std::string describe_accuracy_order();

/// The order that command lines give: each text is "tern.pse=terngrad", as coarse as that one, or
/// "tern.pse=2", that place. io::InputError for anything else.
AccuracyOrder parse_accuracy(const std::vector<std::string>& texts);

}  // namespace hipress::planner
