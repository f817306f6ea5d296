#pragma once

#include <string>
#include <string_view>

namespace hipress::io {

/// Rewrites a sentence of a library for the command line. Libraries name a field of a request in
/// backticks, with underscores: "`transfer_order` has no effect". A word of [a-z][a-z0-9_]* between
/// backticks becomes the long option of that name: "--transfer-order has no effect". Everything
/// else stays as it is, also a word behind a quotation mark, because it is the user's own
/// (quote()).
std::string as_command_line(std::string_view sentence);

}  // namespace hipress::io
