#include "planner/bound/relaxation.hpp"

#include <algorithm>
#include <array>
#include <numeric>

#include "planner/bound/matrix_game.hpp"

namespace hipress::planner {
namespace {

constexpr std::size_t kMaxNodesWithLines = 64;
constexpr int kMostRounds = 60;         // more rounds refute ends that are closer to the optimum
constexpr double kNearlySolved = 5e-5;  // relative precision with which the program is solved
constexpr double kRounding = 1e-10;     // relative margin that covers rounding errors of sums
constexpr double kKept = 0.5;           // weight of the best prices so far in the next prices

/// One number per node, and its sums over consecutive nodes g, g+1, … mod N.
class RingSums {
 public:
  explicit RingSums(std::size_t nodes) : numbers_(nodes, 0.0), sums_(nodes + 1, 0.0) {}
  void add(std::size_t node, double number) { numbers_[node] += number; }
  void refresh() {
    for (std::size_t i = 0; i < numbers_.size(); ++i) sums_[i + 1] = sums_[i] + numbers_[i];
  }
  double total() const { return sums_.back(); }
  double at(std::uint64_t node) const { return numbers_[node % numbers_.size()]; }
  double range(std::uint64_t first, std::uint64_t count) const {
    const std::uint64_t nodes = numbers_.size();
    const std::uint64_t begin = first % nodes, rest = count % nodes;
    double sum = static_cast<double>(count / nodes) * total();
    sum += begin + rest <= nodes ? sums_[begin + rest] - sums_[begin]
                                 : total() - sums_[begin] + sums_[begin + rest - nodes];
    return sum;
  }

