#pragma once

#include <functional>
#include <memory>
#include <string>

#include "transport/endpoint.hpp"

/// How ranks become a job.
namespace hipress::job {

/// Connects this process as one rank of a job, over the named transport, with descriptors for
/// `collectives` collectives. Errors as TransportRow::connect; also io::InputError if the process
/// may not open enough connections, and Exhausted. Both name the rank.
std::unique_ptr<transport::Endpoint> connect_rank(const std::string& transport,
                                                  const transport::JobOptions& options,
                                                  int collectives);

/// Calls `body` as every rank of a job of this process's threads, over the named transport, and
/// rethrows the error that says most. `collectives` is how many collectives a rank has at a time.
/// io::InputError if the process may not open enough connections; Exhausted names a rank for which
/// no thread or memory is left.
void run_thread_ranks(const std::string& transport, int ranks, double timeout_s,
                      const std::function<void(transport::Endpoint&)>& body, int collectives = 0);

}  // namespace hipress::job
