#pragma once

#include <exception>
#include <functional>
#include <new>
#include <string>
#include <string_view>
#include <system_error>
#include <vector>

#include "io/error.hpp"

namespace hipress::job {

/// The machine, or a limit on this process, gave no more memory, threads or descriptors. The
/// message names who asked, as "rank 2", and the remedy.
class Exhausted : public io::RunError {
 public:
  /// `error` is an errno.
  Exhausted(std::string_view who, int error);
};

/// Whether the error, as of a thread that could not be started, is about what has run out.
bool is_exhaustion(const std::error_code& code);

/// Calls `work`; what it lacks becomes an Exhausted of the rank.
template <class Work>
auto as_rank(int rank, const Work& work) {
  try {
    return work();
  } catch (const std::bad_alloc&) {
    throw Exhausted("rank " + std::to_string(rank), ENOMEM);
  } catch (const std::system_error& error) {
    if (!is_exhaustion(error.code())) throw;
    throw Exhausted("rank " + std::to_string(rank), error.code().value());
  }
}

/// Calls work(0) … work(count−1), each on a thread of its own, and returns what they threw. None is
/// called unless all threads can be started: Exhausted names the first that cannot, by its number
/// and `noun`, as "rank 2".
std::vector<std::exception_ptr> run_together(std::string_view noun, int count,
                                             const std::function<void(int)>& work);

}  // namespace hipress::job
