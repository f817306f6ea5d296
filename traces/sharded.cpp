// Finds the collectives of a step that gather parameters and reduce gradients to shards. Derives
// the job's layers and schedule from them.
//
// The parameters of one reduction are a layer. If the names of FSDP2's ranges tell layers, a
// layer's gathers have the same name; otherwise they have the same size.

#include "traces/sharded.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <set>
#include <utility>

#include "models/model.hpp"
#include "traces/tensors.hpp"

namespace hipress::traces {
namespace {

using Pointers = std::vector<const StepCollective*>;

constexpr std::int64_t kMostRanks = 1 << 20;
constexpr double kNearly = 0.05;  // tolerance: padding, parameters too small to be sharded

/// Sum and product that saturate, since a trace may contain any count.
std::int64_t sum_of(std::int64_t a, std::int64_t b) {
  return a > INT64_MAX - b ? INT64_MAX : a + b;
}
std::int64_t product_of(std::int64_t a, std::int64_t b) {
  return b > 0 && a > INT64_MAX / b ? INT64_MAX : a * b;
}

/// Elements before sharding: the output of a gather, or the input of a reduction.
std::int64_t whole_of(const StepCollective& one, std::int64_t ranks) {
  const bool gathers = one.kind == CollectiveKind::kAllGather;
  const std::int64_t whole = gathers ? one.out_elements : one.in_elements;
  const std::int64_t shard = gathers ? one.in_elements : one.out_elements;
  const std::int64_t made = whole > 0 ? whole : product_of(shard, ranks);
  return made <= models::kMaxElements ? made : 0;
}

/// Number of ranks that participate; 0 if unknown.
std::int64_t ranks_of(const StepCollective& one) {
  if (one.group_size) return *one.group_size;
  const std::int64_t less = std::min(one.in_elements, one.out_elements);
  const std::int64_t more = std::max(one.in_elements, one.out_elements);
  return less > 0 && more % less == 0 ? more / less : 0;
}

/// Identifier of a collective's process group.
std::string group_of(const StepCollective& one) {
  return one.group.empty() ? fmt::format("of {}", ranks_of(one)) : one.group;
}

bool is_near(std::int64_t a, std::int64_t b) {
  const auto more = static_cast<double>(std::max(a, b));
  return std::abs(static_cast<double>(a) - static_cast<double>(b)) <= kNearly * more;
}

class Finder {
 public:
  explicit Finder(const ShardedStep& step) : step_(step) {}

  std::optional<Sharding> find() {
    if (!choose_group()) return std::nullopt;
    find_passes();
    find_gathers();
    if (made_.problem.empty()) make_layers();
    if (step_.has_buckets && made_.replicas == 1 && !of_fsdp_) return std::nullopt;
    const bool to_one = reductions_.front()->kind == CollectiveKind::kReduce;
    if (to_one && !made_.problem.empty()) return std::nullopt;
    if (made_.problem.empty()) say_schedule();
    add_totals();
    return std::move(made_);
  }

 private:
  /// Chooses the reductions of the group that reduces the most elements. Groups that also reduce
  /// outside of backward do not count: tensor parallelism scatters activations in forward. Returns
  /// false if there are no reductions.
  bool choose_group() {
    for (const CollectiveKind kind : {CollectiveKind::kReduceScatter, CollectiveKind::kReduce}) {
      std::map<std::string, std::int64_t> elements;
      std::set<std::string> forward;
      for (const StepCollective& one : step_.collectives) {
        if (one.kind != kind) continue;
        of_fsdp_ = of_fsdp_ || one.of_fsdp;
        if (!one.in_backward && !one.of_fsdp) forward.insert(group_of(one));
      }
      for (const StepCollective& one : step_.collectives) {
        const bool may = one.kind == kind && (one.of_fsdp || !of_fsdp_) && one.in_backward;
        if (may && !forward.contains(group_of(one)))
          add(elements[group_of(one)], whole_of(one, std::max<std::int64_t>(1, ranks_of(one))));
      }
      if (elements.empty()) continue;
      choose_reductions(kind, elements);
      return true;
    }
    return false;
  }

