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

/// Device and transport that a command line requests.
struct DeviceRequest {
  std::string device = "cpu";  ///< cpu or cuda
  std::string transport{
      transport::kDefaultTransport};  ///< a row of transport::transports(), or nccl
  std::string interface = {};         ///< network interface, as in transport::JobOptions; NCCL
                                      ///< uses it too
  int ranks = 1;
};

/// Devices of the ranks of this process, and the transport of their messages.
struct DeviceChoice {
  std::function<std::unique_ptr<runtime::Device>(int rank)> device;  ///< empty: the CPU
  transport::NcclLibrary* nccl = nullptr;                            ///< null: `transport`
  std::string transport;  ///< transport of the endpoints; with NCCL for control messages only
};

/// Chooses devices. A process of a launcher takes the GPU of io::choose_gpu(); ranks that are
/// threads share all GPUs, round robin. Throws io::InputError, before any rank waits for another,
/// if there is no GPU (or none for the local rank), no NCCL, or fewer GPUs than NCCL would need.
DeviceChoice choose_device(const DeviceRequest& request, const std::optional<io::Launch>& launch);

}  // namespace hipress::replay
