// The operators (operators.hpp) on a GPU. They add in the order that order.hpp defines.

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "kernels/cuda/batch.hpp"
#include "kernels/cuda/decode.hpp"
#include "kernels/lowrank/operators.hpp"
#include "kernels/lowrank/order.hpp"

namespace hipress::kernels::lowrank {

namespace {

/// Jobs of one launch. Job::first_block is the number of thread blocks of the jobs before it.
template <class Job>
struct Jobs {
  static constexpr int kMax = static_cast<int>((kParameterBytes - 64) / sizeof(Job));

  Job jobs[kMax];
  int count = 0;
  std::int64_t blocks = 0;

  __device__ const Job& job_of(std::int64_t block) const {
    int i = count - 1;
    while (jobs[i].first_block > block) --i;
    return jobs[i];
  }
};

/// Launches a kernel on all jobs, `blocks_of(job)` thread blocks for each.
template <class Job, class BlocksOf>
void launch(void (*kernel)(Jobs<Job>), std::span<const Job> jobs, const BlocksOf& blocks_of,
            cudaStream_t stream) {
  while (!jobs.empty()) {
    Jobs<Job> some;
    while (some.count < Jobs<Job>::kMax && static_cast<std::size_t>(some.count) < jobs.size()) {
      Job& job = some.jobs[some.count];
      job = jobs[static_cast<std::size_t>(some.count)];
      job.first_block = some.blocks;
      some.blocks += blocks_of(job);
      ++some.count;
    }
    jobs = jobs.subspan(static_cast<std::size_t>(some.count));
    if (some.blocks == 0) continue;
    void* arguments[] = {&some};
    check_cuda(cudaLaunchKernel(handle_of(kernel), dim3(static_cast<unsigned>(some.blocks)),
                                dim3(kThreadsPerBlock), arguments, 0, stream),
               "launching a kernel of low rank");
  }
}

std::int64_t divided_up(std::int64_t a, std::int64_t b) { return (a + b - 1) / b; }

/// Element of this thread, for kernels with one thread per element.
template <class Job>
__device__ std::int64_t element_of_thread(const Job& job) {
  return (static_cast<std::int64_t>(blockIdx.x) - job.first_block) * kThreadsPerBlock + threadIdx.x;
}

__device__ void raise(int* flag) { atomicOr(flag, 1); }

// ---- sixteen lanes: half a warp ----

constexpr int kHalvesPerBlock = kThreadsPerBlock / kLanes;

__device__ int lane_of_half() { return threadIdx.x % kLanes; }
__device__ int half_of_block() { return threadIdx.x / kLanes; }
/// Mask of the lanes in this thread's half warp.
__device__ unsigned lanes_of_half() {
  return 0xffffu << (threadIdx.x % kWarpThreads / kLanes * kLanes);
}

/// Adds lanes l and l + 8, l + 4 …, and returns the sum to all lanes of the half warp.
template <class T>
__device__ T combined(T sum) {
  const unsigned lanes = lanes_of_half();
  for (int by = kLanes / 2; by > 0; by /= 2) sum += __shfl_down_sync(lanes, sum, by, kLanes);
  return __shfl_sync(lanes, sum, 0, kLanes);
}

// ---- products ----

struct ProductJob {
  Product item;
  std::int64_t length;  ///< entries in a column of the product
  std::int64_t tiles;
  double* partials;  ///< sums of tiles: `rank` columns per tile
  int* not_finite;
  std::int64_t first_block;

