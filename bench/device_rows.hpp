#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "bench/report.hpp"
#include "runtime/device.hpp"

namespace hipress::bench {

/// Options of the measurements of a device.
struct DeviceRowOptions {
  /// Sizes of the coded gradients. Larger sizes show what memory bandwidth allows, and need more
  /// memory.
  std::vector<std::int64_t> elements = {1 << 20, 1 << 24, 1 << 27};
  /// Elements of the slice that is coded or moved during other work. With more elements, a launch
  /// takes a smaller share of the time.
  std::int64_t overlap_elements = 1 << 24;
  std::int64_t rows =
      4096;        ///< rows of the square matrices of simultaneous computation; a multiple of 64
  int bursts = 5;  ///< a median is over eight times as many tasks
  int launches = 2000;    ///< number of tiny tasks, one after the other
  std::string only;       ///< part of the names of measured cases; empty: all cases
  double timeout_s = 60;  ///< limit for work that is enqueued at a time
};

/// Adds one row per measurement of a device. All times are those of its own events. The rows are:
/// - `copy.2^27`: the device's own copy of a gradient, in GB/s of gradient;
/// - `onebit.encode.2^20` and so on, for encode, decode and decode_add of every algorithm, in GB/s
///   of gradient. One row has the reference "traffic_floor", the least memory traffic at the speed
///   of the copy, and one has the reference "copy". Encodes keep residuals if the algorithm has
///   any. For a staged codec, `powersgd.encode` is all encodes of a step of a square matrix;
/// - `launch.host` and `launch.device`: microseconds for a tiny task, by the host's clock, and
///   between two such tasks on the device;
/// - `overlap.A_beside_B`: the factor by which A takes longer while B is under way. A and B are
///   codec (onebit), copy (to pinned memory and back) and the classes of computation (gemm,
///   attention, …), but not two of these classes;
/// - `step.MIX_beside_B`, for B codec, transfer and both: milliseconds of a made-up step with a
///   known mix of computation. One row has the step as simulated with factors that are measured
///   here, and the measured step as its reference. In the second row, "measured_unslowed", the step
///   is simulated as if nothing slowed anything; the reference is the same.
/// `with_staged` is false for devices that cannot run staged codecs. Throws io::RunError if the
/// device has too little memory for every size.
void add_device_rows(Report& report, runtime::Device& device, const DeviceRowOptions& options,
                     bool with_staged);

}  // namespace hipress::bench