 private:
  std::vector<double> numbers_, sums_;
};

/// Load of one node. The index g of a gradient determines which nodes serve its partitions.
double load_of(const Work& work, std::uint32_t servers, std::uint32_t g, std::uint32_t node,
               std::uint32_t nodes) {
  if (servers == 0) return work.all;
  const std::uint32_t distance = (node + nodes - g % nodes) % nodes;
  // Number of partitions without the last.
  const std::uint32_t full = servers - 1;
  double load = work.all;
  if (distance < full) load += work.served * ((full - 1 - distance) / nodes + 1);
  if (full % nodes == distance) load += work.served_last;
  return load;
}

}  // namespace

Relaxation::Relaxation(const ReadyTimes& ready, const Machines& machines,
                       std::vector<std::vector<OptionWork>> work)
    : ready_(ready),
      limit_(port_limit(machines)),
      node_count_(machines.cluster.nodes),
      work_(std::move(work)) {
  bool servers = false;
  for (const std::vector<OptionWork>& options : work_) {
    for (const OptionWork& option : options) servers = servers || option.servers > 0;
  }
  if (node_count_ < 2 || (!servers && ready.speeds.size() == 1)) return;
  nodes_.resize(node_count_);
  std::iota(nodes_.begin(), nodes_.end(), 0u);
  if (node_count_ <= kMaxNodesWithLines) return;
  std::stable_sort(nodes_.begin(), nodes_.end(), [&](std::uint32_t a, std::uint32_t b) {
    return ready_.speed_of[a] > ready_.speed_of[b];
  });
  nodes_.resize(ready.speeds.size() == 1 ? 0 : kMaxNodesWithLines);
}

Allowed Relaxation::all() const {
  Allowed allowed(places());
  for (std::size_t place = 0; place < places(); ++place) {
    allowed[place].resize(work_[place].size());
    std::iota(allowed[place].begin(), allowed[place].end(), std::uint16_t{0});
  }
  return allowed;
}

double Relaxation::slowness(std::size_t node) const {
  return ready_.speeds.front() / ready_.speeds[ready_.speed_of[node]];
}

/// Keeps only options with which the gradient can end by `end`; false if a gradient has none.
bool Relaxation::narrow(double end, const Allowed& allowed) {
  open_.assign(places(), {});
  for (std::size_t place = 0; place < places(); ++place) {
    for (const std::uint16_t option : allowed[place]) {
      if (work_[place][option].end <= end) open_[place].push_back(option);
    }
    if (open_[place].empty()) return false;
  }
  return true;
}

bool Relaxation::dominates(const OptionWork& a, const OptionWork& b) const {
  const auto no_more = [&](const Work& x, const Work& y) {
    if (x.average > y.average) return false;
    if (nodes_.empty()) return true;
    if (a.servers == b.servers) {
      return x.all <= y.all && x.served <= y.served && x.served_last <= y.served_last;
    }
    const double rounds = a.servers == 0 ? 0 : (a.servers - 1) / node_count_ + 1;
    return x.all + rounds * std::max(x.served, x.served_last) <= y.all;
  };
  return a.local <= b.local && a.collective <= b.collective && a.host <= b.host &&
         no_more(a.port, b.port) && no_more(a.codec, b.codec);
}

void Relaxation::drop_dominated(std::size_t place) {
  std::vector<std::uint16_t> kept;
  for (const std::uint16_t candidate : open_[place]) {
    const OptionWork& work = work_[place][candidate];
    const auto better = [&](std::uint16_t other) { return dominates(work_[place][other], work); };
    if (std::any_of(kept.begin(), kept.end(), better)) continue;
    std::erase_if(kept, [&](std::uint16_t other) { return dominates(work, work_[place][other]); });
    kept.push_back(candidate);
  }
  open_[place] = std::move(kept);
}

/// Computes the constant part of each line, earliest start plus tail, once for each speed.
void Relaxation::find_constants() {
  constants_.resize(kSorts * scopes() * places());
  std::vector<std::size_t> done(ready_.speeds.size(), scopes());  // a scope of each speed
  for (std::size_t scope = 0; scope < scopes(); ++scope) {
    const std::size_t speed = scope == 0 ? 0 : ready_.speed_of[nodes_[scope - 1]];
    if (done[speed] == scopes()) {
      done[speed] = scope;
      find_constants(scope, ready_.of_speed[speed]);
      continue;
    }
    for (std::size_t sort = 0; sort < kSorts; ++sort) {
      const auto first =
          constants_.begin() + static_cast<std::ptrdiff_t>(line(sort, done[speed], 0));
      std::copy_n(first, places(),
                  constants_.begin() + static_cast<std::ptrdiff_t>(line(sort, scope, 0)));
    }
  }
}

void Relaxation::find_constants(std::size_t scope, const std::vector<double>& own) {
  std::array<double, kSorts> start, tail;
  start.fill(kInfinity);
  tail.fill(kInfinity);
  for (std::size_t place = places(); place-- > 0;) {
    const double first = ready_.first(place);
    // If a line sums both directions (factor > 1), a node may receive messages before it is ready.
    const double for_port = limit_.factor > 1 ? first : own[place];
    for (const std::uint16_t option : open_[place]) {
      const OptionWork& work = work_[place][option];
      start[kPort] = std::min(start[kPort], for_port + work.port_head);
      start[kCodec] =
          std::min(start[kCodec], std::max(first + work.codec_head, own[place] + work.own_head));
      start[kLocal] = std::min(start[kLocal], first);
      start[kCollective] = std::min(start[kCollective], ready_.last(place));
      start[kHost] = std::min(start[kHost], first + work.port_head);
      tail[kPort] = std::min(tail[kPort], work.port_tail);
      tail[kCodec] = std::min(tail[kCodec], work.codec_tail);
      tail[kLocal] = tail[kCollective] = 0;
      tail[kHost] = tail[kPort];
    }
    for (std::size_t sort = 0; sort < kSorts; ++sort) {
      const double credit = sort == kPort ? limit_.factor * limit_.credit : 0;
      constants_[line(sort, scope, place)] = start[sort] + tail[sort] - credit;
    }
  }
}

/// Lagrangian at these prices: a lower bound on the program's value, and the options with it.
double Relaxation::least_cost(const std::vector<Priced>& prices,
                              std::vector<std::uint16_t>& options) const {
  std::vector<Priced> by_place = prices;
  std::sort(by_place.begin(), by_place.end(), [&](const Priced& a, const Priced& b) {
    return a.line % places() < b.line % places();
  });
  options.resize(places());
  RingSums port(node_count_), codec(node_count_);
  double port_average = 0, codec_average = 0, local = 0, collective = 0, host = 0, cost = 0;
  std::size_t next = 0;
  for (std::size_t place = 0; place < places(); ++place) {
    bool changed = false;
    for (; next < by_place.size() && by_place[next].line % places() == place; ++next) {
      const auto [index, weight] = by_place[next];
      cost += weight * constants_[index];
      const std::size_t scope = index / places() % scopes();
      const std::size_t sort = index / places() / scopes();
      changed = true;
      if (sort == kLocal) {
        local += weight;
      } else if (sort == kCollective) {
        collective += weight;
      } else if (sort == kHost) {
        host += weight;
      } else if (scope == 0) {
        (sort == kPort ? port_average : codec_average) +=
            weight * (sort == kPort ? limit_.factor : 1);
      } else if (sort == kPort) {
        port.add(nodes_[scope - 1], weight * limit_.factor);
      } else {
        codec.add(nodes_[scope - 1], weight * slowness(nodes_[scope - 1]));
      }
    }
    if (changed) {
      port.refresh();
      codec.refresh();
    }
    const bool by_node = port.total() > 0 || codec.total() > 0;
    const std::uint32_t g = ready_.order[place];
    double least = kInfinity;
    for (const std::uint16_t option : open_[place]) {
      const OptionWork& work = work_[place][option];
      double price = port_average * work.port.average + codec_average * work.codec.average +
                     local * work.local + collective * work.collective + host * work.host;
      if (by_node) {
        price += port.total() * work.port.all + codec.total() * work.codec.all;
        if (work.servers > 0) {
          const std::uint32_t full = work.servers - 1;
          price += port.range(g, full) * work.port.served +
                   port.at(g + full) * work.port.served_last +
                   codec.range(g, full) * work.codec.served +
                   codec.at(g + full) * work.codec.served_last;
        }
      }
      if (price < least) {
        least = price;
        options[place] = option;
      }
    }
    cost += least;
  }
  return cost * (1 - kRounding);
}

Relaxation::Column Relaxation::column(std::vector<std::uint16_t> options) const {
  Column column = {.options = std::move(options), .values = constants_};
  for (std::size_t scope = 0; scope < scopes(); ++scope) {
    const double slow = scope == 0 ? 1 : slowness(nodes_[scope - 1]);
    std::array<double, kSorts> load{};
    for (std::size_t place = places(); place-- > 0;) {
      const OptionWork& work = work_[place][column.options[place]];
      const std::uint32_t g = ready_.order[place];
      if (scope == 0) {
        load[kPort] += limit_.factor * work.port.average;
        load[kCodec] += work.codec.average;
        load[kLocal] += work.local;
        load[kCollective] += work.collective;
        load[kHost] += work.host;
      } else {
        const std::uint32_t node = nodes_[scope - 1];
        load[kPort] += limit_.factor * load_of(work.port, work.servers, g, node, node_count_);
        load[kCodec] += slow * load_of(work.codec, work.servers, g, node, node_count_);
      }
      for (std::size_t sort = 0; sort < kSorts; ++sort) {
        if (scope > 0 && is_mean_alone(sort)) continue;
        column.values[line(sort, scope, place)] += load[sort];
      }
    }
  }
  return column;
}

Mixture Relaxation::mixture(const std::vector<Column>& columns,
                            const std::vector<double>& weights) const {
  Mixture mixture;
  mixture.gradients.resize(places());
  for (std::size_t j = 0; j < columns.size(); ++j) {
    if (weights[j] <= 0) continue;
    for (std::size_t place = 0; place < places(); ++place) {
      std::vector<Mixture::Share>& shares = mixture.gradients[place];
      const std::uint16_t option = columns[j].options[place];
      const auto same = std::find_if(shares.begin(), shares.end(),
                                     [&](const auto& share) { return share.option == option; });
      if (same == shares.end()) {
        shares.push_back({option, weights[j]});
      } else {
        same->weight += weights[j];
      }
    }
  }
  return mixture;
}

Relaxation::Verdict Relaxation::test(double end, const Allowed& allowed) {
  Verdict verdict;
  if (!narrow(end, allowed)) {
    verdict.refuted = true;
    return verdict;
  }
  if (places() == 0) return verdict;
  find_constants();
  for (std::size_t place = 0; place < places(); ++place) drop_dominated(place);

  if (prices_.empty()) {
    prices_ = {
        {line(kPort, 0, 0), 0.5}, {line(kCodec, 0, 0), 0.25}, {line(kPort, 0, places() - 1), 0.25}};
  }
  std::vector<std::size_t> lines;
  for (const Priced& priced : prices_) lines.push_back(priced.line);
  std::vector<Column> columns;
  std::vector<double> weights = {1.0};
  std::vector<Priced> best = prices_;
  double best_cost = -kInfinity;
  const auto price = [&](const std::vector<Priced>& prices) {
    std::vector<std::uint16_t> options;
    const double cost = least_cost(prices, options);
    columns.push_back(column(std::move(options)));
    if (cost > best_cost) {
      best_cost = cost;
      best = prices;
    }
    return cost > end;
  };
  verdict.refuted = price(prices_);
  for (int round = 0; round < kMostRounds && !verdict.refuted; ++round) {
    std::vector<double> game;
    for (const std::size_t index : lines) {
      for (const Column& plan : columns) game.push_back(plan.values[index]);
    }
    const Equilibrium found = solve_game(game, lines.size(), columns.size());
    weights = found.columns;
    // Values of the mixture on all lines; the lines with the largest values join the game.
    std::vector<double> values(constants_.size(), 0.0);
    for (std::size_t j = 0; j < columns.size(); ++j) {
      if (weights[j] <= 0) continue;
      for (std::size_t i = 0; i < values.size(); ++i)
        values[i] += weights[j] * columns[j].values[i];
    }
    const auto fullest = std::max_element(values.begin(), values.end());
    if (*fullest <= end || *fullest - best_cost <= kNearlySolved * *fullest) break;
    for (std::size_t sort = 0; sort < kSorts; ++sort) {
      const auto first = values.begin() + static_cast<std::ptrdiff_t>(line(sort, 0, 0));
      const auto last = first + static_cast<std::ptrdiff_t>(scopes() * places());
      const auto most = static_cast<std::size_t>(std::max_element(first, last) - values.begin());
      if (values[most] > best_cost && std::find(lines.begin(), lines.end(), most) == lines.end()) {
        lines.push_back(most);
      }
    }
    std::vector<Priced> prices, smooth;
    for (std::size_t i = 0; i < found.rows.size(); ++i) {
      if (found.rows[i] > 0) prices.push_back({lines[i], found.rows[i]});
    }
    for (const Priced& priced : prices)
      smooth.push_back({priced.line, (1 - kKept) * priced.weight});
    for (const Priced& priced : best) smooth.push_back({priced.line, kKept * priced.weight});
    verdict.refuted = price(smooth) || price(prices);
  }
  prices_ = best;
  weights.resize(columns.size(), 0.0);
  verdict.mixture = mixture(columns, weights);
  return verdict;
}

}  // namespace hipress::planner
