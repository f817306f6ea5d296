#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <stdexcept>
#include <string>
#include <vector>

#include "io/thread_variables.hpp"
#include "models/model.hpp"
#include "runtime/engine.hpp"
#include "runtime/hipress.h"
#include "runtime/last_error.hpp"

/// Helpers shared by the functions of hipress.h: reading of arguments, and translation of
/// exceptions into statuses.
namespace hipress::runtime {

/// Records the exception being handled for hipress_last_error(), and returns its status.
hipress_status note_exception() noexcept;

/// Calls `work` and translates an exception into a status.
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

/// List at a pointer, which may be null if `count` is 0. Throws std::invalid_argument as
/// refuse_null() does, and if no list can be that long, as with a converted negative number.
template <class T>
std::span<T> list_of(T* list, std::size_t count, const char* name) {
  if (count == 0) return {};
  refuse_null(list, name);
  if (count <= PTRDIFF_MAX / sizeof(T)) return {list, count};
  throw std::invalid_argument("count is " + std::to_string(count) + ", which no list of " + name +
                              " can have");
}

/// Text at a pointer; empty for null.
std::string text_of(const char* text);

/// Copy of `text` for hipress_free_result(); null if out of memory.
char* copy_of(const std::string& text) noexcept;

/// Data type of a hipress_type. Throws std::invalid_argument for any other number: a C program may
/// have stored one, and reading it as an enumerator would be undefined.
models::Dtype dtype_of(const hipress_type& type);

/// Compiled plan that an automatic job has chosen, and a sentence that gives the reason.
struct Chosen {
  std::shared_ptr<const Compiled> compiled;
  std::string note;
};

/// Chooses the plan (hipress_options::automatic). Collective. Throws as compile() does, and
/// transport::PeerError if a rank is lost. Defined in requests/automatic_engine.cpp: the planner is
/// above this folder.
Chosen choose_plan(transport::Endpoint& endpoint, const std::vector<Gradient>& gradients,
                   const hipress_options& options);

/// Gradients of a list; `fragments` may be null. Throws std::invalid_argument for an empty list, an
/// unsuitable name (io/utf8.hpp) or invalid dimensions.
std::vector<Gradient> gradients_of(const hipress_gradient* gradients, std::size_t count,
                                   const std::uint32_t* fragments);

}  // namespace hipress::runtime
