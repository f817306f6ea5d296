#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "planner/bound/costs.hpp"
#include "planner/bound/ready_times.hpp"
#include "planner/bound/work.hpp"

namespace hipress::planner {

/// Options still allowed, per gradient in the order of backward: indices into the gradient's work.
using Allowed = std::vector<std::vector<std::uint16_t>>;

/// A plan of the linear program: a mixture of options per gradient.
struct Mixture {
  struct Share {
    std::uint16_t option = 0;  ///< index into the work of the gradient
    double weight = 0;
  };
  /// In the order of backward; a gradient's weights sum up to 1.
  std::vector<std::vector<Share>> gradients;
};

/// The linear program of docs/bound.md, for plans of one scheme. Each *line* is a constraint: one
/// resource, of one node or on average over nodes, has to do the work of one gradient and of all
/// later ones after this gradient's ready time.
class Relaxation {
 public:
  Relaxation(const ReadyTimes& ready, const Machines& machines,
             std::vector<std::vector<OptionWork>> work);

  /// The options of all gradients, without any restriction.
  Allowed all() const;

  struct Verdict {
    bool refuted = false;  ///< no plan of the allowed options ends in time
    Mixture mixture;       ///< near the program's optimum; empty if a gradient had no option left
  };
  /// Tries to prove by the linear program that no plan of these options ends at `end` (ps) or
  /// earlier.
  Verdict test(double end, const Allowed& allowed);

  std::span<const OptionWork> work(std::size_t place) const { return work_[place]; }
  const std::vector<std::vector<OptionWork>>& all_work() const { return work_; }
  std::size_t places() const { return work_.size(); }

 private:
  enum Sort : std::uint8_t { kPort, kCodec, kLocal, kCollective, kHost };
  static constexpr std::size_t kSorts = 5;
  static constexpr bool is_mean_alone(std::size_t sort) { return sort >= kLocal; }
  struct Priced {
    std::size_t line = 0;
    double weight = 0;
  };
  /// A plan, and for each line the earliest end that the line implies for it.
  struct Column {
    std::vector<std::uint16_t> options;  ///< per place
    std::vector<double> values;
  };

  std::size_t line(std::size_t sort, std::size_t scope, std::size_t place) const {
    return (sort * scopes() + scope) * places() + place;
  }
  std::size_t scopes() const { return nodes_.size() + 1; }
  double slowness(std::size_t node) const;

  bool narrow(double end, const Allowed& allowed);
  void drop_dominated(std::size_t place);
  bool dominates(const OptionWork& a, const OptionWork& b) const;
  void find_constants();
  void find_constants(std::size_t scope, const std::vector<double>& own);
  double least_cost(const std::vector<Priced>& prices, std::vector<std::uint16_t>& options) const;
  Column column(std::vector<std::uint16_t> options) const;
  Mixture mixture(const std::vector<Column>& columns, const std::vector<double>& weights) const;

  const ReadyTimes& ready_;
  const PortLimit limit_;
  const std::uint32_t node_count_;
  std::vector<std::vector<OptionWork>> work_;
  std::vector<std::uint32_t> nodes_;  ///< nodes with lines of their own
  Allowed open_;                      ///< allowed options that are left
  std::vector<double> constants_;     ///< per line
  std::vector<Priced> prices_;        ///< final prices of the last test, where the next begins
};

}  // namespace hipress::planner
