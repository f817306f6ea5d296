// hipress_call(): requests and results as JSON, for C and for languages that can call C.

#include <cxxabi.h>
#include <fmt/format.h>

#include <cstdlib>
#include <exception>
#include <new>
#include <optional>
#include <stdexcept>
#include <string>
#include <utility>

#include "io/document.hpp"
#include "io/interrupt_flag.hpp"
#include "io/thread_variables.hpp"
#include "requests/request.hpp"
#include "runtime/c_interface.hpp"
#include "runtime/hipress.h"

namespace {

using namespace hipress;
using io::Document;
using runtime::copy_of;

requests::Hooks hooks_of(const hipress_call_options& options) {
  requests::Hooks hooks;
  void* const context = options.context;
  hooks.interrupted = io::InterruptFlag(options.interrupt);
  if (const auto warn = options.warn) {
    hooks.warn = [=](const std::string& text) { warn(context, text.c_str()); };
  }
  if (const auto inform = options.inform) {
    hooks.inform = [=](const std::string& text) { inform(context, text.c_str()); };
  }
  if (const auto report = options.progress) {
    hooks.progress = [=](const requests::Progress& progress) {
      const std::string stage(progress.stage);
      const hipress_progress at = {.stage = stage.c_str(),
                                   .share = progress.share,
                                   .done = progress.done,
                                   .all = progress.all,
                                   .best_s = progress.best_s.value_or(0)};
      report(context, &at);
    };
  }
  return hooks;
}

void require(const hipress_call_options& options) {
  if (options.bytes == sizeof(hipress_call_options)) return;
  throw std::invalid_argument(
      fmt::format("the options have {} bytes, and {} were expected: set them with "
                  "hipress_call_options_init(), and compile with the header of this library",
                  options.bytes, sizeof(hipress_call_options)));
}

hipress_status status_of(const std::exception& error) {
  const bool input = dynamic_cast<const io::InputError*>(&error) != nullptr ||
                     dynamic_cast<const std::invalid_argument*>(&error) != nullptr;
  return input ? HIPRESS_INVALID : HIPRESS_FAILED;
}

/// Stores the error's document in `result`.
hipress_status fail(const std::exception& error, const Document& request, char*& result) {
  const Document answer = requests::error_document(error, request);
  result = copy_of(answer.print(2));
  return runtime::note(status_of(error), answer.find("error")->find("message")->text()->c_str());
}

/// Parses JSON. Throws a FieldError that names no field if the text is not JSON.
Document parsed(const char* request) {
  try {
    return Document::parse(request, "request");
  } catch (const io::InputError& error) {
    throw requests::FieldError("", error.what(),
                               "give one JSON object, such as {\"request\": \"schema\"}");
  }
}

hipress_status call(const hipress_call_options& options, const char* request, char*& result) {
  Document asked;
  try {
    require(options);
    if (request == nullptr) throw std::invalid_argument("request is null");
    asked = parsed(request);
    result = copy_of(requests::answer(asked, hooks_of(options)).print(2));
    if (result == nullptr) throw std::bad_alloc();
    return HIPRESS_OK;
  } catch (const std::exception& error) {
    return fail(error, asked, result);
  }
}

}  // namespace

extern "C" {

void hipress_call_options_init(hipress_call_options* options) {
  if (options == nullptr) return;
  *options = {};
  options->bytes = sizeof(hipress_call_options);
}

hipress_status hipress_call_with(const hipress_call_options* options, const char* request,
                                 char** result) {
  if (result == nullptr) return runtime::note(HIPRESS_INVALID, "result is null");
  *result = nullptr;
  io::allocate_thread_variables();
  try {
    hipress_call_options usual;
    hipress_call_options_init(&usual);
    return call(options == nullptr ? usual : *options, request, *result);
  } catch (const abi::__forced_unwind&) {
    throw;                                 // the thread is being cancelled
  } catch (const std::exception& error) {  // no memory for the error's document
    return runtime::note(HIPRESS_FAILED, error.what());
  } catch (...) {
    return runtime::note(HIPRESS_FAILED, "unknown error");
  }
}

hipress_status hipress_call(const char* request, char** result) {
  return hipress_call_with(nullptr, request, result);
}

void hipress_free_result(char* result) { std::free(result); }

}  // extern "C"