  __device__ double& partial(std::int64_t tile, int c, std::int64_t i) const {
    return partials[(tile * item.rank + c) * length + i];
  }
};

/// Columns of a factor that a thread processes at a time.
constexpr int kColumnsAtOnce = 4;

/// Computes entry `row` of one tile's sums, for columns c to c + kColumns - 1, with half a warp.
template <int kColumns>
__device__ void dot_tile(const ProductJob& job, std::int64_t row, std::int64_t tile, int c) {
  const Matrix& matrix = job.item.matrix;
  const std::int64_t first = tile * kTileColumns;
  const std::int64_t end = min(first + kTileColumns, matrix.columns);
  const float* const factor = job.item.factor + c * matrix.columns;
  float sums[kColumns] = {};
#pragma unroll 4
  for (std::int64_t j = first + lane_of_half(); j < end; j += kLanes) {
    const float entry = entry_of(matrix, row, j);
#pragma unroll
    for (int k = 0; k < kColumns; ++k) sums[k] += entry * factor[k * matrix.columns + j];
  }
#pragma unroll
  for (int k = 0; k < kColumns; ++k) {
    double sum = static_cast<double>(combined(sums[k]));
    if (sum - sum != 0) {
      double again = 0;
      for (std::int64_t j = first + lane_of_half(); j < end; j += kLanes) {
        again += static_cast<double>(entry_of(matrix, row, j)) *
                 static_cast<double>(factor[k * matrix.columns + j]);
      }
      sum = combined(again);
    }
    if (lane_of_half() == 0) job.partial(tile, c + k, row) = sum;
  }
}

std::int64_t blocks_of_multiply(const ProductJob& job) {
  return job.tiles * divided_up(job.length, kHalvesPerBlock);
}

__global__ void multiply_tiles(const Jobs<ProductJob> jobs) {
  const ProductJob& job = jobs.job_of(blockIdx.x);
  const std::int64_t block = blockIdx.x - job.first_block, tile = block % job.tiles;
  const std::int64_t row = block / job.tiles * kHalvesPerBlock + half_of_block();
  if (row >= job.length) return;
  int c = 0;
  for (; c + kColumnsAtOnce <= job.item.rank; c += kColumnsAtOnce) {
    dot_tile<kColumnsAtOnce>(job, row, tile, c);
  }
  for (; c < job.item.rank; ++c) dot_tile<1>(job, row, tile, c);
}

/// Computes entry j of one tile's sums, for columns c to c + kColumns - 1, with one thread.
template <int kColumns>
__device__ void transposed_tile(const ProductJob& job, std::int64_t j, std::int64_t tile, int c) {
  const Matrix& matrix = job.item.matrix;
  const std::int64_t first = tile * kTileRows, end = min(first + kTileRows, matrix.rows);
  const float* const factor = job.item.factor + c * matrix.rows;
  float sums[kColumns] = {};
  for (std::int64_t row = first; row < end; row += kGroupRows) {
    float entries[kGroupRows];
#pragma unroll
    for (int k = 0; k < kGroupRows; ++k) {
      entries[k] = row + k < end ? entry_of(matrix, row + k, j) : 0.0f;
    }
#pragma unroll
    for (int n = 0; n < kColumns; ++n) {
      const float* const column = factor + n * matrix.rows + row;
      float of_group = entries[0] * column[0];
#pragma unroll
      for (int k = 1; k < kGroupRows; ++k) {
        if (row + k < end) of_group += entries[k] * column[k];
      }
      sums[n] += of_group;
    }
  }
#pragma unroll
  for (int n = 0; n < kColumns; ++n) {
    double sum = static_cast<double>(sums[n]);
    if (sum - sum != 0) {
      sum = 0;
      for (std::int64_t row = first; row < end; row += kGroupRows) {
        double of_group = 0;
        for (std::int64_t k = row; k < min(row + kGroupRows, end); ++k) {
          of_group += static_cast<double>(entry_of(matrix, k, j)) *
                      static_cast<double>(factor[n * matrix.rows + k]);
        }
        sum += of_group;
      }
    }
    job.partial(tile, c + n, j) = sum;
  }
}

std::int64_t blocks_of_transposed(const ProductJob& job) {
  return job.tiles * divided_up(job.length, kThreadsPerBlock);
}

__global__ void multiply_transposed_tiles(const Jobs<ProductJob> jobs) {
  const ProductJob& job = jobs.job_of(blockIdx.x);
  const std::int64_t block = blockIdx.x - job.first_block, tile = block % job.tiles;
  const std::int64_t j = block / job.tiles * kThreadsPerBlock + threadIdx.x;
  if (j >= job.length) return;
  int c = 0;
  for (; c + kColumnsAtOnce <= job.item.rank; c += kColumnsAtOnce) {
    transposed_tile<kColumnsAtOnce>(job, j, tile, c);
  }
  for (; c < job.item.rank; ++c) transposed_tile<1>(job, j, tile, c);
}

std::int64_t blocks_of_entries(const ProductJob& job) {
  return divided_up(job.length * job.item.rank, kThreadsPerBlock);
}

/// Computes one entry of the product from the sums of its tiles, with one thread.
__global__ void add_tiles(const Jobs<ProductJob> jobs) {
  const ProductJob& job = jobs.job_of(blockIdx.x);
  const std::int64_t i = element_of_thread(job), entries = job.length * job.item.rank;
  if (i >= entries) return;
  double total = 0;
  for (std::int64_t tile = 0; tile < job.tiles; ++tile) total += job.partials[tile * entries + i];
  const float entry = rounded_entry(total, job.item.scale);
  if (!is_finite(entry)) raise(job.not_finite);
  job.item.product[i] = entry;
  if (job.item.copy != nullptr) job.item.copy[i] = entry;
}

__global__ void spread_nan(const Jobs<ProductJob> jobs) {
  const ProductJob& job = jobs.job_of(blockIdx.x);
  const std::int64_t i = element_of_thread(job);
  if (*job.not_finite == 0 || i >= job.length * job.item.rank) return;
  job.item.product[i] = not_a_number();
  if (job.item.copy != nullptr) job.item.copy[i] = not_a_number();
}

// ---- orthonormal columns ----

struct BasisJob {
  float* factor;
  std::int64_t rows;
  int rank;
  bool draws_all;
  DrawStream stream;
  std::int64_t row_blocks;
  double* partials;  ///< per block of rows, the upper half of its Gram matrix, row by row
  double* gram;
  double* inverse;
  double* lengths;
  int* not_finite;  ///< set by a pass that finds an entry that is not finite
  std::int64_t first_block;

