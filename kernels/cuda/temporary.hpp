#pragma once

#include <cstddef>
#include <cstdint>

#include "kernels/cuda/batch.hpp"

/// Temporary memory of encodes and decodes on a GPU.
namespace hipress::kernels {

/// Temporary memory on a stream, returned to the stream's pool after its last use there.
class StreamMemory {
 public:
  StreamMemory(std::size_t bytes, cudaStream_t stream) : stream_(stream) {
    check_cuda(cudaMallocAsync(&data_, bytes, stream), "allocating temporary memory");
  }
  StreamMemory(const StreamMemory&) = delete;
  StreamMemory& operator=(const StreamMemory&) = delete;
  ~StreamMemory() { cudaFreeAsync(data_, stream_); }
  void* data() const { return data_; }

  /// Object at an offset of MemoryLayout.
  template <class T>
  T* at(std::size_t place) const {
    return reinterpret_cast<T*>(static_cast<std::byte*>(data_) + place);
  }

 private:
  void* data_ = nullptr;
  cudaStream_t stream_;
};

/// Offsets in temporary memory that is allocated after all are known.
class MemoryLayout {
 public:
  /// Reserves room for `count` objects and returns its offset.
  template <class T>
  std::size_t add(std::int64_t count) {
    const std::size_t at = bytes_;
    bytes_ += (static_cast<std::size_t>(count) * sizeof(T) + 255) / 256 * 256;
    return at;
  }
  std::size_t bytes() const { return bytes_; }

 private:
  std::size_t bytes_ = 0;
};

}  // namespace hipress::kernels
