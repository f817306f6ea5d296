#pragma once

#include <cstdint>
#include <vector>

#include "planner/problem/problem.hpp"

/// What PyTorch's DistributedDataParallel does with gradients.
namespace hipress::planner {

/// Its buckets: gradients in the order of backward, collected until a bucket has at least its
/// limit, which is 1 MiB for the first and 25 MiB for every other (torch/csrc/distributed/c10d/
/// reducer.cpp: compute_bucket_assignment_by_size, kDefaultFirstBucketBytes; bucket_cap_mb = 25).
/// Input indices; each gradient is in one bucket.
std::vector<std::vector<std::uint32_t>> ddp_buckets(const models::Model& model);

/// Every bucket all-reduced by the library in fp32.
casync::Plan ddp(const Problem& problem);

/// The same with the hook fp16_compress_hook: buckets are cast to half precision, all-reduced so,
/// and cast back.
casync::Plan ddp_fp16(const Problem& problem);

}  // namespace hipress::planner
