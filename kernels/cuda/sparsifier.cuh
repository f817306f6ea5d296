#pragma once

#include "kernels/cuda/sparsifier_decode.cuh"
#include "kernels/cuda/sparsifier_encode.cuh"

/// Frame of sparsifiers on a GPU: the kernels around an algorithm's arithmetic. Messages and states
/// have the same bits as on a CPU. Only files of a single algorithm include this header.
namespace hipress::kernels {

#ifndef __CUDACC_RTC__  // NVRTC: user/algorithm_cuda.cpp looks the kernels up by name

template <class Algorithm>
CudaSparsifierKernels cuda_sparsifier_kernels() {
  return {.look = handle_of(look_for_non_finite<Algorithm>),
          .sample = handle_of(sample_entries<Algorithm>),
          .collect = handle_of(collect_entries<Algorithm>),
          .count_digits = handle_of(count_digits<Algorithm>),
          .conclude_digit = handle_of(conclude_digit<Algorithm>),
          .tally = handle_of(tally_tiles<Algorithm>),
          .place = handle_of(place_blocks<Algorithm>),
          .write = handle_of(write_entries<Algorithm>),
          .check = handle_of(check_messages<Algorithm>),
          .decode = handle_of(decode_entries<Algorithm>)};
}

#endif

}  // namespace hipress::kernels
