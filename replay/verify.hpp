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

/// Thrown if a value is wrong. Every rank throws the same error.
class VerificationError : public io::RunError {
 public:
  using io::RunError::RunError;
};

/// Unit of verification: a partition, or a stretch of an elementwise one.
struct Stretch {
  std::size_t partition = 0;  ///< index into Reference::partitions()
  casync::Slice slice;        ///< elements in the unit
};

/// Verifies the gradients after an iteration of a replay. Every rank's values must equal the serial
/// reference's bit for bit. If a library sums, they only have to be the same on all ranks.
///
/// Further checks depend on the operation:
/// - Mean of raw gradients, or of a library's sums in half precision: it differs from the mean in
///   double precision by at most the error bound of a sum in any order.
/// - Broadcast: all receivers have the same bits. Values that were sent raw or losslessly have the
///   root's bits; values that were cast differ from the root's by rounding only. The root ends with
///   the receivers' bits or with its own.
/// - Reduce-scatter: it is checked as a mean, but only on the nodes that own the shard.
/// - Gather: all nodes have the same bits, as close to the owner's as a broadcast's to the root's.
///
/// All ranks publish digests of their stretches. Each rank checks a share of the stretches against
/// these digests.
class Verifier {
 public:
  /// The arguments are as for Reference, and the same on every rank of the endpoint.
  Verifier(transport::Endpoint& endpoint, const casync::TaskGraph& graph,
           const models::Model& model, const plans::ResolvedPlan& plan, const Inputs& inputs);

  /// Verifies a rank's units (as in Runtime) after an iteration. Collective; call it after every
  /// iteration. Throws VerificationError with gradient, node, element, actual and expected value.
  void verify(std::uint64_t iteration, std::span<const std::span<float>> units);

  /// Compares digests of the gradients' factors on all ranks, which must be equal. Collective; call
  /// it after every iteration. Throws VerificationError naming gradient, stage and node.
  void verify_factors(std::uint64_t iteration, std::span<const runtime::Factor> factors);

 private:
  /// The first error that a rank finds.
  struct Finding {
    std::int64_t stretch = -1;  ///< index into `stretches_`; -1: no error
    std::int64_t node = -1;     ///< node with other values than `expected_`; -1: see `text_`
  };

  using Digests = std::vector<std::vector<std::uint64_t>>;  ///< per node and stretch

  const Reference::Partition& partition_of(const Stretch& stretch) const {
    return reference_.partitions()[stretch.partition];
  }

  Finding check_share(std::uint64_t iteration, const Digests& digests,
                      std::span<const std::span<float>> units);
  Finding check(std::size_t index, std::uint64_t iteration, const Digests& digests);
  /// Checks a library's sum: all ranks must have the same bits, within the error bound.
  Finding check_library(std::size_t index, std::uint64_t iteration, const Digests& digests,
                        std::span<const float> have);
  /// Checks values decoded from factors that a library sums: they must be the same on all ranks,
  /// and close to the reference.
  Finding check_decoded(std::size_t index, std::uint64_t iteration, const Digests& digests,
                        std::span<const float> have);
  /// Finds the first rank whose bits differ from this one's.
  Finding compare_ranks(std::size_t index, const Digests& digests, std::span<const float> have);
  /// The node whose final bits `node` must have: the first receiver of a broadcast, the first
  /// neighbour of a gather, the first owner of a reduced shard.
  std::uint32_t exemplar(const Reference::Partition& partition, std::uint32_t node) const;
  /// Number of nodes that together hold all shards of a gather or reduce-scatter.
  std::uint32_t shards_of(const Reference::Partition& partition) const;
  /// True if a reduced partition belongs to the node's shard.
  bool owns(const Reference::Partition& partition, std::uint32_t node) const;
  /// True if a node may end with bits of its own: the root of a compressed broadcast, which may
  /// keep its values, and in a reduce-scatter every node that does not own the shard.
  bool may_differ(const Reference::Partition& partition, std::uint32_t node) const;
  /// True if check_promise() applies, which compares the result with the inputs.
  bool has_promise(const Reference::Partition& partition) const;
  void check_promise(const Reference::Partition& partition, std::uint64_t iteration,
                     const Reference::Block& block);
  void check_bound(const Reference::Partition& partition, std::uint64_t iteration,
                   std::int64_t first, std::span<const float> result);
  void check_copy(const Reference::Partition& partition, std::uint64_t iteration,
                  const Reference::Block& block);
  /// Checks that gathered values are their owner's, within the codec's precision.
  void check_gathered(const Reference::Partition& partition, std::uint64_t iteration,
                      const Reference::Block& block);
  /// True if a received value is close enough to the root's (broadcast) or the owner's (gather).
  bool is_copy(const Reference::Partition& partition, bool kept, float root, float got) const;
  /// True if the unit is raw, or its codec is lossless for these values.
  bool keeps(const Reference::Partition& partition, std::span<const float> values) const;
  void locate(int owner, const Finding& finding, std::span<const std::span<float>> units);
  /// Name of an element, by the unit's member that contains it: "gradient 'fc6', …, element 17".
  std::string place(const Reference::Partition& partition, std::int64_t element,
                    const std::string& node) const;
  std::string describe(const Finding& finding, std::int64_t element, float got,
                       float expected) const;

  transport::Endpoint& endpoint_;
  const models::Model& model_;
  Inputs inputs_;
  std::uint32_t nodes_, root_;
  Reference reference_;
  std::vector<kernels::CodecTraits> traits_;        ///< per codec of the plan
  std::vector<std::optional<models::Dtype>> kept_;  ///< per codec: plans::kept_dtype()
  std::vector<Stretch> stretches_;                  ///< all stretches
  std::vector<std::size_t> share_;                  ///< stretches that this rank checks
  std::vector<float> expected_;                     ///< expected values of a finding's stretch
  std::string text_;
};

/// Stretches of the partitions, in order. Elementwise partitions are cut into stretches of 2^20
/// elements, so that all ranks share the work on a large one, such as a gradient that a library
/// sums.
std::vector<Stretch> cut(std::span<const Reference::Partition> partitions);

/// Returns a rank per stretch: assigns the largest first, and each to the least loaded rank.
std::vector<int> share_out(std::span<const Stretch> stretches, int ranks);

}  // namespace hipress::replay