  __host__ __device__ int pairs() const { return rank * (rank + 1) / 2; }
};

/// Columns i ≤ j of a pair. Pairs are numbered like the upper half of a matrix, row by row.
__device__ void columns_of_pair(int pair, int rank, int& i, int& j) {
  i = 0;
  while (pair >= rank - i) pair -= rank - i++;
  j = i + pair;
}

std::int64_t blocks_of_gram(const BasisJob& job) {
  return job.row_blocks * divided_up(job.pairs(), kHalvesPerBlock);
}

/// Computes the dot product of one pair of columns over one block of rows, with half a warp.
__global__ void multiply_by_own(const Jobs<BasisJob> jobs) {
  const BasisJob& job = jobs.job_of(blockIdx.x);
  const std::int64_t block = blockIdx.x - job.first_block, row_block = block % job.row_blocks;
  const int pair = static_cast<int>(block / job.row_blocks) * kHalvesPerBlock + half_of_block();
  if (pair >= job.pairs()) return;
  int i = 0, j = 0;
  columns_of_pair(pair, job.rank, i, j);
  const float *const a = job.factor + i * job.rows, *const b = job.factor + j * job.rows;
  const std::int64_t first = row_block * kGramRows;
  const std::int64_t end = min(first + kGramRows, job.rows);
  double sum = 0;
  for (std::int64_t row = first + lane_of_half(); row < end; row += kLanes) {
    sum += static_cast<double>(a[row]) * static_cast<double>(b[row]);
  }
  sum = combined(sum);
  if (lane_of_half() == 0) job.partials[row_block * job.pairs() + pair] = sum;
}

struct MeetBlock {
  __device__ void operator()() const { __syncthreads(); }
};

std::int64_t one_block(const BasisJob&) { return 1; }

/// Adds up a factor's Gram matrix, factorises it and inverts the result, with one thread block.
__global__ void factorise_gram(const Jobs<BasisJob> jobs) {
  const BasisJob& job = jobs.job_of(blockIdx.x);
  const int thread = static_cast<int>(threadIdx.x);
  for (int pair = thread; pair < job.pairs(); pair += kThreadsPerBlock) {
    double total = 0;
    for (std::int64_t block = 0; block < job.row_blocks; ++block) {
      total += job.partials[block * job.pairs() + pair];
    }
    int i = 0, j = 0;
    columns_of_pair(pair, job.rank, i, j);
    job.gram[i * job.rank + j] = total;
    if (i == j) job.lengths[i] = total;
  }
  __syncthreads();
  const bool finite =
      factorise(job.gram, job.lengths, job.rank, thread, kThreadsPerBlock, MeetBlock());
  invert(job.gram, job.inverse, job.rank, thread, kThreadsPerBlock);
  if (thread == 0 && !finite) raise(job.not_finite);
}

std::int64_t blocks_of_rows(const BasisJob& job) { return divided_up(job.rows, kThreadsPerBlock); }

/// Computes one row of factor·inverse in place, with one thread. The last column comes first,
/// because column c needs the old values of columns 0 to c.
__device__ void multiply_row_by_inverse(const BasisJob& job, std::int64_t row) {
  for (int c = job.rank - 1; c >= 0; --c) {
    double sum = 0;
    if (job.inverse[c * job.rank + c] != 0) {
      for (int k = 0; k <= c; ++k) {
        sum += static_cast<double>(job.factor[k * job.rows + row]) * job.inverse[k * job.rank + c];
      }
    }
    job.factor[c * job.rows + row] = static_cast<float>(sum);
  }
}

__global__ void multiply_by_inverse(const Jobs<BasisJob> jobs) {
  const BasisJob& job = jobs.job_of(blockIdx.x);
  const std::int64_t row = element_of_thread(job);
  if (row < job.rows) multiply_row_by_inverse(job, row);
}

std::int64_t blocks_of_factor(const BasisJob& job) {
  return divided_up(job.rows * job.rank, kThreadsPerBlock);
}

/// Draws the columns that the last pass set to 0, or all columns.
__global__ void draw_missing(const Jobs<BasisJob> jobs) {
  const BasisJob& job = jobs.job_of(blockIdx.x);
  const std::int64_t i = element_of_thread(job);
  if (i >= job.rows * job.rank) return;
  const std::int64_t c = i / job.rows;
  if (!job.draws_all && job.inverse[c * job.rank + c] != 0) return;
  job.factor[i] = draw_normal(job.stream, i);
}

__global__ void spread_nan_of_basis(const Jobs<BasisJob> jobs) {
  const BasisJob& job = jobs.job_of(blockIdx.x);
  const std::int64_t i = element_of_thread(job);
  if (*job.not_finite != 0 && i < job.rows * job.rank) job.factor[i] = not_a_number();
}

// ---- reconstruction ----

struct ReconstructionJob {
  Reconstruction item;
  int* flags;  ///< two flags of the mean: an entry is not finite; an entry is not 0
  std::int64_t first_block;
};

std::int64_t blocks_of_mean(const ReconstructionJob& job) {
  return divided_up(job.item.mean_entries, kThreadsPerBlock);
}

__global__ void look_at_mean(const Jobs<ReconstructionJob> jobs) {
  const ReconstructionJob& job = jobs.job_of(blockIdx.x);
  const std::int64_t i = element_of_thread(job);
  if (i >= job.item.mean_entries) return;
  const float entry = job.item.mean[i];
  if (!is_finite(entry)) raise(job.flags);
  if (entry != 0) raise(job.flags + 1);
}

constexpr int kRowsPerBlock = 16;

std::int64_t blocks_of_matrix(const ReconstructionJob& job) {
  return divided_up(job.item.matrix.columns, kThreadsPerBlock) *
         divided_up(job.item.matrix.rows, kRowsPerBlock);
}

__device__ float product_entry(const float* left, std::int64_t rows, const float* right,
                               std::int64_t columns, int rank) {
  float sum = left[0] * right[0];
  for (int c = 1; c < rank; ++c) sum += left[c * rows] * right[c * columns];
  return sum;
}

/// Computes the entries of one column in kRowsPerBlock rows, with one thread.
__global__ void reconstruct_entries(const Jobs<ReconstructionJob> jobs) {
  const ReconstructionJob& job = jobs.job_of(blockIdx.x);
  const Reconstruction& item = job.item;
  const Matrix& matrix = item.matrix;
  const std::int64_t across = (matrix.columns + kThreadsPerBlock - 1) / kThreadsPerBlock;
  const std::int64_t block = blockIdx.x - job.first_block;
  const std::int64_t j = block % across * kThreadsPerBlock + threadIdx.x;
  const std::int64_t first = block / across * kRowsPerBlock;
  if (j >= matrix.columns) return;
  const bool finite = job.flags[0] == 0;
  const bool by_own = item.own_left != item.left || item.own_right != item.right;
  for (std::int64_t row = first; row < min(first + kRowsPerBlock, matrix.rows); ++row) {
    const std::int64_t i = row * matrix.columns + j;
    float decoded = not_a_number();
    if (finite) {
      decoded =
          product_entry(item.left + row, matrix.rows, item.right + j, matrix.columns, item.rank);
      if (matrix.residual != nullptr) {
        const float own = by_own ? product_entry(item.own_left + row, matrix.rows,
                                                 item.own_right + j, matrix.columns, item.rank)
                                 : decoded;
        matrix.residual[i] = rest_of(entry_of(matrix, row, j), own);
      }
    }
    store_value(matrix.values, matrix.type, i, decoded);
  }
}

__global__ void keep_mean(const Jobs<ReconstructionJob> jobs) {
  const ReconstructionJob& job = jobs.job_of(blockIdx.x);
  const std::int64_t i = element_of_thread(job);
  if (i >= job.item.mean_entries || job.item.kept == nullptr) return;
  if (job.flags[0] == 0 && job.flags[1] != 0) job.item.kept[i] = job.item.mean[i];
}

// ---- the operators ----

/// Temporary memory for all jobs of a call: doubles, then flags cleared to 0.
class Workspace {
 public:
  Workspace(std::int64_t doubles, std::int64_t flags, cudaStream_t stream)
      : doubles_(doubles),
        memory_(static_cast<std::size_t>(doubles) * sizeof(double) +
                    static_cast<std::size_t>(flags) * sizeof(int),
                stream) {
    check_cuda(
        cudaMemsetAsync(flags_begin(), 0, static_cast<std::size_t>(flags) * sizeof(int), stream),
        "clearing flags");
  }
  double* take(std::int64_t doubles) {
    double* const taken = static_cast<double*>(memory_.data()) + used_;
    used_ += doubles;
    return taken;
  }
  int* take_flags(std::int64_t flags) {
    int* const taken = flags_begin() + flags_used_;
    flags_used_ += flags;
    return taken;
  }

