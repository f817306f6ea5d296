// Tests that the emulation computes what a GPU does, and detects errors in kernels.

#include <catch2/catch.hpp>

namespace hipress::kernels::emulation {
namespace {

constexpr int kThreads = 96;
constexpr std::uint32_t kSchedules = 6;

/// Results of a kernel that takes a pointer to `count` ints, which are -1 before the launch: the
/// ints, and the runtime's error text.
struct Outcome {
  std::vector<int> ints;
  std::string fault;
};
Outcome outcome(void (*kernel)(int*), std::uint32_t schedule, std::size_t count = kThreads,
                unsigned blocks = 1) {
  Grid::instance().set_schedule(schedule);
  Outcome found{std::vector<int>(count, -1), ""};
  int* data = nullptr;
  REQUIRE(cudaMalloc(&data, count * sizeof(int)) == cudaSuccess);
  cudaMemcpy(data, found.ints.data(), count * sizeof(int), cudaMemcpyHostToDevice);
  void* arguments[] = {&data};
  const cudaError_t status =
      cudaLaunchKernel(handle_of(kernel), dim3(blocks), dim3(kThreads), arguments, 0, nullptr);
  if (status != cudaSuccess) found.fault = cudaGetErrorString(status);
  CHECK(cudaGetLastError() == status);
  cudaMemcpy(found.ints.data(), data, count * sizeof(int), cudaMemcpyDeviceToHost);
  CHECK(cudaFree(data) == cudaSuccess);
  Grid::instance().set_schedule(0);
  return found;
}

/// The numbers of a block's threads, in descending order.
std::vector<int> backwards() {
  std::vector<int> numbers(kThreads);
  for (int i = 0; i < kThreads; ++i) numbers[i] = kThreads - 1 - i;
  return numbers;
}

/// Number of schedules under which the kernel's results differ from `expected`.
int wrong_schedules(void (*kernel)(int*), const std::vector<int>& expected, unsigned blocks = 1) {
  int wrong = 0;
  for (std::uint32_t schedule = 0; schedule < kSchedules; ++schedule) {
    const Outcome found = outcome(kernel, schedule, expected.size(), blocks);
    CHECK(found.fault.empty());
    wrong += found.ints != expected;
  }
  return wrong;
}

// ---- races ----

template <bool kBarrier>
__global__ void turn_around(int* out) {
  __shared__ int numbers[kThreads];
  const int thread = static_cast<int>(threadIdx.x);
  numbers[thread] = thread;
  if constexpr (kBarrier) __syncthreads();
  out[thread] = numbers[kThreads - 1 - thread];
}

TEST_CASE("emulation: a missing barrier shows") {
  CHECK(wrong_schedules(turn_around<true>, backwards()) == 0);
  CHECK(wrong_schedules(turn_around<false>, backwards()) == kSchedules);
}

template <bool kBarrier>
__global__ void next_lane(int* out) {
  __shared__ int numbers[kThreads];
  const unsigned thread = threadIdx.x, first = thread / 32 * 32;
  numbers[thread] = static_cast<int>(thread);
  if constexpr (kBarrier) __syncwarp();
  out[thread] = numbers[first + (thread + 1) % 32];
}

TEST_CASE("emulation: lanes of a warp do not run in step") {
  std::vector<int> expected(kThreads);
  for (int i = 0; i < kThreads; ++i) expected[i] = i / 32 * 32 + (i + 1) % 32;
  CHECK(wrong_schedules(next_lane<true>, expected) == 0);
  CHECK(wrong_schedules(next_lane<false>, expected) == kSchedules);
}

/// Without the second barrier, a warp may overwrite `turn` before a different warp has read it.
template <bool kBarrier>
__global__ void take_turns(int* out) {
  __shared__ int turn;
  int sum = 0;
  for (int i = 0; i < 4; ++i) {
    if (threadIdx.x == 0) turn = i;
    __syncthreads();
    sum += turn;
    if constexpr (kBarrier) __syncthreads();
  }
  out[threadIdx.x] = sum;
}

TEST_CASE("emulation: warps overtake each other") {
  const std::vector<int> expected(kThreads, 0 + 1 + 2 + 3);
  CHECK(wrong_schedules(take_turns<true>, expected) == 0);
  CHECK(wrong_schedules(take_turns<false>, expected) > 1);
}

__global__ void chained(int* out) {
  if (threadIdx.x == 0) out[blockIdx.x] = blockIdx.x == 0 ? 0 : out[blockIdx.x - 1] + 1;
}

TEST_CASE("emulation: blocks that depend on each other show") {
  CHECK(wrong_schedules(chained, {0, 1, 2, 3}, 4) > 0);
}

__global__ void never_written(int* out) {
  __shared__ int numbers[kThreads];
  out[threadIdx.x] = numbers[threadIdx.x];
  numbers[threadIdx.x] = 0;
}

TEST_CASE("emulation: shared memory begins with something else in every schedule") {
  CHECK(outcome(never_written, 0).ints != outcome(never_written, 1).ints);
  CHECK(wrong_schedules(never_written, std::vector<int>(kThreads, 0)) > 1);
}

// ---- faults ----

/// Requires a fault whose text contains `words`, under every schedule.
void require_fault(void (*kernel)(int*), const std::string& words, std::size_t count = kThreads) {
  for (std::uint32_t schedule = 0; schedule < kSchedules; ++schedule) {
    CHECK_THAT(outcome(kernel, schedule, count).fault, Catch::Contains(words));
  }
  // A launch after a fault succeeds.
  CHECK(wrong_schedules(turn_around<true>, backwards()) == 0);
}

__global__ void some_at_the_barrier(int*) {
  if (threadIdx.x < 40) __syncthreads();
}
__global__ void two_barriers(int*) {
  if (threadIdx.x < 32) {
    __syncthreads();
  } else {
    __syncthreads();
  }
}
__global__ void some_vote(int* out) {
  if (threadIdx.x % 32 < 16) out[threadIdx.x] = static_cast<int>(__ballot_sync(~0u, 1));
}
__global__ void votes_elsewhere(int* out) {
  if (threadIdx.x % 32 < 16) {
    out[threadIdx.x] = __any_sync(~0u, 1);
  } else {
    out[threadIdx.x] = __all_sync(~0u, 1);
  }
}
__global__ void mask_of_others(int* out) {
  out[threadIdx.x] = static_cast<int>(__ballot_sync(0xffffu, 1));
}
__global__ void reads_a_stranger(int* out) {
  if (threadIdx.x % 32 < 16) out[threadIdx.x] = __shfl_sync(0xffffu, 1, 20);
}

TEST_CASE("emulation: meetings that not everybody comes to are faults") {
  require_fault(some_at_the_barrier, "hangs: threads 0-39 at __syncthreads (");
  require_fault(some_at_the_barrier, "emulation_test.cpp:");
  require_fault(some_at_the_barrier, "), threads 40-95 returned");
  require_fault(two_barriers, "hangs");
  require_fault(some_vote, "hangs: threads 0-15 at __ballot_sync");
  require_fault(votes_elsewhere, "hangs");
  require_fault(mask_of_others, "the mask leaves out its own caller");
  require_fault(reads_a_stranger, "reads from a lane that the mask leaves out");
}

__global__ void one_behind(int* out) { out[threadIdx.x + 1] = 0; }
__global__ void one_before(int* out) { *(out - 1 + threadIdx.x) = 0; }

#ifndef EMULATION_ASAN  // the address sanitizer ends such a kernel itself
TEST_CASE("emulation: writes outside of an allocation are faults") {
  require_fault(one_behind, "wrote behind an allocation of 384 bytes");
  require_fault(one_before, "wrote before an allocation of 384 bytes");
}
#endif

TEST_CASE("emulation: the runtime refuses what a GPU's would") {
  int number = 0;
  int* const host = &number;
  CHECK(cudaMemset(host, 0, sizeof number) == cudaErrorInvalidValue);
  CHECK(cudaFree(host) == cudaErrorInvalidValue);
  void* arguments[] = {nullptr};
  CHECK(cudaLaunchKernel(handle_of(one_behind), dim3(0), dim3(32), arguments, 0, nullptr) ==
        cudaErrorInvalidConfiguration);
  CHECK(cudaLaunchKernel(handle_of(one_behind), dim3(1), dim3(1025), arguments, 0, nullptr) ==
        cudaErrorInvalidConfiguration);
  CHECK(cudaLaunchKernel(host, dim3(1), dim3(32), arguments, 0, nullptr) ==
        cudaErrorInvalidDeviceFunction);
  CHECK(cudaGetLastError() == cudaErrorInvalidDeviceFunction);
  CHECK(cudaGetLastError() == cudaSuccess);
}

// ---- results of operations ----

/// Counts, per thread, the operations with the result that the CUDA programming guide defines.
__global__ void operations(int* out) {
  const int lane = static_cast<int>(threadIdx.x % 32);
  const unsigned odd = 0xaaaaaaaau, own = lane % 2 == 1 ? odd : ~odd;
  int& right = out[threadIdx.x];
  right = 0;
  right += __shfl_sync(~0u, lane, 5) == 5;
  right += __shfl_sync(~0u, lane, 9, 8) == lane / 8 * 8 + 1;
  right += __shfl_up_sync(~0u, lane, 3) == (lane < 3 ? lane : lane - 3);
  right += __shfl_down_sync(~0u, lane, 3) == (lane > 28 ? lane : lane + 3);
  right += __shfl_down_sync(~0u, lane, 3, 8) == (lane % 8 > 4 ? lane : lane + 3);
  right += __shfl_xor_sync(~0u, lane + 0.5, 16) == (lane ^ 16) + 0.5;
  right += __ballot_sync(~0u, lane == 3 || lane == 31) == 0x80000008u;
  right += __ballot_sync(own, lane < 4) == (lane % 2 == 1 ? 0xau : 0x5u);
  right += __any_sync(~0u, lane == 7) == 1;
  right += __any_sync(~0u, 0) == 0;
  right += __all_sync(~0u, lane < 32) == 1;
  right += __all_sync(~0u, lane < 31) == 0;
  right += __match_any_sync(~0u, lane / 16) == (lane < 16 ? 0xffffu : 0xffff0000u);
  right += __syncthreads_count(lane == 0) == 3;
  right += __syncthreads_or(threadIdx.x == 50) != 0;
  right += __syncthreads_or(0) == 0;
  right += __syncthreads_and(1) != 0;
  right += __syncthreads_and(threadIdx.x != 50) == 0;
}

__global__ void counts(int* out) {
  __shared__ unsigned arrived, most;
  if (threadIdx.x == 0) arrived = most = 0;
  __syncthreads();
  atomicAdd(&arrived, 1u);
  atomicMax(&most, threadIdx.x);
  if (threadIdx.x == 0) out[blockIdx.x] = 0;
  __syncthreads();
  atomicOr(&out[blockIdx.x], static_cast<int>(arrived == kThreads && most == kThreads - 1));
}

TEST_CASE("emulation: operations give what the programming guide says") {
  CHECK(wrong_schedules(operations, std::vector<int>(kThreads, 18)) == 0);
  CHECK(wrong_schedules(counts, {1, 1, 1}, 3) == 0);
  CHECK(__popc(0xf0u) == 4);
  CHECK(__clz(1) == 31);
  CHECK(__ffs(0) == 0);
  CHECK(__ffs(8) == 4);
  CHECK(__brev(1u) == 0x80000000u);
}

}  // namespace
}  // namespace hipress::kernels::emulation
