#pragma once

#include <string>

#include "models/tensor_list.hpp"

namespace hipress::models {

/// Counts of the initializers of an ONNX file that were not added.
struct OnnxRest {
  int constants = 0;  ///< integer and boolean initializers: indices, shapes
};

/// Adds the initializers of an ONNX model (names, types and shapes, without values), in the file's
/// order. Parses protobuf's wire format in one pass; memory does not grow with the tensors' sizes.
/// Throws io::InputError with the offset for invalid bytes: lengths beyond their message or the
/// file, groups, names of more than 4096 bytes, more than 16 dimensions, or more than 10^6 tensors.
OnnxRest add_onnx(const std::string& path, TensorList& tensors);

}  // namespace hipress::models
