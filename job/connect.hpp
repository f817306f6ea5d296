#pragma once

#include <exception>
#include <functional>
#include <memory>
#include <string>

#include "job/exhaustion.hpp"
#include "transport/endpoint.hpp"

/// How ranks become a job.
namespace hipress::job {

/// Calls `work`, which this rank has to do before it meets the others: they are told what it
/// throws.
template <class Work>
auto or_refuse(const transport::JobOptions& options, const Work& work) {
  try {
    return as_rank(options.rank, work);
  } catch (const std::exception& error) {
    transport::refuse(options, error.what());
    throw;
  }
}

/// Connects this process as one rank of a job, over the named transport, with descriptors for
/// `collectives` collectives. Errors as TransportRow::connect; also io::InputError if the process
/// may not open enough connections, and Exhausted. Both name the rank. The ranks that come to the
/// rendezvous are told the error of one that does not.
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
