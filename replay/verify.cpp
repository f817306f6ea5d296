#include "replay/verify.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <numeric>

#include "casync/topology.hpp"
#include "io/error.hpp"
#include "job/gather.hpp"
#include "plans/lossless.hpp"
#include "replay/digest.hpp"

namespace hipress::replay {
namespace {

/// Number of elements per digest in the search for a wrong value.
constexpr std::size_t kSearchBlock = 4096;

/// Elements of a library's sum that are compared with the mean at a time; they fit a core's cache.
constexpr std::size_t kBoundBlock = 8192;

/// Maximum length of a stretch. Shorter stretches give ranks more equal shares. Longer ones need
/// fewer digests, which every rank gets from every other rank.
constexpr std::int64_t kStretch = 1 << 20;

/// Tolerance of a gradient whose factors a library sums, relative to the gradient's norm. Its order
/// of summation causes roundings of 2^-24, which an ill-conditioned factor amplifies.
constexpr double kDecodedTolerance = 1e-3;

std::span<const float> part_of(std::span<const float> gradient, casync::Slice slice) {
  return gradient.subspan(static_cast<std::size_t>(slice.begin),
                          static_cast<std::size_t>(slice.elements));
}

std::vector<std::uint64_t> block_digests(std::span<const float> values) {
  std::vector<std::uint64_t> digests;
  for (std::size_t first = 0; first < values.size(); first += kSearchBlock) {
    digests.push_back(digest(values.subspan(first, std::min(kSearchBlock, values.size() - first))));
  }
  return digests;
}

/// Index of the first value that differs in any bit; the common length if all are equal.
std::size_t first_difference(std::span<const float> a, std::span<const float> b) {
  const auto same_bits = [](float x, float y) {
    return std::bit_cast<std::uint32_t>(x) == std::bit_cast<std::uint32_t>(y);
  };
  return static_cast<std::size_t>(std::ranges::mismatch(a, b, same_bits).in1 - a.begin());
}

/// Bounds on the error of rounding to a type: relative (`unit`), and absolute for subnormal numbers
/// (`least`). Numbers beyond `largest` may become infinite.
struct Rounding {
  double unit;
  double least;
  double largest;
};
constexpr Rounding kFp32{0x1p-24, 0x1p-150, 0x1.fffffep127};

Rounding rounding_of(kernels::ValueType type) {
  switch (type) {
    case kernels::ValueType::kFloat16:
      return {0x1p-11, 0x1p-25, 65504};
    case kernels::ValueType::kBfloat16:
      return {0x1p-8, 0x1p-134, 0x1.fep127};
    default:
      return kFp32;
  }
}

/// True if the dtype represents all values exactly.
bool holds(std::optional<models::Dtype> dtype, std::span<const float> values) {
  if (!dtype || dtype == models::Dtype::kFloat32) return dtype.has_value();
  const bool wide = dtype == models::Dtype::kBfloat16;
  return std::ranges::all_of(values, [&](float value) {
    const auto bits = std::bit_cast<std::uint32_t>(value);
    if (wide) return (bits & 0xffffu) == 0;
    // fp16 has 10 fraction bits, and its smallest normal number is 2^-14.
    const double size = std::fabs(double{value});
    return size <= 65504 && std::fmod(size, 0x1p-24) == 0 && (bits & 0x1fffu) == 0;
  });
}

/// Error bound of a mean over N nodes, in any order of summation:
/// |got - mean| <= relative·Σ|x|/N + absolute.
///
/// Each of the N - 1 additions rounds once. The division by N, in fp32, before or after them,
/// rounds once, too. With fp32's unit u, the relative error is (1 + u)^N - 1. If fp16 or bf16
/// values travel, each quotient is rounded to that type first, and additions round to it: with its
/// unit h, (1 + u)·(1 + h)^N - 1. A subnormal quotient is off by up to half a unit in the last
/// place, and N of them by N times as much. Additions of subnormal numbers are exact.
///
/// A partial sum may overflow if Σ|x| (fp16, bf16: Σ|x|/N), with its rounding, exceeds the type's
/// range. Then, and if an input is infinite, any result is accepted.
class ErrorBound {
 public:
  ErrorBound(std::uint32_t nodes, kernels::ValueType type) : nodes_(nodes) {
    const auto [unit, least, largest] = rounding_of(type);
    const bool casts = type != kernels::ValueType::kFloat32;
    const double growth = std::pow(1 + unit, nodes - 1);
    relative_ = growth * (1 + kFp32.unit) * (casts ? 1 + unit : 1) - 1;
    absolute_ = nodes * growth * (kFp32.least + (casts ? least : 0));
    most_magnitude_ = (largest - absolute_) / (1 + relative_) * (casts ? nodes : 1);
  }
  /// The bound for inputs with Σ|x| = `magnitude`.
  double of(double magnitude) const { return relative_ * magnitude / nodes_ + absolute_; }
  bool holds(double sum, double magnitude, float got) const {
    if (std::isnan(sum)) return std::isnan(got);
    return !(magnitude <= most_magnitude_) || std::fabs(got - sum / nodes_) <= of(magnitude);
  }