  /// Adds a collective of `elements` elements, and 1: among groups of unknown sizes, the group with
  /// the most collectives then has the largest sum. The sum saturates.
  static void add(std::int64_t& sum, std::int64_t elements) {
    sum = sum_of(sum, sum_of(elements, 1));
  }

  void choose_reductions(CollectiveKind kind, const std::map<std::string, std::int64_t>& elements) {
    using Entry = std::pair<const std::string, std::int64_t>;
    group_ = std::ranges::max_element(elements, {}, &Entry::second)->first;
    for (const StepCollective& one : step_.collectives) {
      const bool may = one.kind == kind && (one.of_fsdp || !of_fsdp_) && one.in_backward;
      if (may && group_of(one) == group_) reductions_.push_back(&one);
    }
    if (elements.size() > 1) {
      made_.assumed.push_back(
          fmt::format("{} process groups reduce to shards in backward; the model has the layers of "
                      "the one that reduces most",
                      elements.size()));
    }
    made_.ranks = ranks_of(*reductions_.front());
    if (made_.ranks == 0) made_.ranks = step_.ranks.value_or(0);
    if (made_.ranks > kMostRanks) made_.ranks = 0;  // not plausible
  }

  /// Keeps the reductions of the last pass that has reductions.
  void find_passes() {
    std::map<int, std::vector<std::int64_t>> sizes;
    for (const StepCollective* one : reductions_) {
      sizes[one->pass].push_back(whole_of(*one, made_.ranks));
    }
    pass_ = sizes.rbegin()->first;
    made_.passes = pass_ + 1;
    made_.reduces_once = sizes.size() == 1;
    if (!made_.reduces_once && static_cast<int>(sizes.size()) < made_.passes) {
      made_.problem = fmt::format(
          "it goes backward {} times and reduces in {} of them; trace steps that reduce in all "
          "or in the last alone",
          made_.passes, sizes.size());
    }
    for (const auto& [pass, of_pass] : sizes) {
      if (of_pass == sizes.rbegin()->second) continue;
      made_.problem = fmt::format(
          "its backward passes reduce different layers ({} in pass {}, {} in the last); trace "
          "the step of one model",
          of_pass.size(), pass + 1, sizes.rbegin()->second.size());
    }
    for (const StepCollective* one : reductions_) {
      if (one->pass == pass_) last_.push_back(one);
      if (whole_of(*one, made_.ranks) == 0) made_.problem = no_sizes("reduce-scatters");
    }
    if (static_cast<std::size_t>(pass_) < step_.forward_s.size()) {
      made_.forward_s = median_forward();
    }
    made_.optimizer_s = step_.optimizer_s;
  }

  static std::string no_sizes(std::string_view what) {
    return fmt::format(
        "the trace does not tell the sizes of its {}: record with record_shapes=True, or with NCCL "
        "on PyTorch 2",
        what);
  }

  std::optional<double> median_forward() const {
    std::vector<double> times;
    for (int pass = 0; pass <= pass_; ++pass) {
      const auto& one = step_.forward_s[static_cast<std::size_t>(pass)];
      if (!one) return std::nullopt;
      times.push_back(*one);
    }
    return median(std::move(times));
  }

  /// True if the collective may gather parameters. If FSDP's collectives are marked, it must be one
  /// of them; otherwise its group or its number of ranks must be that of the reductions.
  bool may_gather(const StepCollective& one) const {
    if (one.kind != CollectiveKind::kAllGather) return false;
    if (of_fsdp_) return one.of_fsdp;
    const std::int64_t ranks = ranks_of(one);
    return one.group == reductions_.front()->group || one.group.empty() ||
           (ranks == made_.ranks && !has_gathers_in_group_);
  }

