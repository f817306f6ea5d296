#pragma once

#include <functional>
#include <memory>
#include <string>

#include "transport/endpoint.hpp"

/// How ranks become a job.
namespace hipress::job {

/// Connects this process as one rank of a job, over the named transport, with room for so many
/// collectives. Errors as TransportRow::connect, and io::InputError if the process may not open so
/// many connections, or Exhausted, both of which name the rank.
std::unique_ptr<transport::Endpoint> connect_rank(const std::string& transport,
                                                  const transport::JobOptions& options,
                                                  int collectives);

/// Calls `body` as every rank of a job of this process's threads, over the named transport, and
/// rethrows the error that says most. `collectives` is how many of these a rank has at a time.
/// io::InputError if the process may not open so many connections; Exhausted names a rank for which
/// no thread or memory is left.
void run_thread_ranks(const std::string& transport, int ranks, double timeout_s,
                      const std::function<void(transport::Endpoint&)>& body, int collectives = 0);

}  // namespace hipress::job
