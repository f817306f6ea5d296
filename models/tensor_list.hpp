#pragma once

#include <cstdint>
#include <set>
#include <string>
#include <vector>

#include "models/model.hpp"

namespace hipress::models {

/// Collects the tensors of a file in the order of forward, and makes gradients in the order of
/// backward. Skips running statistics of norms, which are stored with parameters but never trained.
class TensorList {
 public:
  using Shape = std::vector<std::int64_t>;

  explicit TensorList(std::string file) : file_(std::move(file)) {}

  /// Adds a tensor. Throws io::InputError, with the line unless it is 0, for an unprintable or
  /// duplicate name, or an invalid size.
  void add(const std::string& name, Shape shape, int line);
  /// Adds a tensor of unknown shape.
  void add(const std::string& name, std::int64_t elements, int line);
  std::int64_t elements() const { return total_; }

  Model take();
  /// Sentence on the skipped tensors; empty if add() skipped nothing.
  std::string left_out() const;

 private:
  void add(const std::string& name, Shape shape, std::int64_t elements, int line);

  std::string file_;
  std::vector<Gradient> tensors_;
  std::set<std::string> names_;
  std::int64_t total_ = 0;
  int statistics_ = 0;
};

}  // namespace hipress::models