  void find_gathers() {
    has_gathers_in_group_ = std::ranges::any_of(step_.collectives, [&](const StepCollective& one) {
      return one.kind == CollectiveKind::kAllGather && group_of(one) == group_;
    });
    Pointers all;
    for (const StepCollective& one : step_.collectives) {
      if (may_gather(one)) all.push_back(&one);
    }
    const bool told = std::ranges::all_of(
        all, [&](const StepCollective* one) { return whole_of(*one, made_.ranks) > 0; });
    if (!told && made_.problem.empty()) made_.problem = no_sizes("all-gathers");
    if (!made_.problem.empty()) return;
    if (match(all)) return;
    match_sums(all);
  }

  /// Key that a reduction and the gathers of its layer share: a name or a size.
  std::string key_of(const StepCollective& one) const {
    if (by_name_ && one.layer) return "named " + *one.layer;
    return std::to_string(whole_of(one, made_.ranks));
  }

  /// Matches gathers to reductions by name or size. Returns false if a reduction lacks gathers.
  bool match(const Pointers& all) {
    const auto named = [](const StepCollective* one) { return one->layer.has_value(); };
    std::set<std::string> names;
    for (const StepCollective* one : last_) names.insert(one->layer.value_or(""));
    by_name_ = std::ranges::all_of(last_, named) && std::ranges::all_of(all, named) &&
               names.size() == last_.size();
    std::map<std::string, std::size_t> reduced, gathered;
    for (const StepCollective* one : last_) ++reduced[key_of(*one)];
    for (const StepCollective* one : all) ++gathered[key_of(*one)];
    std::int64_t unmatched = 0;
    for (const StepCollective* one : last_) {
      unmatched += gathered[key_of(*one)] < reduced[key_of(*one)] ? 1 : 0;
    }
    if (unmatched > 0) {
      unmatched_ = unmatched;
      return false;
    }
    std::int64_t left_out = 0, elements = 0;
    for (const StepCollective* one : all) {
      if (reduced.contains(key_of(*one))) {
        gathers_.push_back(one);
      } else {
        ++left_out;
        elements = sum_of(elements, whole_of(*one, made_.ranks));
      }
    }
    if (left_out > 0) {
      made_.assumed.push_back(fmt::format(
          "{} all-gathers of {} elements have the size of no reduction (frozen parameters, "
          "metrics, evaluation) and are not in the model",
          left_out, elements));
    }
    return true;
  }

  std::int64_t elements_of(const Pointers& some) const {
    std::int64_t sum = 0;
    for (const StepCollective* one : some) sum = sum_of(sum, whole_of(*one, made_.ranks));
    return sum;
  }

  /// If gathers have more elements than reductions, leaves out the last repeated gather that makes
  /// up the difference.
  void leave_out_repeated(Pointers& gathers, std::int64_t reduced) {
    const std::int64_t all = elements_of(gathers);
    if (all <= reduced || is_near(all, reduced)) return;
    for (std::size_t i = gathers.size(); i-- > 0;) {
      const std::int64_t whole = whole_of(*gathers[i], made_.ranks);
      const auto before = gathers.begin() + static_cast<std::ptrdiff_t>(i);
      const bool again = std::any_of(gathers.begin(), before, [&](const StepCollective* one) {
        return whole_of(*one, made_.ranks) == whole;
      });
      if (!again || !is_near(all - whole, reduced)) continue;
      gathers.erase(before);
      made_.assumed.push_back(
          fmt::format("{} elements are taken to be gathered again in forward, since that many more "
                      "are gathered than are reduced",
                      whole));
      return;
    }
  }

