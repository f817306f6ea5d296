#pragma once

#include <exception>
#include <span>
#include <string>
#include <string_view>

#include "io/document.hpp"
#include "requests/hooks.hpp"

/// Requests by name, from documents to documents: what C and Python call.
namespace hipress::requests {

/// A kind of request: adding one is one file and one row.
struct RequestRow {
  std::string_view name;  ///< what "request" says
  std::string_view help;
  io::Document (*schema)(const RequestRow& row);
  io::Document (*answer)(const io::Document& request, const Hooks& hooks);
};
std::span<const RequestRow> requests();

/// The answer to {"request": "plan", …}. To {"request": "schema"}: the JSON schema of every
/// request, by name. To {"request": "result_schema"}: the schemas of all results
/// (result_forms.hpp), in lists. FieldError for a request of no known kind; else throws as the
/// request's own function. May be called by several threads at a time.
io::Document answer(const io::Document& request, const Hooks& hooks);

/// {"error": {kind, message, file, line, field, remedy}}, with null for what is not known. Where a
/// requirement was not met, "result" holds what was found out all the same. Kinds: "input" (the
/// request is wrong), "unmet" (a requirement is not met), "environment" (memory, threads or disks:
/// the same request may work elsewhere), "interrupted", "internal". `request` is the request that
/// failed, or null.
io::Document error_document(const std::exception& error, const io::Document& request);

}  // namespace hipress::requests
