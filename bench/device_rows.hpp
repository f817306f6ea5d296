#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "bench/report.hpp"
#include "runtime/device.hpp"

namespace hipress::bench {

/// What is timed of a device.
struct DeviceRowOptions {
  /// Sizes of the coded gradients. Larger: closer to what memory allows, and more memory.
  std::vector<std::int64_t> elements = {1 << 20, 1 << 24, 1 << 27};
  /// Elements of the slice that is coded, and moved, beside something else. Larger: a launch takes
  /// less of the time.
  std::int64_t overlap_elements = 1 << 24;
  std::int64_t rows = 4096;  ///< of the matrices that are computed with beside it; a multiple of 64
  int bursts = 5;            ///< a median goes over eight times as many tasks
  int launches = 2000;       ///< of tiny tasks, one behind the other
  std::string only;          ///< cases whose name contains this; empty: all
  double timeout_s = 60;     ///< for what is enqueued at a time
};

/// Adds one row per measurement of a device, all times by its own events:
/// - `copy.2^27`: the device's own copy of a gradient, in GB/s of gradient;
/// - `onebit.encode.2^20` and so on, for encode, decode and decode_add of every algorithm, in GB/s
/// of
///   gradient: once beside "traffic_floor", what the least memory traffic allows at the speed of
///   the copy, and once beside "copy". Encodes keep residuals where the algorithm does. Of a staged
///   codec, `powersgd.encode` is all encodes of a step of a square matrix;
/// - `launch.host` and `launch.device`: microseconds for a tiny task, by the host's clock, and
///   between two on the device;
/// - `overlap.A_beside_B`, A and B of codec (onebit), copy (to pinned memory and back) and the
///   classes of computation (gemm, attention, …; not beside each other): how many times as long A
///   takes while B is under way.
/// - `step.MIX_beside_B`, B of codec, transfer and both: milliseconds of a made-up step of a known
///   mix of computation, as simulated with factors that are measured then, beside "measured"; and
///   beside "measured_unslowed", as simulated if nothing slowed anything.
/// `with_staged` is false for devices that cannot run staged codecs. Throws io::RunError where the
/// device has too little memory for any size.
void add_device_rows(Report& report, runtime::Device& device, const DeviceRowOptions& options,
                     bool with_staged);

}  // namespace hipress::bench
