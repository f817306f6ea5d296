#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace hipress::kernels {

/// The algorithms of a list, split at the commas that are not in parentheses:
/// "tbq(tau=0.25),dgc(rho=0.02,momentum=0.9)" has two. Whether they can be made is make_codec's
/// business.
std::vector<std::string> split_algorithms(std::string_view list);

}  // namespace hipress::kernels