 private:
  int* flags_begin() const {
    return reinterpret_cast<int*>(static_cast<double*>(memory_.data()) + doubles_);
  }

  std::int64_t doubles_, used_ = 0, flags_used_ = 0;
  StreamMemory memory_;
};

class CudaOperators : public Operators {
 public:
  void orthonormalise(std::span<const Orthonormalisation> items, void* stream) const override {
    if (items.empty()) return;
    const auto on = static_cast<cudaStream_t>(stream);
    std::vector<BasisJob> jobs, drawing, missing;
    std::int64_t doubles = 0;
    for (const Orthonormalisation& item : items) {
      BasisJob& job = jobs.emplace_back();
      job.factor = item.factor;
      job.rows = item.rows;
      job.rank = item.rank;
      job.draws_all = item.drawn == Drawn::kAll;
      job.stream = stream_of_factor(item.key, item.rows * item.rank);
      job.row_blocks = divided_up(item.rows, kGramRows);
      doubles += job.row_blocks * job.pairs() + std::int64_t{2} * item.rank * item.rank + item.rank;
    }
    // Each pass has a flag of its own. Only that of the first pass after the drawing is read:
    // drawing replaces what was not finite before, and a pass that finds such an entry sets all
    // entries to 0.
    const auto count = static_cast<std::int64_t>(items.size());
    Workspace workspace(doubles, 3 * count, on);
    int* const flags = workspace.take_flags(3 * count);
    for (std::size_t i = 0; i < jobs.size(); ++i) {
      BasisJob& job = jobs[i];
      job.partials = workspace.take(job.row_blocks * job.pairs());
      job.gram = workspace.take(std::int64_t{job.rank} * job.rank);
      job.inverse = workspace.take(std::int64_t{job.rank} * job.rank);
      job.lengths = workspace.take(job.rank);
      job.not_finite = flags + i;
      if (items[i].drawn != Drawn::kNone) drawing.push_back(job);
      if (items[i].drawn == Drawn::kMissing) missing.push_back(job);
      if (items[i].drawn == Drawn::kMissing) missing.back().not_finite = flags + count + i;
    }
    pass(missing, on);
    launch<BasisJob>(draw_missing, drawing, blocks_of_factor, on);
    pass(jobs, on);
    std::vector<BasisJob> last = jobs;
    for (std::size_t i = 0; i < last.size(); ++i) last[i].not_finite = flags + 2 * count + i;
    pass(last, on);
    launch<BasisJob>(spread_nan_of_basis, jobs, blocks_of_factor, on);
  }

