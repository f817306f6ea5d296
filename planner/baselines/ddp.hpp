#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

#include "planner/problem/problem.hpp"

/// What PyTorch's DistributedDataParallel does with gradients.
namespace hipress::planner {

/// Its buckets: gradients in the order of backward, collected until a bucket has at least its
/// limit, which is 1 MiB for the first and 25 MiB for every other (torch/csrc/distributed/c10d/
/// reducer.cpp: compute_bucket_assignment_by_size, kDefaultFirstBucketBytes; bucket_cap_mb = 25).
/// Gradients of one type share buckets. Input indices; each gradient is in one bucket.
std::vector<std::vector<std::uint32_t>> ddp_buckets(const models::Model& model);

/// Every bucket all-reduced by the library in its gradients' type.
casync::Plan ddp(const Problem& problem);

/// The same with the hook fp16_compress_hook: buckets are cast to half precision, all-reduced so,
/// and cast back.
casync::Plan ddp_fp16(const Problem& problem);

/// The algorithm of the next, unless the problem has another powersgd; the hook's own default is
/// rank 1.
inline constexpr std::string_view kDdpPowerSgd = "powersgd(rank=4)";

/// The same with the hook powerSGD_hook (torch/distributed/algorithms/ddp_comm_hooks). Of every
/// bucket, the tensors that the rank makes less than half as large are sent as factors, the others
/// as they are. A bucket is two bulk groups, raw and in stages, with three all-reduces. Plans
/// cannot say two things that the hook does: it begins with neither group before all of the bucket
/// is there, and it sends P only behind the tensors that it does not compress.
casync::Plan ddp_powersgd(const Problem& problem);

}  // namespace hipress::planner
