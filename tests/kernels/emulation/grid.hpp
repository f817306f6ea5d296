#pragma once

#include <link.h>

#include <algorithm>
#include <bit>
#include <cstdint>
#include <cstring>
#include <memory>
#include <numeric>
#include <random>
#include <span>
#include <string>
#include <vector>

#include "tests/kernels/emulation/fiber.hpp"
#include "tests/kernels/emulation/memory.hpp"

struct uint3 {
  unsigned x = 0, y = 0, z = 0;
};

struct dim3 {
  unsigned x, y, z;
  constexpr dim3(unsigned vx = 1, unsigned vy = 1, unsigned vz = 1) : x(vx), y(vy), z(vz) {}
};

inline uint3 threadIdx, blockIdx;
inline dim3 blockDim, gridDim;

#ifdef __clang__
// The linker's symbols for the beginning and end of the section of __shared__ variables.
extern "C" {
extern std::byte __attribute__((weak)) __start_cuda_shared[], __stop_cuda_shared[];
}
#endif

/// A grid of thread blocks on one processor. Blocks run one after the other. The threads of a block
/// are fibers that run from one *rendezvous* to the next. A rendezvous is a barrier or a warp
/// operation: its threads wait there until all of them have come. A *fault* is an error that makes
/// a GPU hang or give arbitrary results; it ends the launch.
namespace hipress::kernels::emulation {

inline constexpr unsigned kWarpSize = 32;

/// The place in a kernel where a thread joins a rendezvous.
struct Place {
  const char* operation = nullptr;
  const char* file = nullptr;
  int line = 0;

  /// Compares names by pointer, because the name of an operation is one literal.
  bool operator==(const Place& other) const {
    return operation == other.operation && line == other.line;
  }
  std::string text() const {
    return std::string(operation) + " (" + file + ":" + std::to_string(line) + ")";
  }
};

struct Thread {
  enum class State { kReady, kInWarp, kAtBarrier, kReturned };

  Fiber fiber;
  unsigned number = 0;
  State state = State::kReady;
  Place place;
  unsigned mask = 0;        ///< lanes that it waits for
  std::uint64_t given = 0;  ///< its value for the rendezvous
  unsigned source = 0;      ///< shuffles: lane whose value it reads
  std::uint64_t got = 0;    ///< its result of the rendezvous

  unsigned lane() const { return number % kWarpSize; }
};

/// Memory of the program's __shared__ variables, possibly with other variables that no kernel uses.
/// With clang++, __shared__ variables have a section of their own. g++ ignores the section of a
/// variable in a template; there, they are the thread-local variables that are initially zero.
inline std::span<std::byte> shared_memory() {
#ifdef __clang__
  return {__start_cuda_shared, __stop_cuda_shared};
#else
  std::span<std::byte> found;
  dl_iterate_phdr(
      [](dl_phdr_info* program, std::size_t, void* result) {
        for (int i = 0; i < program->dlpi_phnum; ++i) {
          const auto& part = program->dlpi_phdr[i];
          if (part.p_type != PT_TLS || program->dlpi_tls_data == nullptr) continue;
          *static_cast<std::span<std::byte>*>(result) = {
              static_cast<std::byte*>(program->dlpi_tls_data) + part.p_filesz,
              part.p_memsz - part.p_filesz};
        }
        return 1;  // the program itself comes first
      },
      &found);
  return found;
#endif
}

/// Threads of one rendezvous, by lane or number; null for threads that do not take part.
using Present = std::vector<Thread*>;
/// Sets Thread::got of all threads of a rendezvous. Returns a description of a fault, or null.
using Finish = const char* (*)(const Present& present);

class Grid {
 public:
  static Grid& instance() {
    static Grid grid;
    return grid;
  }

  /// Sets the order of blocks and threads: 0 forwards, 1 backwards, others at random. Also sets the
  /// content of memory that was never written.
  void set_schedule(std::uint32_t seed) {
    constexpr int kPoisons[] = {0xff, 0x3c};
    seed_ = seed;
    random_.seed(seed);
    DeviceMemory::instance().poison =
        seed < 2 ? kPoisons[seed] : static_cast<int>(random_() & 0xff);
  }