  void multiply(std::span<const Product> items, void* stream) const override {
    run(items, multiply_tiles, blocks_of_multiply, static_cast<cudaStream_t>(stream),
        [](const Product& item, ProductJob& job) {
          job.length = item.matrix.rows;
          job.tiles = divided_up(item.matrix.columns, kTileColumns);
        });
  }

  void multiply_transposed(std::span<const Product> items, void* stream) const override {
    run(items, multiply_transposed_tiles, blocks_of_transposed, static_cast<cudaStream_t>(stream),
        [](const Product& item, ProductJob& job) {
          job.length = item.matrix.columns;
          job.tiles = divided_up(item.matrix.rows, kTileRows);
        });
  }

  void reconstruct(std::span<const Reconstruction> items, void* stream) const override {
    if (items.empty()) return;
    const auto on = static_cast<cudaStream_t>(stream);
    Workspace workspace(0, 2 * static_cast<std::int64_t>(items.size()), on);
    std::vector<ReconstructionJob> jobs;
    for (const Reconstruction& item : items) {
      jobs.push_back({.item = item, .flags = workspace.take_flags(2), .first_block = 0});
    }
    launch<ReconstructionJob>(look_at_mean, jobs, blocks_of_mean, on);
    launch<ReconstructionJob>(reconstruct_entries, jobs, blocks_of_matrix, on);
    launch<ReconstructionJob>(keep_mean, jobs, blocks_of_mean, on);
  }

