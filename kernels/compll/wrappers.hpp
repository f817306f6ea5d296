#pragma once

#include <string>
#include <vector>

#include "kernels/compll/compiler.hpp"

namespace hipress::compll {

/// Parts of an operator's source code to generate.
enum class WrapperPart {
  kWrapper,       ///< header with the operators as functions of the framework's tensors
  kRegistration,  ///< source that includes that header and registers these functions
  kBoth,          ///< one source with functions and registration
};

std::vector<std::string> framework_names();

/// File name of a part: "tbq_pytorch.cpp" for stem "tbq", or "….hpp" for kWrapper.
std::string wrapper_file(const std::string& stem, const std::string& framework, WrapperPart part);

/// Content of the file that wrapper_file() names: a program as operators of a framework. `origin`
/// is the program's file, for error messages. Throws io::InputError if the program has no decoder,
/// if a parameter has a reserved name, or if kRegistration cannot include a header of this name.
std::string wrap(const Compiled& compiled, const std::string& origin, const std::string& stem,
                 const std::string& framework, WrapperPart part);

}  // namespace hipress::compll