  /// Runs `body(argument)` in every thread. Returns the text of the fault; empty if there was none.
  std::string run(dim3 grid, dim3 block, Fiber::Body body, void* argument) {
    ::gridDim = grid;
    ::blockDim = block;
    fault_.clear();
    const DeviceMemory::Access access;
    resize(block.x * block.y * block.z);
    for (const unsigned number : in_order(grid.x * grid.y * grid.z)) {
      ::blockIdx = {number % grid.x, number / grid.x % grid.y, number / grid.x / grid.y};
      run_block(body, argument);
      if (!fault_.empty()) break;
    }
    return fault_;
  }

  /// Called by a thread: waits for the lanes of `mask`.
  std::uint64_t meet_warp(const Place& place, unsigned mask, std::uint64_t given, unsigned source,
                          Finish finish) {
    Thread& self = *current_;
    if ((mask >> self.lane() & 1) == 0) fail(place, "the mask leaves out its own caller");
    wait(self, Thread::State::kInWarp, place, mask, given, source);
    const unsigned warp = self.number / kWarpSize;
    ++in_warp_[warp];
    if (in_warp_[warp] >= std::popcount(mask) && all_in_warp(self)) {
      in_warp_[warp] -= std::popcount(mask);
      conclude(place, finish);
    } else {
      self.fiber.suspend();
    }
    return self.got;
  }

  /// Called by a thread: waits for the whole block. Also waits, in vain, for a thread that has
  /// returned, although today's GPUs would not.
  std::uint64_t meet_block(const Place& place, std::uint64_t given, Finish finish) {
    Thread& self = *current_;
    wait(self, Thread::State::kAtBarrier, place, 0, given, 0);
    ++at_barrier_;
    if (at_barrier_ == threads_.size() && all_at(place)) {
      at_barrier_ = 0;
      conclude(place, finish);
    } else {
      self.fiber.suspend();
    }
    return self.got;
  }

  unsigned lane() const { return current_->lane(); }

 private:
  static void wait(Thread& self, Thread::State state, const Place& place, unsigned mask,
                   std::uint64_t given, unsigned source) {
    self.state = state;
    self.place = place;
    self.mask = mask;
    self.given = given;
    self.source = source;
  }

  /// True if all lanes of `self.mask` wait at the same place; present_ then holds them.
  bool all_in_warp(const Thread& self) {
    const unsigned first = self.number - self.lane();
    present_.assign(kWarpSize, nullptr);
    for (unsigned lane = 0; lane < kWarpSize; ++lane) {
      if ((self.mask >> lane & 1) == 0) continue;
      if (first + lane >= threads_.size()) return false;
      Thread& other = *threads_[first + lane];
      if (other.state != Thread::State::kInWarp || other.mask != self.mask ||
          other.place != self.place) {
        return false;
      }
      present_[lane] = &other;
    }
    return true;
  }

  bool all_at(const Place& place) {
    present_.clear();
    for (const auto& thread : threads_) {
      if (thread->place != place) return false;
      present_.push_back(thread.get());
    }
    return true;
  }

  void conclude(const Place& place, Finish finish) {
    if (const char* wrong = finish(present_)) fail(place, wrong);
    for (Thread* thread : present_) {
      if (thread != nullptr) thread->state = Thread::State::kReady;
    }
  }

  /// Ends the launch. The calling thread never continues, so no destructors of its stack run.
  void fail(const Place& place, const char* wrong) {
    fault_ = here() + place.text() + ": " + wrong;
    for (;;) current_->fiber.suspend();
  }

  std::string here() const {
    return "block " + std::to_string(::blockIdx.x) + ", thread " +
           std::to_string(current_->number) + ": ";
  }

  void resize(std::size_t threads) {
    while (threads_.size() > threads) threads_.pop_back();
    while (threads_.size() < threads) {
      threads_.push_back(std::make_unique<Thread>());
      threads_.back()->number = static_cast<unsigned>(threads_.size() - 1);
    }
  }

