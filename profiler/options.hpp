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

/// How long to measure: quick is for a demonstration (a quarter of a minute for two algorithms),
/// full covers 2^8 … 2^26 elements, on a device 2^10 … 2^28.
enum class Effort : std::uint8_t { kQuick, kFull };

/// What is measured where the rest is known already.
enum class Part : std::uint8_t {
  kLinks,    ///< for a network too slow to show what a transfer costs the CPU
  kKernels,  ///< for a machine whose memory is not always as fast
  kCores,    ///< what transfers cost the CPU, on links that are known: for such a machine, too
};

/// Sizes of the works whose overlap on a device is measured. Larger: a launch lasts longer than
/// the host takes to enqueue it, so that the device sets the pace. Smaller: less memory and time,
/// for tests without a GPU.
struct OverlapSizes {
  std::int64_t rows = 4096;  ///< of the square matrices of computation; a multiple of 64
  /// Of the codec's slice and, in fp32, of a message; fewer where memory is short.
  std::int64_t elements = std::int64_t{1} << 24;
};

struct Options {
  std::vector<std::string> algorithms;  ///< names of kernels::algorithms(), parameters allowed
  std::uint32_t nodes = 4;  ///< ranks that share this machine in the measurements of links
  std::string transport{transport::kDefaultTransport};
  Effort effort = Effort::kFull;
  /// How often the CPU's kernels are measured, all sizes of all algorithms before the next time: a
  /// memory that other guests of a machine use, too, is faster and slower for seconds on end.
  int passes = 2;
  /// How often an exchange is run with its messages and without them, each time by new threads: in
  /// one run a message costs the cores up to four times what it does in another.
  int exchanges = 30;
  /// This process's end of a job of `nodes` processes, which all measure the same, so that the
  /// links between them are measured. Every process gets the same profile. null: the ranks are
  /// threads of this process, on loopback.
  transport::Endpoint* endpoint = nullptr;
  /// Processes with the same text are on one machine. Another one only where a test pretends that
  /// there are several.
  std::string boot = job::machine_clock().boot;
  /// Makes the device that a rank codes on; none: its CPU.
  std::function<std::unique_ptr<runtime::Device>(int rank)> device = {};
  /// What moves messages between devices; null: `transport`, through pinned host memory.
  transport::NcclLibrary* nccl = nullptr;
  double timeout_s = 60;  ///< without progress for so long, a measurement ends
  /// Source of all that is not measured anew. With links anew, that is kernels, memory, cores and
  /// the CPU work of transfers; with kernels anew, links, cores and whether they are shared; with
  /// cores anew, everything but the CPU work of transfers. The hardware that runs kernels counts as
  /// part of the kernels, and so does a device's overlap. null: everything is measured.
  const costs::Profile* base = nullptr;
  Part anew = Part::kLinks;   ///< with a base
  OverlapSizes overlap = {};  ///< with a device
};

/// Called before each measurement with what is measured next.
using Progress = std::function<void(const std::string& what)>;

}  // namespace hipress::profiler