  /// Matches gathers and reductions by their totals if their sizes differ, as in DeepSpeed.
  void match_sums(const Pointers& all) {
    Pointers forward, backward, behind;
    for (const StepCollective* one : all) {
      if (one->in_backward && one->pass == pass_) backward.push_back(one);
      if (!one->in_backward && one->pass == pass_) forward.push_back(one);
      if (!one->in_backward && one->pass > pass_) behind.push_back(one);
    }
    const std::int64_t reduced = elements_of(last_), gathered = elements_of(forward);
    leave_out_repeated(forward, reduced);
    if (backward.empty() && is_near(elements_of(behind), reduced)) {
      gathers_ = behind;
      gathers_at_once_ = true;
      made_.assumed.emplace_back(
          "the job gathers its parameters behind its optimizer (ZeRO-1, -2): parameters that are "
          "reduced together are a layer of the model, and the schedule gathers layers one by one "
          "in forward");
    } else if (!forward.empty() && is_near(elements_of(forward), reduced)) {
      gathers_ = forward;
      gathers_.insert(gathers_.end(), backward.begin(), backward.end());
      by_sum_ = true;
      made_.assumed.push_back(
          fmt::format("gathers and reductions have different sizes (ZeRO-3), and {} and {} "
                      "elements: parameters that are gathered together are a layer of the model, "
                      "and each layer is ready with the reduction of its last element",
                      elements_of(forward), reduced));
    } else {
      made_.problem = fmt::format(
          "elements are not conserved: it reduces {} elements and gathers {} before its backward "
          "pass, and {} of its {} reduce-scatters have no all-gather of their size; trace whole "
          "steps of one job",
          reduced, gathered, unmatched_, last_.size());
    }
  }

  void make_layers() {
    if (by_sum_) {
      make_layers_of_gathers();
    } else {
      for (const StepCollective* one : last_) add_layer(*one);
      count_gathers();
    }
    say_repeated();
    say_frozen();
    find_replicas();
    name_layers();
    const std::int64_t times = made_.reduces_once ? 1 : made_.passes;
    for (ShardedLayer& layer : made_.layers) {
      layer.reduced_bytes = product_of(layer.reduced_bytes, times);
    }
  }

  void add_layer(const StepCollective& reduction) {
    ShardedLayer layer{.name = reduction.layer.value_or(""),
                       .elements = whole_of(reduction, made_.ranks),
                       .reduced_dtype = reduction.dtype,
                       .ready_s = reduction.ready_s};
    layer.reduced_bytes = bytes_of(reduction, layer.elements);
    add_gradients(reduction, layer);
    made_.layers.push_back(std::move(layer));
  }

  /// Sets a layer's gradients if they fill the reduction's buffer, either with all first dimensions
  /// padded to a multiple of the ranks, or with padding at the end only.
  void add_gradients(const StepCollective& reduction, ShardedLayer& layer) const {
    std::int64_t sum = 0, padded = 0;
    for (const auto& shape : reduction.gradients) {
      const std::int64_t elements = elements_or_none(shape);
      if (elements == 0 || made_.ranks == 0) return;
      const std::int64_t rows = (shape.front() + made_.ranks - 1) / made_.ranks * made_.ranks;
      sum = sum_of(sum, elements);
      padded = sum_of(padded, product_of(elements / shape.front(), rows));
    }
    const bool is_filled = sum <= layer.elements && layer.elements - sum < made_.ranks;
    if (reduction.gradients.empty() || (padded != layer.elements && !is_filled)) return;
    layer.gradients = reduction.gradients;
    layer.elements = sum;
  }

  /// Assigns gathers to layers. Layers of equal size take turns.
  void count_gathers() {
    std::map<std::string, std::vector<ShardedLayer*>> layers;
    for (std::size_t i = 0; i < last_.size(); ++i) {
      layers[key_of(*last_[i])].push_back(&made_.layers[i]);
    }
    if (gathers_at_once_) {
      for (ShardedLayer& layer : made_.layers) {
        layer.forward_gathers = 1;
        layer.gathered_dtype = type_of(*gathers_.front());
        layer.gathered_bytes = bytes_of(*gathers_.front(), layer.elements);
      }
      return;
    }
    std::map<std::pair<std::string, bool>, std::size_t> seen;
    for (const StepCollective* one : gathers_) {
      auto& alike = layers[key_of(*one)];
      // Backward gathers layers in the order of reduction, forward in reverse order.
      const std::size_t turn = seen[{key_of(*one), one->in_backward}]++ % alike.size();
      add_gather(*one, *alike[one->in_backward ? turn : alike.size() - 1 - turn]);
    }
  }

