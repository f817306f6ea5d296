#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

#include "costs/collective_way.hpp"
#include "costs/machine.hpp"

namespace hipress::costs {

/// Ways in which the machine's library can carry out an operation of `bytes` bytes on these GPUs;
/// for Gloo see gloo_ways(). Each way of NCCL has two times:
///  - `planned_s` is the estimate of NCCL's own tuning model, by which it chooses (formulas and
///    constants: src/graph/tuning.cc of NCCL 2.27 and 2.19).
///  - `seconds` = launch + steps · latency + bytes / rate + fill. The rate is that of the slower of
///    NVLink and the cards that the GPUs of a host share, with one ring per rail. The fill is the
///    time until the pipeline between hosts is full. docs/collectives.md has the constants.
/// Throws std::invalid_argument if hosts have different numbers of GPUs or more than the machine,
/// or if a machine without a network has several hosts.
std::vector<CollectiveWay> collective_ways(const Machine& machine, Ranks ranks, Operation operation,
                                           double bytes);

/// The library's choice: the first way with the smallest `planned_s`. `algorithm` and `protocol`,
/// unless empty, restrict the choice like NCCL_ALGO and NCCL_PROTO. Throws InputError if no way
/// matches.
CollectiveWay collective_time(const Machine& machine, Ranks ranks, Operation operation,
                              double bytes, std::string_view algorithm = {},
                              std::string_view protocol = {});

/// Bandwidth of a GPU in a ring through `gpus_of_host` GPUs of its host, in bytes per second.
double ring_bandwidth(const Machine& machine, std::uint32_t gpus_of_host);

/// Operation by name, such as "all_reduce". InputError lists the names.
Operation operation_named(std::string_view name);

}  // namespace hipress::costs
