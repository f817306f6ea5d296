#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <stdexcept>
#include <string>
#include <vector>

#include "io/thread_variables.hpp"
#include "models/model.hpp"
#include "runtime/engine.hpp"
#include "runtime/hipress.h"
#include "runtime/last_error.hpp"

/// What the functions of hipress.h have in common: how arguments are read, and how what is thrown
/// becomes a status.
namespace hipress::runtime {

/// The status of the exception that is being handled, noted for hipress_last_error().
hipress_status note_exception() noexcept;

/// Calls `work`; what it throws becomes a status.
template <class Work>
hipress_status guarded(const Work& work) noexcept {
  io::allocate_thread_variables();
  try {
    work();
    return HIPRESS_OK;
  } catch (...) {
    return note_exception();
  }
}

/// Throws std::invalid_argument that names the pointer if it is null.
inline void refuse_null(const void* argument, const char* name) {
  if (argument == nullptr) throw std::invalid_argument(std::string(name) + " is null");
}

/// Dereferences a pointer. Throws std::invalid_argument as refuse_null() does.
template <class T>
T& required(T* argument, const char* name) {
  refuse_null(argument, name);
  return *argument;
}

/// The list at a pointer, which may be null if `count` is 0. Throws std::invalid_argument as
/// refuse_null() does, and for more than memory can hold, which is what a negative number becomes.
template <class T>
std::span<T> list_of(T* list, std::size_t count, const char* name) {
  if (count == 0) return {};
  refuse_null(list, name);
  if (count <= PTRDIFF_MAX / sizeof(T)) return {list, count};
  throw std::invalid_argument("count is " + std::to_string(count) + ", which no list of " + name +
                              " can have");
}

/// Empty for null.
std::string text_of(const char* text);

/// A copy for hipress_free_result(); null without memory.
char* copy_of(const std::string& text) noexcept;

/// std::invalid_argument for a number that is no type: a C program may have left any there, and one
/// that is no enumerator must not be read as one.
models::Dtype dtype_of(const hipress_type& type);

/// The gradients of a list; `fragments` may be null. std::invalid_argument for an empty list, a
/// name that is unfit (io/utf8.hpp), dimensions that are none.
std::vector<Gradient> gradients_of(const hipress_gradient* gradients, std::size_t count,
                                   const std::uint32_t* fragments);

}  // namespace hipress::runtime