  void say_repeated() {
    int most = 0;
    for (const ShardedLayer& layer : made_.layers) most = std::max(most, layer.forward_gathers);
    if (most <= made_.passes) return;
    made_.assumed.push_back(
        fmt::format("a layer is gathered {} times in forward (evaluation, modules that are used "
                    "again), and the schedule gathers each {} times",
                    most, made_.passes));
  }

  /// Reports layers that gather more than they reduce. Only layers matched by name can.
  void say_frozen() {
    if (!by_name_) return;
    std::map<std::string, std::int64_t> gathered;
    for (const StepCollective* one : gathers_) {
      gathered[*one->layer] = whole_of(*one, made_.ranks);
    }
    std::int64_t elements = 0;
    for (const auto& [name, whole] : gathered) elements = sum_of(elements, whole);
    const std::int64_t reduced = elements_of(last_);
    if (elements == reduced) return;
    made_.assumed.push_back(
        fmt::format("layers gather {} elements and reduce {} (frozen parameters): the model has "
                    "the latter, so it gathers less than the job",
                    elements, reduced));
  }

  void add_gather(const StepCollective& gather, ShardedLayer& layer) const {
    ++(gather.in_backward ? layer.backward_gathers : layer.forward_gathers);
    layer.gathered_dtype = type_of(gather);
    layer.gathered_bytes =
        sum_of(layer.gathered_bytes, bytes_of(gather, whole_of(gather, made_.ranks)));
  }

  /// Makes a layer of each gather in forward, in reverse order, which is that of the reductions.
  void make_layers_of_gathers() {
    Pointers forward;
    for (const StepCollective* one : gathers_) {
      if (!one->in_backward) forward.push_back(one);
    }
    const bool again = forward.size() < gathers_.size();
    std::int64_t elements = 0;
    auto reduction = last_.begin();
    std::int64_t reduced = whole_of(**reduction, made_.ranks);
    for (std::size_t i = forward.size(); i-- > 0;) {
      ShardedLayer layer{.elements = whole_of(*forward[i], made_.ranks),
                         .reduced_dtype = (*reduction)->dtype};
      elements = sum_of(elements, layer.elements);
      while (reduced < elements && std::next(reduction) != last_.end()) {
        reduced = sum_of(reduced, whole_of(**++reduction, made_.ranks));
      }
      layer.ready_s = (*reduction)->ready_s;
      layer.reduced_bytes = bytes_of(**reduction, layer.elements);
      add_gather(*forward[i], layer);
      if (again) {
        ++layer.backward_gathers;
        layer.gathered_bytes = product_of(layer.gathered_bytes, 2);
      }
      made_.layers.push_back(std::move(layer));
    }
  }

  /// Finds replicas: all-reduces of shards in backward show them.
  void find_replicas() {
    std::multiset<std::int64_t> shards;
    for (const StepCollective* one : last_) {
      const std::int64_t whole = whole_of(*one, made_.ranks);
      shards.insert(one->out_elements > 0 || made_.ranks == 0 ? one->out_elements
                                                              : whole / made_.ranks);
    }
    Pointers means;
    for (const StepCollective& one : step_.collectives) {
      if (one.kind != CollectiveKind::kAllReduce || !one.in_backward) continue;
      if (one.pass != pass_ || (!one.group.empty() && one.group == reductions_.front()->group))
        continue;
      const auto shard = shards.find(one.in_elements);
      if (shard == shards.end()) continue;
      shards.erase(shard);
      means.push_back(&one);
    }
    if (means.empty() || !shards.empty()) return;
    for (const StepCollective* mean : means) means_.emplace(mean->in_elements, mean->group);
    made_.replicas = means.front()->group_size.value_or(
        made_.ranks > 0 ? step_.ranks.value_or(0) / made_.ranks : 0);
  }

