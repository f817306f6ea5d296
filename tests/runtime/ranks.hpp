#pragma once

#include <atomic>
#include <exception>
#include <functional>
#include <string>
#include <thread>
#include <vector>

#include "transport/endpoint.hpp"

namespace hipress::runtime {

/// Calls `body` as every rank of an in-process job, each in a thread of its own, and returns their
/// errors in rank order.
inline std::vector<std::exception_ptr> run_ranks(
    int size, const std::function<void(transport::Endpoint&)>& body,
    const std::string& transport = "memory", double timeout_s = 30) {
  static std::atomic<int> jobs{0};
  const std::string job = "test-ranks-" + std::to_string(jobs++);
  std::vector<std::exception_ptr> errors(static_cast<std::size_t>(size));
  std::vector<std::jthread> threads;
  for (int rank = 0; rank < size; ++rank) {
    threads.emplace_back([&, rank] {
      try {
        const auto endpoint =
            transport::find_transport(transport).connect({.rank = rank,
                                                          .size = size,
                                                          .job = job,
                                                          .plan = {},
                                                          .rendezvous = "local:" + job,
                                                          .interface = {},
                                                          .timeout_s = timeout_s});
        body(*endpoint);
      } catch (...) {
        errors[static_cast<std::size_t>(rank)] = std::current_exception();
      }
    });
  }
  threads.clear();  // joins
  return errors;
}

/// Culprit of a PeerError; -1 for any other error, or none.
inline int culprit_of(const std::exception_ptr& error) {
  try {
    if (error) std::rethrow_exception(error);
  } catch (const transport::PeerError& peer) {
    return peer.culprit;
  } catch (...) {
    return -1;
  }
  return -1;
}

inline std::string message_of(const std::exception_ptr& error) {
  if (!error) return "no error";
  try {
    std::rethrow_exception(error);
  } catch (const std::exception& e) {
    return e.what();
  }
}

}  // namespace hipress::runtime
