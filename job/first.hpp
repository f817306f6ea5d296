#pragma once

#include <functional>
#include <string>

#include "io/interrupt_flag.hpp"
#include "transport/endpoint.hpp"

// Example: rank 0 plans for all ranks.
//
//   const std::string plan = job::made_by_first(endpoint, [&](io::InterruptFlag ended) {
//     return plan_text(model, ended);
//   });

namespace hipress::job {

/// Returns the text that rank 0 makes, on every rank. Collective. The ranks exchange signs of life
/// meanwhile, so that `make` may take longer than the job's timeout. `make` runs on a thread of its
/// own, and should end early if `ended` is set: because a rank is lost, or `interrupted` is set. If
/// `make` throws, every rank throws an error with its message: io::InputError if `make` threw that
/// or std::invalid_argument, else io::RunError. Throws transport::PeerError if a rank is lost.
std::string made_by_first(transport::Endpoint& endpoint,
                          const std::function<std::string(io::InterruptFlag ended)>& make,
                          io::InterruptFlag interrupted = {});

}  // namespace hipress::job
