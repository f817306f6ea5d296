#pragma once

#include <string>
#include <string_view>

namespace hipress::io {

/// Rewrites a library's message for the command line: a field in backticks becomes its long option.
/// "`transfer_order` has no effect" becomes "--transfer-order has no effect". Fields match
/// [a-z][a-z0-9_]*. Other text does not change, nor does the user's text, which quote() has quoted.
std::string as_command_line(std::string_view sentence);

}  // namespace hipress::io
