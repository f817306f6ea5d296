#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

#include "planner/problem/problem.hpp"

/// Gradient synchronisation of PyTorch's DistributedDataParallel.
namespace hipress::planner {

/// Default of DDP's bucket_cap_mb, in MiB as its code takes it.
inline constexpr int kBucketCap_mb = 25;

/// Buckets of DDP. Gradients are collected in the order of backward until a bucket has at least its
/// limit: 1 MiB for the first bucket of a dtype, `cap_mb` MiB for the others
/// (torch/csrc/distributed/c10d/reducer.cpp: compute_bucket_assignment_by_size,
/// kDefaultFirstBucketBytes). All gradients of a bucket have one dtype. Returns the gradients of
/// each bucket as indices into the model; every gradient is in one bucket.
std::vector<std::vector<std::uint32_t>> ddp_buckets(const models::Model& model,
                                                    int cap_mb = kBucketCap_mb);

/// DDP: the library all-reduces every bucket in the dtype of its gradients.
casync::Plan ddp(const Problem& problem);
casync::Plan ddp(const Problem& problem, int cap_mb);

/// DDP with fp16_compress_hook: buckets are cast to half precision, all-reduced, and cast back.
casync::Plan ddp_fp16(const Problem& problem);

/// Algorithm of ddp_powersgd() if the problem names no powersgd. The hook's own default is rank 1.
inline constexpr std::string_view kDdpPowerSgd = "powersgd(rank=4)";

/// DDP with powerSGD_hook (torch/distributed/algorithms/ddp_comm_hooks). A tensor is sent as
/// factors if they have less than half of its size, otherwise as it is. Each bucket becomes two
/// bulk groups: its raw tensors, with one all-reduce, and its compressed ones, with one all-reduce
/// of P and one of Q. Plans cannot express two properties of the hook: it starts neither group
/// before the whole bucket is ready, and it sends P only after the uncompressed tensors.
casync::Plan ddp_powersgd(const Problem& problem);

}  // namespace hipress::planner
