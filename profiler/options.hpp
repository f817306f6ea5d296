#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "costs/profile.hpp"
#include "job/clock.hpp"
#include "runtime/device.hpp"
#include "transport/endpoint.hpp"
#include "transport/nccl_library.hpp"

namespace hipress::profiler {

/// Effort of a measurement. Quick is for demonstrations (15 s for two algorithms). Full covers 2^8
/// … 2^26 elements, or on a device 2^10 … 2^28.
enum class Effort : std::uint8_t { kQuick, kFull };

/// Part of a profile that is measured anew; the rest is taken from a base.
enum class Part : std::uint8_t {
  kLinks,    ///< for networks too slow to measure the CPU time of transfers on them
  kKernels,  ///< for a machine whose memory bandwidth varies
  kCores,    ///< CPU time of transfers on known links; also for machines whose speed varies
};

/// Sizes of the works whose overlap on a device is measured. In large ones a kernel takes longer
/// than its launch on the host, so the device is the bottleneck. Small ones take less memory and
/// time, for tests without a GPU.
struct OverlapSizes {
  std::int64_t rows = 4096;  ///< rows of the square matrices of computation; a multiple of 64
  /// Elements of the codec's slice and, in fp32, of a message; fewer if memory is short.
  std::int64_t elements = std::int64_t{1} << 24;
};

struct Options {
  std::vector<std::string> algorithms;  ///< names of kernels::algorithms(), parameters allowed
  std::uint32_t nodes = 4;              ///< number of ranks in the measurements of links
  std::string transport{transport::kDefaultTransport};
  Effort effort = Effort::kFull;
  /// Number of passes over all sizes of all algorithms on the CPU. More passes average better over
  /// the speed of memory that is shared with other guests, which changes for seconds at a time.
  int passes = 2;
  /// Maximum number of runs of an exchange with messages and of one without, each with new threads.
  /// More runs give a more certain mean, as the core time of a message varies up to fourfold
  /// between runs. Slow machines make fewer.
  int exchanges = 30;
  /// This process's endpoint in a job of `nodes` processes, which measure together, including the
  /// links between them. All get the same profile. Null: the ranks are threads, on loopback.
  transport::Endpoint* endpoint = nullptr;
  /// Identity of the machine, equal for all its processes. Tests set it to emulate several
  /// machines.
  std::string boot = job::machine_clock().boot;
  /// Makes the device of a rank; empty: its CPU.
  std::function<std::unique_ptr<runtime::Device>(int rank)> device = {};
  /// Library that moves messages between devices. Null: `transport`, through pinned host memory.
  transport::NcclLibrary* nccl = nullptr;
  double timeout_s = 60;  ///< a measurement ends after this time without progress
  /// Source of the parts that are not measured anew; null: everything is measured. By value of
  /// `anew`, it gives:
  ///  - kLinks: kernels, memory, cores and the CPU time of transfers.
  ///  - kKernels: links, the number of cores, and whether ranks share a host.
  ///  - kCores: everything but the CPU time of transfers.
  /// Kernels include the hardware on which they run, and a device's overlap.
  const costs::Profile* base = nullptr;
  Part anew = Part::kLinks;   ///< used with a base only
  OverlapSizes overlap = {};  ///< used with a device only
};

/// Called before each measurement with its description.
using Progress = std::function<void(const std::string& what)>;

}  // namespace hipress::profiler
