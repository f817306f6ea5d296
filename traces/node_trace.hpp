#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <vector>

#include "traces/byte_stream.hpp"
#include "traces/imported.hpp"
#include "traces/json_trace.hpp"
#include "traces/ranks.hpp"
#include "traces/sharded_ranges.hpp"
#include "traces/updated_tensors.hpp"

namespace hipress::traces {

/// A node of an execution trace, PyTorch's or Chakra's, with the fields that gradients need.
struct TraceNode {
  std::int64_t id = 0;
  std::int64_t parent = -1;  ///< ID of the caller
  std::string_view name;
  std::vector<std::int64_t> shape = {};  ///< shape of the first input
  bool has_shape = false;                ///< false: unknown
  std::string dtype = {};
  /// Size of an all-reduce in bytes, from the node's attributes; empty for other nodes.
  std::optional<std::int64_t> all_reduce_bytes = {};
  bool is_cpu = false;  ///< it is the CPU's record of a collective
  bool is_reduce_scatter = false;
  /// Communication according to the node's attributes: a kind such as "all-gather", and bytes.
  std::string_view communication = {};
  std::int64_t bytes = 0;
  const InputShapes* shapes = nullptr;  ///< shapes of the inputs; null: unknown
};

/// Makes steps from an execution trace's nodes, in any order. They have sizes but no times.
class NodeTrace {
 public:
  void add(const TraceNode& node);
  /// Returns steps with the sizes of gradients and buckets. Call it once. Returns nothing if no
  /// node is PyTorch's and no node has attributes of communication. Throws io::InputError, without
  /// the file's name, if the trace is of several ranks.
  std::optional<Imported> finish();

 private:
  enum class Role : std::uint8_t {
    kOther,
    kAccumulate,
    kEvaluate,
    kAllReduce,  ///< an operator of c10d
    kKernel,     ///< the GPU's record of an all-reduce, with attributes
    kCpuKernel,  ///< the CPU's record of an all-reduce, with attributes
    kReduceScatter,
    kOptimizer,  ///< step of an optimizer
    kStep
  };
  struct Kept {
    std::int64_t id = 0;
    Role role = Role::kOther;
    TracedGradient gradient = {};
    std::string name = {};  ///< name of a step
  };
  /// Collectives of one kind, as recorded by the CPU and by the GPU.
  struct Held {
    HeldCollectives cpu, gpu;
  };
  struct Link {
    std::int64_t parent = -1;
    Role role = Role::kOther;
  };

  /// A collective, or a copy of gradients into a reduction's buffer.
  struct Start {
    std::int64_t id = 0;
    bool is_copy = false;
    StepCollective what = {};
  };

  void keep_communication(const TraceNode& node, std::string_view name);
  void keep_sparse(const TraceNode& node, std::string_view name);
  std::vector<HeldCollectives> held() const;
  std::map<std::int64_t, SparseSize> sparse_gradients() const;
  void check_ranks();
  void keep_sharded(const TraceNode& node, std::string_view name);
  void find_callers(Start& start) const;
  std::optional<ShardedStep> sharded_between(std::int64_t first, std::int64_t end) const;
  void add_sharded(std::vector<TracedStep>& steps, const std::vector<std::int64_t>& begins) const;
  bool has(Role role) const;
  Role role_of_buckets() const;
  void add_steps(Imported& imported) const;
  std::int64_t caller(std::int64_t id, Role role) const;
  bool is_below(std::int64_t id, Role role) const { return caller(id, role) >= 0; }
  void find_updates();
  void add_to_step(const Kept& kept, Role bucket, TracedStep& step) const;

  std::unordered_map<std::int64_t, Link> links_;
  std::vector<Kept> kept_;
  std::int64_t nodes_ = 0;
  std::int64_t optimizer_steps_ = 0;
  bool is_of_pytorch_ = false;
  std::unordered_map<std::int64_t, FsdpRange> ranges_;
  std::set<std::int64_t> evaluations_;         // functions of backward
  std::vector<Start> started_;                 // sorted by finish()
  std::map<std::string, Held> held_, called_;  // from nodes' attributes; from c10d's operators
  std::vector<std::pair<std::int64_t, SparseSize>> sparse_;  // sizes of sparse tensors, by node ID
  std::string sparse_operator_;                            // operator that makes a sparse gradient
  std::vector<std::pair<std::int64_t, Update>> in_place_;  // operators by node ID
  UpdatedTensors updated_;
  RankEvidence ranks_;
  std::int64_t roots_ = 0;  // number of process nodes
};

/// Numbers of the first innermost list in Python's text of shapes, such as "[[[2049000], []], []]".
/// Empty for other text.
std::vector<std::int64_t> first_shape(std::string_view text);

/// All shapes in Python's text of shapes, as for first_shape().
InputShapes input_shapes(std::string_view text);

/// Reads a Chakra trace: GlobalMetadata, then Nodes (et_def.proto of mlcommons/chakra). Throws
/// io::InputError for bytes that are not such messages, and for exports of hipress-sim.
Imported read_chakra_trace(ByteStream& bytes);

}  // namespace hipress::traces
