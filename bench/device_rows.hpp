#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "bench/report.hpp"
#include "runtime/device.hpp"

namespace hipress::bench {

struct DeviceRowOptions {
  /// Sizes of the coded gradients. Larger sizes are limited by memory bandwidth alone, but need
  /// more memory.
  std::vector<std::int64_t> elements = {1 << 20, 1 << 24, 1 << 27};
  /// Elements of the slice that is coded or copied during other work. The more there are, the
  /// smaller is the share of launches in the time.
  std::int64_t overlap_elements = 1 << 24;
  std::int64_t rows = 4096;  ///< rows of the square matrices in the computation that overlaps; a
                             ///< multiple of 64
  int bursts = 5;            ///< number of bursts of 8 tasks, over which medians are taken
  int launches = 2000;       ///< number of tiny tasks that are timed one after the other
  std::string only;          ///< part of the names of measured cases; empty: all cases
  double timeout_s = 60;     ///< limit for work that is enqueued at once
};

/// Adds rows of measurements of a device, timed by its own events (except launch.host):
/// - `copy.2^27`: the device's own copy of a gradient, in GB/s of gradient;
/// - `onebit.encode.2^20` and so on: two rows for encode, decode and decode_add of every algorithm,
///   in GB/s of gradient. Their references are "traffic_floor", the necessary memory traffic at the
///   copy's speed, and "copy". Encodes keep residuals if the algorithm has any. For a staged codec
///   such as powersgd, encode is all encodes of a step of a square matrix;
/// - `launch.host` and `launch.device`: microseconds per tiny task, by the host's and the device's
///   clock;
/// - `overlap.A_beside_B`: the factor by which A takes longer while B runs. A and B are codec
///   (onebit), copy (to pinned memory and back) or a class of computation (gemm, attention, …), but
///   not both a class of computation;
/// - `step.MIX_beside_B`, for B codec, transfer or both: two rows with milliseconds of an
///   artificial step with a known mix of computation. The first has the step as simulated with
///   factors that are measured here. The second ("measured_unslowed") has it as simulated without
///   slowdown. The reference of both is the measured step.
/// `with_staged` is false for devices that cannot run staged codecs. Throws io::RunError if the
/// device has too little memory for every size.
void add_device_rows(Report& report, runtime::Device& device, const DeviceRowOptions& options,
                     bool with_staged);

}  // namespace hipress::bench
