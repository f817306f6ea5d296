#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "io/error.hpp"
#include "replay/reference.hpp"
#include "runtime/rank_runtime.hpp"
#include "transport/endpoint.hpp"

namespace hipress::replay {

/// Data that does not verify; thrown by every rank alike.
class VerificationError : public io::RunError {
 public:
  using io::RunError::RunError;
};

/// What is checked as one: a partition, or a stretch of one in which every element is on its own.
struct Stretch {
  std::size_t partition = 0;  ///< index into Reference::partitions()
  casync::Slice slice;        ///< in the unit
};

/// Verifies what a replay leaves in the gradients. Every rank's values equal the serial reference's
/// bit for bit; where a library sums, they only have to be the same on all ranks. Further checks
/// depend on the operation. Means of raw gradients, or of gradients that a library sums in half
/// precision, lie within the error bound of such a sum in any order around the mean in double
/// precision. A broadcast leaves the same bits on all receivers, unless nodes on the way encode
/// anew. They are the root's bits if it is raw or its codec loses nothing; after a cast, they lie
/// within its rounding. The root ends with these bits or with its own. A reduce-scatter is checked
/// as a mean, but only on the nodes whose shard it is. A gather leaves the same bits on all nodes,
/// as near to the owner's as a broadcast's to the root's. Each rank checks a share of the stretches
/// against the digests of them that all ranks publish.
class Verifier {
 public:
  /// As Reference. Every rank of the endpoint makes one with the same arguments.
  Verifier(transport::Endpoint& endpoint, const casync::TaskGraph& graph,
           const models::Model& model, const plans::ResolvedPlan& plan, const Inputs& inputs);

  /// Compares one rank's units (as Runtime has them) after an iteration; called by all ranks, after
  /// every iteration. Throws VerificationError that names gradient, node and element, and what was
  /// found and expected there.
  void verify(std::uint64_t iteration, std::span<const std::span<float>> units);

  /// Compares hashes of what gradients' factors have become with those of the other ranks, which
  /// have the same gradients. All ranks call it after an iteration. Throws VerificationError that
  /// names gradient, stage and node.
  void verify_factors(std::uint64_t iteration, std::span<const runtime::Factor> factors);

 private:
  /// The first thing a rank finds wrong.
  struct Finding {
    std::int64_t stretch = -1;  ///< index into `stretches_`; -1: all is well
    std::int64_t node = -1;     ///< whose values differ from `expected_`; -1: `text_` says it all
  };

  using Digests = std::vector<std::vector<std::uint64_t>>;  ///< per node, of all stretches

  const Reference::Partition& partition_of(const Stretch& stretch) const {
    return reference_.partitions()[stretch.partition];
  }

  Finding check_share(std::uint64_t iteration, const Digests& digests,
                      std::span<const std::span<float>> units);
  Finding check(std::size_t index, std::uint64_t iteration, const Digests& digests);
  /// Where a library has summed: this rank's values have the bits of all others', and are right.
  Finding check_library(std::size_t index, std::uint64_t iteration, const Digests& digests,
                        std::span<const float> have);
  /// The same of what is decoded from factors that a library sums: close to the reference.
  Finding check_decoded(std::size_t index, std::uint64_t iteration, const Digests& digests,
                        std::span<const float> have);
  /// Whether all ranks have the bits of this one.
  Finding compare_ranks(std::size_t index, const Digests& digests, std::span<const float> have);
  /// The node that a node must end like: of a broadcast the first to receive, of what neighbours
  /// gather the first of them, of what is reduced the first whose shard it is.
  std::uint32_t exemplar(const Reference::Partition& partition, std::uint32_t node) const;
  /// Nodes that have all shards of what is gathered or reduced.
  std::uint32_t shards_of(const Reference::Partition& partition) const;
  /// Whether a reduced partition is of the node's shard.
  bool owns(const Reference::Partition& partition, std::uint32_t node) const;
  /// Whether a node may end with bits of its own. In a broadcast whose codec changes values: the
  /// root, which keeps its own, and every node that gets what was encoded anew. In a
  /// reduce-scatter: every node whose shard it is not.
  bool may_differ(const Reference::Partition& partition, std::uint32_t node) const;
  /// Whether the operation promises something of the values themselves.
  bool has_promise(const Reference::Partition& partition) const;
  void check_promise(const Reference::Partition& partition, std::uint64_t iteration,
                     const Reference::Block& block);
  void check_bound(const Reference::Partition& partition, std::uint64_t iteration,
                   std::int64_t first, std::span<const float> result);
  void check_copy(const Reference::Partition& partition, std::uint64_t iteration,
                  const Reference::Block& block);
  /// What is gathered is what its owner had, as far as a codec keeps it.
  void check_gathered(const Reference::Partition& partition, std::uint64_t iteration,
                      const Reference::Block& block);
  /// Of a broadcast, how far a receiver's value may be from the root's; of a gather, the owner's.
  bool is_copy(const Reference::Partition& partition, bool kept, float root, float got) const;
  /// Whether the unit's codec loses nothing of these values; of raw ones, too.
  bool keeps(const Reference::Partition& partition, std::span<const float> values) const;
  void locate(int owner, const Finding& finding, std::span<const std::span<float>> units);
  /// "gradient 'fc6', …, element 17": the member of a unit that an element is of.
  std::string place(const Reference::Partition& partition, std::int64_t element,
                    const std::string& node) const;
  std::string describe(const Finding& finding, std::int64_t element, float got,
                       float expected) const;

  transport::Endpoint& endpoint_;
  const models::Model& model_;
  Inputs inputs_;
  std::uint32_t nodes_, root_;
  Reference reference_;
  std::vector<kernels::CodecTraits> traits_;        ///< of the plan's codecs
  std::vector<std::optional<models::Dtype>> kept_;  ///< plans::kept_dtype() of them
  std::vector<Stretch> stretches_;                  ///< all there are
  std::vector<std::size_t> share_;                  ///< those that this rank checks
  std::vector<float> expected_;                     ///< of the finding's stretch on its node
  std::string text_;
};

/// The partitions in their order. Partitions in which every element is on its own are cut into
/// stretches of a million elements, so that all ranks share a gradient that is large, or that is
/// one partition because a library sums it.
std::vector<Stretch> cut(std::span<const Reference::Partition> partitions);

/// Which rank checks each stretch: the largest first, each to the least loaded rank.
std::vector<int> share_out(std::span<const Stretch> stretches, int ranks);

}  // namespace hipress::replay
