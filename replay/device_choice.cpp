#include "replay/device_choice.hpp"

#include <fmt/format.h>

#include "io/error.hpp"

namespace hipress::replay {

DeviceChoice choose_device(const DeviceRequest& request, const std::optional<io::Launch>& launch) {
  const bool direct = request.transport == "nccl";
  DeviceChoice choice{
      .device = {},
      .transport = direct ? std::string(transport::kDefaultTransport) : request.transport};
  if (request.device == "cpu") {
    if (direct) throw io::InputError("`transport` nccl moves data between GPUs: add `device` cuda");
    return choice;
  }
  const int gpus = runtime::cuda_devices();
  if (gpus == 0) runtime::make_cuda_device(0);  // throws with the reason
  if (direct) {
    transport::bind_nccl(request.interface);
    choice.nccl = &transport::nccl_library();
  }
  const bool threads = !launch || launch->size == 1;
  if (direct && threads && request.ranks > gpus) {
    throw io::InputError(
        fmt::format("NCCL needs a GPU for every rank: {} ranks of this process see {}; use "
                    "`transport` tcp, or start the ranks as processes",
                    request.ranks, gpus));
  }
  const int own = threads ? 0 : io::choose_gpu(launch, gpus);
  choice.device = [gpus, threads, own](int rank) {
    return runtime::make_cuda_device(threads ? rank % gpus : own);
  };
  return choice;
}

}  // namespace hipress::replay
