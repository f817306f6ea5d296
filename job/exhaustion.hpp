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

/// The machine, or a limit of this process, allows no more memory, threads or descriptors. The
/// message names the requester, such as "rank 2", and the remedy.
class Exhausted : public io::RunError {
 public:
  /// `error` is an errno.
  Exhausted(std::string_view who, int error);
};

/// True if `code` reports resource exhaustion (EAGAIN, ENOMEM, EMFILE, ENFILE).
bool is_exhaustion(const std::error_code& code);

/// Calls `work`; resource exhaustion becomes an Exhausted that names the rank.
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

/// Calls work(0) … work(count−1), each on its own thread, and returns what they threw. If a thread
/// cannot be started, calls `work` for none of them, and throws Exhausted naming that thread by
/// `noun` and number, such as "rank 2".
std::vector<std::exception_ptr> run_together(std::string_view noun, int count,
                                             const std::function<void(int)>& work);

}  // namespace hipress::job
