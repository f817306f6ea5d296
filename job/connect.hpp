#pragma once

#include <exception>
#include <functional>
#include <memory>
#include <string>

#include "job/exhaustion.hpp"
#include "transport/endpoint.hpp"

// Example: four ranks as threads of this process sum an array.
//
//   job::run_thread_ranks(
//       "tcp", 4, /*timeout_s=*/30,
//       [](transport::Endpoint& endpoint) {
//         std::vector<float> values(1024, static_cast<float>(endpoint.rank()));
//         endpoint.collective()->all_reduce(values);  // 0 + 1 + 2 + 3 everywhere
//       },
//       /*collectives=*/1);

/// Connects ranks to a job.
namespace hipress::job {

/// Calls `work`, which prepares this rank to meet the others. If it throws, they are told why.
template <class Work>
auto or_refuse(const transport::JobOptions& options, const Work& work) {
  try {
    return as_rank(options.rank, work);
  } catch (const std::exception& error) {
    transport::refuse(options, error.what());
    throw;
  }
}

/// Connects this process as one rank of a job over the named transport, with enough descriptors for
/// `collectives` collectives. Throws as TransportRow::connect does. Also throws io::InputError if
/// the process may not open enough connections, and Exhausted if it runs out of resources; both
/// name the rank. Other ranks that come to the rendezvous are told of the error.
std::unique_ptr<transport::Endpoint> connect_rank(const std::string& transport,
                                                  const transport::JobOptions& options,
                                                  int collectives);

/// Calls `body` as every rank of a job, on threads of this process, over the named transport.
/// Rethrows the most informative error. `collectives`: number of collectives that a rank has at a
/// time. Throws io::InputError if the process may not open enough connections, and Exhausted naming
/// a rank for which no thread or memory is left.
void run_thread_ranks(const std::string& transport, int ranks, double timeout_s,
                      const std::function<void(transport::Endpoint&)>& body, int collectives = 0);

}  // namespace hipress::job
