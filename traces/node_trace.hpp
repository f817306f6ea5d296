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

/// A node of an execution trace, PyTorch's or Chakra's, as far as gradients need it.
struct TraceNode {
  std::int64_t id = 0;
  std::int64_t parent = -1;  ///< that it was called by
  std::string_view name;
  std::vector<std::int64_t> shape = {};  ///< of the first input
  bool has_shape = false;                ///< else it is not told
  std::string dtype = {};
  /// An all-reduce that moves so many bytes, by what the node says of itself.
  std::optional<std::int64_t> all_reduce_bytes = {};
  bool is_cpu = false;  ///< of these: the CPU's record
  bool is_reduce_scatter = false;
  /// Kind of communication by the node's attributes, such as "all-gather", and its bytes.
  std::string_view communication = {};
  std::int64_t bytes = 0;
  const InputShapes* shapes = nullptr;  ///< of all inputs; null: not told
};

/// Makes steps out of execution traces' nodes, which have sizes but no times, and come in any
/// order.
class NodeTrace {
 public:
  void add(const TraceNode& node);
  /// Returns sizes of gradients and buckets; to be called once. Empty if no node is PyTorch's and
  /// none has attributes of communication. Throws io::InputError, without the file's name, for the
  /// traces of several ranks.
  std::optional<Imported> finish();

 private:
  enum class Role : std::uint8_t {
    kOther,
    kAccumulate,
    kEvaluate,
    kAllReduce,  ///< an operator
    kKernel,     ///< an all-reduce by what it says of itself, on the GPU
    kCpuKernel,  ///< on the CPU
    kReduceScatter,
    kOptimizer,  ///< a step of one
    kStep
  };
  struct Kept {
    std::int64_t id = 0;
    Role role = Role::kOther;
    TracedGradient gradient = {};
    std::string name = {};  ///< of a step
  };
  /// Collectives of one kind in the CPU's records and in the GPU's.
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
  std::set<std::int64_t> evaluations_;                       // functions of backward
  std::vector<Start> started_;                               // sorted by finish()
  std::map<std::string, Held> held_, called_;                // of nodes; of c10d's operators
  std::vector<std::pair<std::int64_t, SparseSize>> sparse_;  // operators of sparse tensors
  std::string sparse_operator_;                              // makes a sparse gradient
  std::vector<std::pair<std::int64_t, Update>> in_place_;    // operators
  UpdatedTensors updated_;
  RankEvidence ranks_;
  std::int64_t roots_ = 0;  // nodes of processes
};

/// The numbers of the first innermost list in "[[[2049000], []], []]", which is how Python writes
/// shapes; none for any other text.
std::vector<std::int64_t> first_shape(std::string_view text);

/// All that such a text holds.
InputShapes input_shapes(std::string_view text);

/// Chakra's messages: GlobalMetadata, then Nodes (et_def.proto of mlcommons/chakra). io::InputError
/// for what is neither, and for a graph of hipress-sim.
Imported read_chakra_trace(ByteStream& bytes);

}  // namespace hipress::traces