  std::vector<unsigned> in_order(unsigned count) {
    std::vector<unsigned> order(count);
    std::iota(order.begin(), order.end(), 0u);
    if (seed_ == 1) std::reverse(order.begin(), order.end());
    if (seed_ > 1) std::shuffle(order.begin(), order.end(), random_);
    return order;
  }

  void run_block(Fiber::Body body, void* argument) {
    const std::span<std::byte> shared = shared_memory();
    const std::vector<std::byte> before(shared.begin(), shared.end());
    std::fill(shared.begin(), shared.end(),
              static_cast<std::byte>(DeviceMemory::instance().poison));
    run_threads(body, argument);
    std::copy(before.begin(), before.end(), shared.begin());
  }

  void run_threads(Fiber::Body body, void* argument) {
    const unsigned warps = (static_cast<unsigned>(threads_.size()) + kWarpSize - 1) / kWarpSize;
    in_warp_.assign(warps, 0);
    at_barrier_ = 0;
    returned_ = 0;
    for (const auto& thread : threads_) {
      thread->state = Thread::State::kReady;
      thread->fiber.begin(body, argument);
    }
    while (returned_ < threads_.size() && fault_.empty()) {
      bool went_on = false;
      for (const unsigned warp : in_order(warps)) went_on |= run_warp(warp);
      if (!went_on && fault_.empty()) {
        fault_ = "block " + std::to_string(::blockIdx.x) + " hangs: " + whereabouts();
      }
    }
  }

  /// Runs the ready threads of a warp until all wait. With a random schedule, runs each at most
  /// once, or none at all, so that warps drift apart. Returns false if no thread was ready.
  bool run_warp(unsigned warp) {
    const unsigned first = warp * kWarpSize;
    const unsigned count = std::min(kWarpSize, static_cast<unsigned>(threads_.size()) - first);
    if (seed_ > 1 && random_() % 2 == 0) {
      return std::any_of(threads_.begin() + first, threads_.begin() + first + count,
                         [](const auto& t) { return t->state == Thread::State::kReady; });
    }
    bool went_on = false, again = true;
    const std::vector<unsigned> lanes = in_order(count);
    while (again && fault_.empty()) {
      again = false;
      for (const unsigned lane : lanes) {
        if (threads_[first + lane]->state != Thread::State::kReady) continue;
        run_thread(*threads_[first + lane]);
        if (!fault_.empty()) return true;
        went_on = again = true;
      }
      if (seed_ > 1) break;
    }
    return went_on;
  }

  void run_thread(Thread& thread) {
    const unsigned n = thread.number;
    ::threadIdx = {n % ::blockDim.x, n / ::blockDim.x % ::blockDim.y,
                   n / ::blockDim.x / ::blockDim.y};
    current_ = &thread;
    thread.fiber.resume();
    if (thread.fiber.returned()) {
      thread.state = Thread::State::kReturned;
      ++returned_;
    }
  }

  /// Text on all threads: "threads 0-31 at __syncthreads (x.cu:12), threads 32-63 returned".
  std::string whereabouts() const {
    const auto place_of = [](const Thread& thread) {
      return thread.state == Thread::State::kReturned ? std::string(" returned")
                                                      : " at " + thread.place.text();
    };
    std::string text;
    for (std::size_t from = 0, to; from < threads_.size(); from = to) {
      const std::string place = place_of(*threads_[from]);
      for (to = from; to < threads_.size() && place_of(*threads_[to]) == place;) ++to;
      if (from > 0) text += ", ";
      text += "threads " + std::to_string(from) + "-" + std::to_string(to - 1) + place;
    }
    return text;
  }

  std::uint32_t seed_ = 0;
  std::mt19937 random_;
  std::vector<std::unique_ptr<Thread>> threads_;
  std::vector<int> in_warp_;  ///< by warp: threads that wait in warp operations
  std::size_t at_barrier_ = 0, returned_ = 0;
  Present present_;
  Thread* current_ = nullptr;
  std::string fault_;
};

}  // namespace hipress::kernels::emulation
