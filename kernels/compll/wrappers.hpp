#pragma once

#include <string>
#include <vector>

#include "kernels/compll/compiler.hpp"

namespace hipress::compll {

/// Parts of an operator's source code to generate.
enum class WrapperPart {
  kWrapper,       ///< header with the functions, on the framework's tensors
  kRegistration,  ///< source that includes that header and registers them
  kBoth,          ///< one source with both
};

/// Names of the frameworks with a wrapper: "pytorch", …
std::vector<std::string> framework_names();

/// File name of a part: "tbq_pytorch.cpp" for stem "tbq".
std::string wrapper_file(const std::string& stem, const std::string& framework, WrapperPart part);

/// Content of the file that wrapper_file() names: a program as operators of a framework. `origin`
/// is the program's file, for error messages. Throws io::InputError if the program has no decoder,
/// or if a parameter's name is reserved by the operators.
std::string wrap(const Compiled& compiled, const std::string& origin, const std::string& stem,
                 const std::string& framework, WrapperPart part);

}  // namespace hipress::compll
