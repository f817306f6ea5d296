#pragma once

#include <string>
#include <string_view>

namespace hipress::io {

/// A sentence of a library as a command line says it. Libraries name a field of a request in
/// backticks, with underscores: "`transfer_order` has no effect". A word of [a-z][a-z0-9_]* between
/// backticks becomes the long option of that name, "--transfer-order has no effect"; everything
/// else stays as it is, and so does a word behind a quotation mark, which is a user's own
/// (quote()).
std::string as_command_line(std::string_view sentence);

}  // namespace hipress::io
