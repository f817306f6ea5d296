#pragma once

#include <exception>
#include <span>
#include <string>
#include <string_view>

#include "io/document.hpp"
#include "requests/hooks.hpp"

/// Requests by name, from documents to documents, for C and Python.
///
/// Example:
///
///     const io::Document request = {{"request", "plan"},
///                                   {"input", "vgg19"},
///                                   {"profile", "a100-10g"},
///                                   {"compute_time", "120ms"},
///                                   {"nnodes", 8}};
///     try {
///       std::puts(requests::answer(request, {}).print(2).c_str());
///     } catch (const std::exception& error) {
///       std::puts(requests::error_document(error, request).print(2).c_str());
///     }
namespace hipress::requests {

/// A kind of request: adding one is one file and one row.
struct RequestRow {
  std::string_view name;  ///< value of the member "request"
  std::string_view help;
  io::Document (*schema)(const RequestRow& row);
  io::Document (*answer)(const io::Document& request, const Hooks& hooks);
};
std::span<const RequestRow> requests();

/// Answers {"request": "plan", …}. {"request": "schema"} returns the JSON schemas of all requests,
/// by name. {"request": "result_schema"} returns the schemas of all results (result_forms.hpp), in
/// lists. Throws FieldError for an unknown request; else throws as the request's own function does.
/// Thread-safe.
io::Document answer(const io::Document& request, const Hooks& hooks);

/// Error as a document: {"error": {kind, message, file, line, field, remedy}}, with null for
/// unknown values. If a requirement was not met, "result" holds the result found anyway. Kinds:
/// "input" (the request is wrong), "unmet" (a requirement is not met), "environment" (memory,
/// threads or disks: the same request may work elsewhere), "interrupted", "internal". `request` is
/// the request that failed, or null.
io::Document error_document(const std::exception& error, const io::Document& request);

}  // namespace hipress::requests