 private:
  double nodes_;
  double relative_ = 0, absolute_ = 0;
  double most_magnitude_ = 0;
};

}  // namespace

std::vector<Stretch> cut(std::span<const Reference::Partition> partitions) {
  std::vector<Stretch> stretches;
  for (std::size_t index = 0; index < partitions.size(); ++index) {
    const casync::Slice whole = partitions[index].slice;
    const std::int64_t length = partitions[index].elementwise ? kStretch : whole.elements;
    for (std::int64_t done = 0; done < whole.elements; done += length) {
      const std::int64_t elements = std::min(length, whole.elements - done);
      stretches.push_back({.partition = index, .slice = {whole.begin + done, elements}});
    }
  }
  return stretches;
}

std::vector<int> share_out(std::span<const Stretch> stretches, int ranks) {
  std::vector<std::size_t> largest_first(stretches.size());
  std::iota(largest_first.begin(), largest_first.end(), std::size_t{0});
  std::ranges::stable_sort(largest_first, std::greater(),
                           [&](std::size_t i) { return stretches[i].slice.elements; });
  std::vector<std::int64_t> load(static_cast<std::size_t>(ranks), 0);
  std::vector<int> owner(stretches.size());
  for (const std::size_t index : largest_first) {
    const auto least = std::ranges::min_element(load);
    *least += stretches[index].slice.elements;
    owner[index] = static_cast<int>(least - load.begin());
  }
  return owner;
}

Verifier::Verifier(transport::Endpoint& endpoint, const casync::TaskGraph& graph,
                   const models::Model& model, const plans::ResolvedPlan& plan,
                   const Inputs& inputs)
    : endpoint_(endpoint),
      model_(model),
      inputs_(inputs),
      nodes_(graph.nodes),
      root_(plan.plan.root),
      reference_(graph, model, plan, inputs),
      stretches_(cut(reference_.partitions())) {
  const bool copies =
      plan.plan.schedule.row().sharded ||
      casync::find_topology(plan.plan.topology).operation == casync::Operation::kBroadcast;
  for (const auto& codec : plan.codecs) {
    traits_.push_back(codec->traits());
    kept_.push_back(copies ? plans::kept_dtype(*codec) : std::nullopt);
  }
  const std::vector<int> owner = share_out(stretches_, endpoint.size());
  for (std::size_t index = 0; index < owner.size(); ++index) {
    if (owner[index] == endpoint.rank()) share_.push_back(index);
  }
}

void Verifier::verify(std::uint64_t iteration, std::span<const std::span<float>> units) {
  std::vector<std::uint64_t> mine;
  for (const Stretch& stretch : stretches_) {
    mine.push_back(digest(part_of(units[partition_of(stretch).gradient], stretch.slice)));
  }
  const auto digests = job::gather<std::uint64_t>(endpoint_, mine);
  const Finding found = check_share(iteration, digests, units);
  const std::vector<Finding> findings = job::gather(endpoint_, found);
  const auto first =
      std::ranges::find_if(findings, [](const Finding& f) { return f.stretch >= 0; });
  if (first == findings.end()) return;
  const auto owner = static_cast<int>(first - findings.begin());
  if (first->node >= 0) locate(owner, *first, units);
  const std::vector<std::string> texts = endpoint_.all_gather(text_);
  throw VerificationError(fmt::format("data does not verify after iteration {}: {}", iteration,
                                      texts[static_cast<std::size_t>(owner)]));
}

void Verifier::verify_factors(std::uint64_t iteration, std::span<const runtime::Factor> factors) {
  std::vector<std::uint64_t> mine;
  for (const runtime::Factor& factor : factors) mine.push_back(digest(factor.values));
  const auto digests = job::gather<std::uint64_t>(endpoint_, mine);
  for (std::size_t node = 1; node < digests.size(); ++node) {
    const auto at = static_cast<std::size_t>(std::ranges::mismatch(digests[node], digests[0]).in1 -
                                             digests[node].begin());
    if (at == factors.size()) continue;
    const runtime::Factor& factor = factors[at];
    throw VerificationError(fmt::format(
        "data does not verify after iteration {}: gradient {}: node {} has another factor of "
        "stage {} than node 0",
        iteration, io::quote(model_.gradients[factor.gradient].name), node, factor.stage));
  }
}

Verifier::Finding Verifier::check_share(std::uint64_t iteration, const Digests& digests,
                                        std::span<const std::span<float>> units) {
  for (const std::size_t index : share_) {
    const Stretch& stretch = stretches_[index];
    const Reference::Partition& partition = partition_of(stretch);
    const std::span<const float> have = part_of(units[partition.gradient], stretch.slice);
    const Finding finding = !partition.library ? check(index, iteration, digests)
                            : partition.elementwise
                                ? check_library(index, iteration, digests, have)
                                : check_decoded(index, iteration, digests, have);
    if (finding.stretch >= 0) return finding;
  }
  return {};
}

Verifier::Finding Verifier::check(std::size_t index, std::uint64_t iteration,
                                  const Digests& digests) {
  const Stretch& stretch = stretches_[index];
  const Reference::Partition& partition = partition_of(stretch);
  std::vector<Digest> expected(nodes_);
  text_.clear();
  reference_.run(stretch.partition, stretch.slice, iteration, [&](const Reference::Block& block) {
    for (std::uint32_t node = 0; node < nodes_; ++node) expected[node].update(block.values[node]);
    if (has_promise(partition)) check_promise(partition, iteration, block);
  });
  const auto name = static_cast<std::int64_t>(index);
  const auto result = [&](std::uint32_t node) {
    return reference_.result(stretch.partition, stretch.slice, iteration, node);
  };
  for (std::uint32_t node = 0; node < nodes_; ++node) {
    if (expected[node].value() != digests[node][index]) {
      expected_ = result(node);
      return {.stretch = name, .node = node};
    }
    const std::uint32_t like = exemplar(partition, node);
    const bool differs = expected[node].value() != expected[like].value();
    if (differs && !may_differ(partition, node) && text_.empty()) {
      const std::vector<float> first = result(like);
      const std::vector<float> other = result(node);
      const std::size_t at = first_difference(first, other);
      text_ =
          fmt::format("the graph leaves node {} and node {} different; {}", like, node,
                      describe({name, node}, stretch.slice.begin + static_cast<std::int64_t>(at),
                               other[at], first[at]));
    }
  }
  return text_.empty() ? Finding{} : Finding{.stretch = name};
}

Verifier::Finding Verifier::check_library(std::size_t index, std::uint64_t iteration,
                                          const Digests& digests, std::span<const float> have) {
  const Stretch& stretch = stretches_[index];
  text_.clear();
  for (std::size_t done = 0; done < have.size() && text_.empty(); done += kBoundBlock) {
    check_bound(partition_of(stretch), iteration,
                stretch.slice.begin + static_cast<std::int64_t>(done),
                have.subspan(done, std::min(kBoundBlock, have.size() - done)));
  }
  return compare_ranks(index, digests, have);
}

Verifier::Finding Verifier::check_decoded(std::size_t index, std::uint64_t iteration,
                                          const Digests& digests, std::span<const float> have) {
  const Stretch& stretch = stretches_[index];
  text_.clear();
  reference_.run(stretch.partition, stretch.slice, iteration, [&](const Reference::Block& block) {
    double difference = 0, norm = 0;
    for (std::size_t i = 0; i < have.size(); ++i) {
      const double expected = block.values[0][i];
      difference += (have[i] - expected) * (have[i] - expected);
      norm += expected * expected;
    }
    if (!std::isfinite(norm) || difference <= kDecodedTolerance * kDecodedTolerance * norm) return;
    text_ = fmt::format(
        "{}: the decoded sums of the library differ by {:.3g} of the norm from the reference, more "
        "than {:g}",
        place(partition_of(stretch), stretch.slice.begin, ""), std::sqrt(difference / norm),
        kDecodedTolerance);
  });
  return compare_ranks(index, digests, have);
}

Verifier::Finding Verifier::compare_ranks(std::size_t index, const Digests& digests,
                                          std::span<const float> have) {
  const auto rank = static_cast<std::size_t>(endpoint_.rank());
  for (std::uint32_t node = 0; node < nodes_; ++node) {
    if (digests[node][index] == digests[rank][index]) continue;
    expected_.assign(have.begin(), have.end());
    return {.stretch = static_cast<std::int64_t>(index), .node = node};
  }
  return text_.empty() ? Finding{} : Finding{.stretch = static_cast<std::int64_t>(index)};
}

std::uint32_t Verifier::exemplar(const Reference::Partition& partition, std::uint32_t node) const {
  switch (partition.operation) {
    case casync::Operation::kBroadcast:
      return (root_ + 1) % nodes_;
    case casync::Operation::kGather:
      return node - node % shards_of(partition);
    case casync::Operation::kReduceScatter:
      return partition.partition % shards_of(partition);
    default:
      return 0;
  }
}

std::uint32_t Verifier::shards_of(const Reference::Partition& partition) const {
  const casync::Layout& layout = reference_.layout();
  // A reduce-scatter has a partition per node, even if fewer nodes form a group with all shards.
  return partition.operation == casync::Operation::kReduceScatter
             ? layout.timetable.sharding->shards(nodes_)
             : static_cast<std::uint32_t>(layout.units[partition.gradient].partitions);
}

bool Verifier::owns(const Reference::Partition& partition, std::uint32_t node) const {
  const std::uint32_t shards = shards_of(partition);
  return node % shards == partition.partition % shards;
}

bool Verifier::may_differ(const Reference::Partition& partition, std::uint32_t node) const {
  if (partition.operation == casync::Operation::kReduceScatter) return !owns(partition, node);
  if (partition.operation != casync::Operation::kBroadcast) return false;
  const casync::Unit& unit = reference_.layout().units[partition.gradient];
  return unit.algorithm != casync::kRaw && node == root_;
}

bool Verifier::has_promise(const Reference::Partition& partition) const {
  return partition.elementwise || partition.operation == casync::Operation::kBroadcast ||
         partition.operation == casync::Operation::kGather;
}

void Verifier::check_promise(const Reference::Partition& partition, std::uint64_t iteration,
                             const Reference::Block& block) {
  switch (partition.operation) {
    case casync::Operation::kMean:
      return check_bound(partition, iteration, block.first, block.values[0]);
    case casync::Operation::kReduceScatter:  // all owners have the same bits
      return check_bound(partition, iteration, block.first, block.values[exemplar(partition, 0)]);
    case casync::Operation::kBroadcast:
      return check_copy(partition, iteration, block);
    case casync::Operation::kGather:
      return check_gathered(partition, iteration, block);
  }
}

bool Verifier::is_copy(const Reference::Partition& partition, bool kept, float root,
                       float got) const {
  const std::int8_t algorithm = reference_.layout().units[partition.gradient].algorithm;
  const bool same = std::bit_cast<std::uint32_t>(root) == std::bit_cast<std::uint32_t>(got);
  if (algorithm == casync::kRaw || kept) return same;
  const kernels::CodecTraits& traits = traits_[static_cast<std::size_t>(algorithm)];
  if (!traits.half_precision) return true;  // a lossy codec has no error bound
  const auto [unit, least, largest] = rounding_of(traits.message_values);
  if (std::isnan(root)) return std::isnan(got);
  const double size = std::fabs(double{root});
  return size > largest || std::fabs(double{got} - root) <= unit * size + least;
}

bool Verifier::keeps(const Reference::Partition& partition, std::span<const float> values) const {
  const std::int8_t algorithm = reference_.layout().units[partition.gradient].algorithm;
  return algorithm == casync::kRaw || holds(kept_[static_cast<std::size_t>(algorithm)], values);
}

void Verifier::check_gathered(const Reference::Partition& partition, std::uint64_t iteration,
                              const Reference::Block& block) {
  const casync::Unit& unit = reference_.layout().units[partition.gradient];
  std::vector<float> input(block.values[0].size());
  for (std::uint32_t first = 0; first < nodes_; first += shards_of(partition)) {
    const std::uint32_t owner = first + partition.partition;
    fill_unit(inputs_, iteration, owner, unit, model_, block.first, input);
    const bool kept = keeps(partition, input);
    const std::span<const float> got = block.values[first];  // all have the same bits
    for (std::size_t at = 0; at < input.size() && text_.empty(); ++at) {
      if (is_copy(partition, kept, input[at], got[at])) continue;
      text_ = fmt::format("{}: the reference gives {} on node {}, node {} had {}",
                          place(partition, block.first + static_cast<std::int64_t>(at), ""),
                          got[at], first, owner, input[at]);
    }
  }
}

void Verifier::check_copy(const Reference::Partition& partition, std::uint64_t iteration,
                          const Reference::Block& block) {
  const casync::Unit& unit = reference_.layout().units[partition.gradient];
  std::vector<float> input(block.values[root_].size());
  fill_unit(inputs_, iteration, root_, unit, model_, block.first, input);
  const std::uint32_t first_receiver = exemplar(partition, root_);
  const std::span<const float> received = block.values[first_receiver];
  const bool kept = keeps(partition, input);
  const auto wrong = [&](std::size_t at, std::uint32_t node) {
    text_ = fmt::format("{}: the reference gives {} on node {}, node {} broadcasts {}",
                        place(partition, block.first + static_cast<std::int64_t>(at), ""),
                        block.values[node][at], node, root_, input[at]);
  };
  const std::size_t of_root = first_difference(block.values[root_], input);
  const bool keeps_own = of_root == input.size();
  const bool takes_over = first_difference(block.values[root_], received) == input.size();
  if (!keeps_own && !takes_over && text_.empty()) wrong(of_root, root_);
  if (first_receiver == root_ && keeps_own) return;
  for (std::size_t at = 0; at < input.size() && text_.empty(); ++at) {
    if (!is_copy(partition, kept, input[at], received[at])) wrong(at, first_receiver);
  }
}

void Verifier::check_bound(const Reference::Partition& partition, std::uint64_t iteration,
                           std::int64_t first, std::span<const float> result) {
  // Sums in double precision, whose rounding is 2^29 times smaller than the bound.
  std::vector<double> sum(result.size()), magnitude(result.size());
  std::vector<float> input(result.size());
  for (std::uint32_t node = 0; node < nodes_; ++node) {
    fill_unit(inputs_, iteration, node, reference_.layout().units[partition.gradient], model_,
              first, input);
    for (std::size_t i = 0; i < input.size(); ++i) {
      sum[i] += input[i];
      magnitude[i] += std::fabs(input[i]);
    }
  }
  const ErrorBound error(nodes_, partition.sums);
  for (std::size_t i = 0; i < result.size() && text_.empty(); ++i) {
    if (error.holds(sum[i], magnitude[i], result[i])) continue;
    text_ = fmt::format("{}: {} gives {}, beyond {:.3g} of the mean {}",
                        place(partition, first + static_cast<std::int64_t>(i), ""),
                        partition.library ? "the library" : "the reference", result[i],
                        error.of(magnitude[i]), sum[i] / nodes_);
  }
}

void Verifier::locate(int owner, const Finding& finding, std::span<const std::span<float>> units) {
  // The rank that checked the stretch, `owner`, has the expected values, and the node has its own.
  // Digests of blocks tell the node which block to send, and the owner finds the element in it.
  const Stretch& stretch = stretches_[static_cast<std::size_t>(finding.stretch)];
  const bool is_owner = endpoint_.rank() == owner;
  const bool is_node = endpoint_.rank() == finding.node;
  const auto expected_blocks = job::gather<std::uint64_t>(
      endpoint_, is_owner ? block_digests(expected_) : std::vector<std::uint64_t>());
  const std::span<const float> have = part_of(units[partition_of(stretch).gradient], stretch.slice);
  std::uint64_t block = 0;
  std::vector<float> shown;
  if (is_node) {
    const std::vector<std::uint64_t> mine = block_digests(have);
    const auto differing =
        std::ranges::mismatch(mine, expected_blocks[static_cast<std::size_t>(owner)]).in1;
    block = std::min<std::size_t>(differing - mine.begin(), mine.size() - 1);
    const std::size_t first = block * kSearchBlock;
    const auto values = have.subspan(first, std::min(kSearchBlock, have.size() - first));
    shown.assign(values.begin(), values.end());
  }
  const auto node = static_cast<std::size_t>(finding.node);
  const std::uint64_t where = job::gather(endpoint_, block)[node];
  const std::vector<float> values = job::gather<float>(endpoint_, shown)[node];
  if (!is_owner) return;
  const auto wanted =
      std::span<const float>(expected_).subspan(where * kSearchBlock, values.size());
  const std::size_t at = std::min(first_difference(values, wanted), values.size() - 1);
  const auto element = stretch.slice.begin + static_cast<std::int64_t>(where * kSearchBlock + at);
  text_ = describe(finding, element, values[at], wanted[at]);
}

std::string Verifier::describe(const Finding& finding, std::int64_t element, float got,
                               float expected) const {
  const auto& partition = partition_of(stretches_[static_cast<std::size_t>(finding.stretch)]);
  return fmt::format("{}: got {} (0x{:08x}), expected {} (0x{:08x})",
                     place(partition, element, fmt::format(", node {}", finding.node)), got,
                     std::bit_cast<std::uint32_t>(got), expected,
                     std::bit_cast<std::uint32_t>(expected));
}

std::string Verifier::place(const Reference::Partition& partition, std::int64_t element,
                            const std::string& node) const {
  const casync::Unit& unit = reference_.layout().units[partition.gradient];
  for (const casync::Member& member : casync::places(unit, model_)) {
    if (element >= member.first + member.elements) continue;
    return fmt::format("gradient {}{}, element {}",
                       io::quote(model_.gradients[member.gradient].name), node,
                       element - member.first);
  }
  return fmt::format("the zeros behind {}{}, element {}", unit.name, node, element);
}

}  // namespace hipress::replay
