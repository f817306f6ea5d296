#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>

#include "io/environment.hpp"
#include "runtime/device.hpp"
#include "transport/endpoint.hpp"
#include "transport/nccl_library.hpp"

namespace hipress::replay {

/// What a command line asks for.
struct DeviceRequest {
  std::string device = "cpu";  ///< cpu or cuda
  std::string transport{
      transport::kDefaultTransport};  ///< a row of transport::transports(), or nccl
  std::string interface = {};         ///< of transport::JobOptions; NCCL uses it too
  int ranks = 1;
};

/// Where the ranks of this process run, and what moves their messages.
struct DeviceChoice {
  std::function<std::unique_ptr<runtime::Device>(int rank)> device;  ///< none: their CPU
  transport::NcclLibrary* nccl = nullptr;                            ///< null: `transport`
  std::string transport;  ///< whose endpoints the ranks have; with NCCL for control alone
};

/// A process that a launcher started takes the GPU that io::choose_gpu() says; ranks that are
/// threads share what there is. Throws io::InputError, before any rank waits for another: without a
/// GPU (for its local rank) or NCCL, or if NCCL wants more GPUs than there are.
DeviceChoice choose_device(const DeviceRequest& request, const std::optional<io::Launch>& launch);

}  // namespace hipress::replay