  /// Names the layers in forward order, which is the reverse of the order of reduction.
  void name_layers() {
    std::set<std::string> names;
    for (std::size_t i = 0; i < made_.layers.size(); ++i) {
      std::string& name = made_.layers[i].name;
      if (name.empty() && by_name_) name = "root";
      if (name.empty()) name = fmt::format("layer{}", made_.layers.size() - 1 - i);
      const std::string plain = name;
      for (int again = 2; !names.insert(name).second; ++again) {
        name = fmt::format("{} ({})", plain, again);
      }
    }
  }

  void say_schedule() {
    std::vector<std::string> values;
    if (made_.replicas > 1) values.push_back(fmt::format("shard={}", made_.ranks));
    values.push_back("reshard=" + reshard());
    if (values.back() != "reshard=false" && !by_sum_) values.push_back("prefetch=" + prefetch());
    if (has_separate_communicators()) values.emplace_back("communicators=separate");
    made_.schedule = fmt::format("{}({}", made_.replicas > 1 ? "hsdp" : "fsdp", values.front());
    for (std::size_t i = 1; i < values.size(); ++i) made_.schedule += ", " + values[i];
    made_.schedule += ")";
  }

  /// Value of `reshard`: "true", "false", or the number of ranks from which backward gathers.
  std::string reshard() {
    std::int64_t again = 0, all = 0, whole = 0;
    for (const ShardedLayer& layer : made_.layers) {
      const bool is_gathered = layer.backward_gathers > 0;
      all = sum_of(all, layer.elements);
      again = sum_of(again, is_gathered ? layer.elements : 0);
      whole += is_gathered ? 0 : 1;
    }
    // The root does not count: it stays whole.
    if (made_.layers.size() > 1 && made_.layers.back().backward_gathers == 0) {
      all -= made_.layers.back().elements;
      --whole;
    }
    if (again == 0 || again < all / 2) {
      if (again > 0) say_some_stay(whole);
      return "false";
    }
    if (whole > 0) say_some_stay(whole);
    for (const StepCollective* one : gathers_) {
      const std::int64_t ranks = ranks_of(*one);
      if (one->in_backward && ranks > 1 && ranks < made_.ranks) return std::to_string(ranks);
    }
    return "true";
  }

  void say_some_stay(std::int64_t whole) {
    made_.assumed.push_back(
        fmt::format("{} of {} layers, besides the root, stay whole between forward and backward, "
                    "and the others do not: the schedule treats all alike",
                    whole, made_.layers.size()));
  }

  /// Value of `prefetch`. "none" if backward gathers the next layer after the reduction; otherwise
  /// "post" if it gathers in the function that also reduces, else "pre".
  std::string prefetch() const {
    std::size_t gathered = 0, reduced = 0, ahead = 0, behind = 0, in_hook = 0, all = 0;
    for (const StepCollective* one : gathers_) {
      all += one->in_backward && one->pass == pass_ ? 1 : 0;
    }
    auto gather = gathers_.begin();
    for (const StepCollective* reduction : last_) {
      bool in_this_hook = false;
      for (; gather != gathers_.end() && *gather < reduction; ++gather) {
        if (!(*gather)->in_backward || (*gather)->pass != pass_) continue;
        ++gathered;
        in_this_hook = (*gather)->evaluation >= 0 && (*gather)->evaluation == reduction->evaluation;
      }
      ++reduced;
      if (reduced >= all) break;
      ++(gathered > reduced ? ahead : behind);
      in_hook += gathered > reduced && in_this_hook ? 1 : 0;
    }
    if (behind > ahead) return "none";
    return in_hook * 2 > ahead ? "post" : "pre";
  }