 private:
  static void pass(std::span<const BasisJob> jobs, cudaStream_t stream) {
    launch(multiply_by_own, jobs, blocks_of_gram, stream);
    launch(factorise_gram, jobs, one_block, stream);
    launch(multiply_by_inverse, jobs, blocks_of_rows, stream);
  }

  template <class Sizes>
  static void run(std::span<const Product> items, void (*kernel)(Jobs<ProductJob>),
                  std::int64_t (*blocks)(const ProductJob&), cudaStream_t stream,
                  const Sizes& sizes) {
    if (items.empty()) return;
    std::vector<ProductJob> jobs;
    std::int64_t doubles = 0;
    for (const Product& item : items) {
      ProductJob job = {};
      job.item = item;
      sizes(item, job);
      doubles += job.tiles * job.length * item.rank;
      jobs.push_back(job);
    }
    Workspace workspace(doubles, static_cast<std::int64_t>(items.size()), stream);
    for (ProductJob& job : jobs) {
      job.partials = workspace.take(job.tiles * job.length * job.item.rank);
      job.not_finite = workspace.take_flags(1);
    }
    launch<ProductJob>(kernel, jobs, blocks, stream);
    launch<ProductJob>(add_tiles, jobs, blocks_of_entries, stream);
    launch<ProductJob>(spread_nan, jobs, blocks_of_entries, stream);
  }
};

}  // namespace

std::unique_ptr<Operators> make_cuda_operators() { return std::make_unique<CudaOperators>(); }

}  // namespace hipress::kernels::lowrank
