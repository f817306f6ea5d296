#pragma once

#include <exception>
#include <span>
#include <string>
#include <string_view>

#include "io/document.hpp"
#include "requests/hooks.hpp"

/// Answers requests by name, for C and Python. Requests and answers are documents.
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

/// A kind of request. To add one, add a file and a row.
struct RequestRow {
  std::string_view name;  ///< value of the member "request"
  std::string_view help;
  io::Document (*schema)(const RequestRow& row);
  io::Document (*answer)(const io::Document& request, const Hooks& hooks);
};
std::span<const RequestRow> requests();

/// Answers {"request": "plan", …}. {"request": "schema"} returns the JSON schemas of all requests
/// by name. {"request": "result_schema"} returns, for each request, the list of its results'
/// schemas (result_forms.hpp). Throws FieldError for an unknown request, and otherwise as the
/// request's own function does. Thread-safe.
io::Document answer(const io::Document& request, const Hooks& hooks);

/// Error as a document: {"error": {kind, message, file, line, field, remedy}}; unknown values are
/// null. If a requirement was not met, "result" holds the result found anyway. The kinds are
/// "input" (the request is wrong), "unmet" (a requirement is not met), "environment" (lack of
/// memory, threads or disk space: the request may work elsewhere), "interrupted" and "internal".
/// `request` is the request that failed, or null.
io::Document error_document(const std::exception& error, const io::Document& request);

}  // namespace hipress::requests