  /// True if gathers and reductions use different groups or, if unknown, run concurrently.
  bool has_separate_communicators() const {
    if (gathers_.empty()) return false;
    const StepCollective& reduction = *last_.front();
    const StepCollective& gather = *gathers_.front();
    if (!gather.group.empty() && !reduction.group.empty()) return gather.group != reduction.group;
    std::vector<Interval> gathering, reducing;
    for (const StepCollective* one : gathers_) {
      if (one->time) gathering.push_back(*one->time);
    }
    for (const StepCollective* one : last_) {
      if (one->time) reducing.push_back(*one->time);
    }
    const TimeSet gathers(std::move(gathering)), reductions(std::move(reducing));
    const std::int64_t common =
        gathers.length() + reductions.length() - both(gathers, reductions).length();
    return 10 * common > std::min(gathers.length(), reductions.length());
  }

  void add_totals() {
    const std::set<const StepCollective*> gathers(gathers_.begin(), gathers_.end());
    const std::set<const StepCollective*> reductions(reductions_.begin(), reductions_.end());
    for (const StepCollective& one : step_.collectives) {
      if (gathers.contains(&one)) {
        add_own(made_.all_gather, one, whole_of(one, made_.ranks));
      } else if (reductions.contains(&one)) {
        add_own(made_.reduce_scatter, one, whole_of(one, made_.ranks));
      } else if (is_mean(one)) {
        add_own(made_.all_reduce, one, product_of(one.in_elements, made_.ranks));
      } else {
        add_to(made_.other, one, bytes_of(one, std::max(one.in_elements, one.out_elements)));
      }
    }
  }

  /// True for an all-reduce that averages shards over replicas, in any pass.
  bool is_mean(const StepCollective& one) const {
    return one.kind == CollectiveKind::kAllReduce && one.in_backward &&
           means_.contains({one.in_elements, one.group});
  }

  /// Type of a collective. If unknown, that of the reductions.
  const std::string& type_of(const StepCollective& one) const {
    return one.dtype.empty() ? reductions_.front()->dtype : one.dtype;
  }

  /// Bytes of `elements` elements. Unknown types count as float32.
  std::int64_t bytes_of(const StepCollective& one, std::int64_t elements) const {
    const std::string& type = type_of(one);
    return product_of(elements, type.empty() ? bytes_of_type("float32") : bytes_of_type(type));
  }

  /// Adds a collective of parameters or gradients to its total.
  void add_own(KindTotal& total, const StepCollective& one, std::int64_t elements) {
    add_to(total, one, bytes_of(one, elements));
    if (one.time) made_.times.push_back(*one.time);
  }

  const ShardedStep& step_;
  Sharding made_;
  std::string group_;
  bool of_fsdp_ = false;               // ranges of FSDP mark its collectives
  bool has_gathers_in_group_ = false;  // the reductions' group has gathers
  bool by_name_ = false, by_sum_ = false, gathers_at_once_ = false;
  int pass_ = 0;
  std::int64_t unmatched_ = 0;
  Pointers reductions_, last_, gathers_;                  // in order; last_: of the last pass
  std::set<std::pair<std::int64_t, std::string>> means_;  ///< elements, group
};

}  // namespace

std::optional<Sharding> sharding_of(const ShardedStep& step) { return Finder(step).find(); }

void add_to(KindTotal& total, const StepCollective& one, std::int64_t bytes) {
  const bool first = total.count == 0;
  ++total.count;
  total.bytes = sum_of(total.bytes, bytes);
  const auto add = [&](std::optional<double>& sum, const std::optional<double>& value) {
    if (first) sum = 0;
    sum = sum && value ? std::optional(*sum + *value) : std::nullopt;
  };
  std::optional<double> time_s;
  if (one.time) time_s = to_seconds(one.time->end - one.time->begin);
  add(total.time_s, time_s);
  add(total.exposed_s, one.exposed_s);
}

}  // namespace hipress::traces
