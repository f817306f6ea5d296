#pragma once

#include <functional>
#include <memory>
#include <string>

#include "requests/hooks.hpp"
#include "requests/replay_job.hpp"
#include "requests/replay_request.hpp"
#include "transport/endpoint.hpp"

/// Ranks of a replay: processes that meet, or threads of this process.
namespace hipress::requests {

/// Endpoint in the launcher's job; null if ranks are threads.
std::unique_ptr<transport::Endpoint> connect(const ReplayRequest& request, const ReplayJob& job,
                                             const std::string& transport,
                                             transport::JobOptions options);

/// Function that reports each iteration of this process's first rank, and ends the job if it is
/// interrupted. `all`: number of iterations.
std::function<void(int rank, int iteration)> progress_of(int all, bool threads, const Hooks& hooks);

}  // namespace hipress::requests
