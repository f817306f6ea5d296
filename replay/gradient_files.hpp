#pragma once

#include <cstdint>
#include <span>
#include <string>

#include "casync/layout.hpp"
#include "models/model.hpp"

namespace hipress::replay {

/// Path of a gradient, or its mean, in a folder that other programs write or read:
/// `folder/rank{r}/{index}.f32` is rank r's copy of the model's gradient `index` (from 0, in input
/// order). The file holds little-endian fp32 values only, whatever the model's dtype.
std::string gradient_file(const std::string& folder, std::uint32_t rank, std::uint32_t gradient);

/// Gradients of all ranks in files. Every iteration uses the same values.
class GradientFiles {
 public:
  /// Checks every file of every rank. Throws io::InputError that names the first one that is
  /// missing, is not a regular file or has the wrong size.
  GradientFiles(std::string folder, const models::Model& model, std::uint32_t ranks);

  /// Reads a gradient's elements, starting at `first_element`. Thread-safe. Throws io::RunError if
  /// the file cannot be read or has become shorter.
  void read(std::uint32_t rank, std::uint32_t gradient, std::int64_t first_element,
            std::span<float> values) const;

 private:
  std::string folder_;
};

/// Makes the folders that write_means() fills for `ranks` ranks, starting at `first_rank`. Every
/// process of a job calls it before the ranks meet. Throws io::InputError if the folder holds a
/// file, or if a rank's folder cannot be made or written to.
void prepare_means(const std::string& folder, std::uint32_t first_rank, std::uint32_t ranks);

/// Writes a rank's final values, each file atomically. `units` has the layout's units, as in
/// Runtime. Throws io::RunError if writing fails, as on a full disk.
void write_means(const std::string& folder, std::uint32_t rank, const models::Model& model,
                 const casync::Layout& layout, std::span<const std::span<float>> units);

/// Path of a rank's encoder states, such as residuals: `folder/rank{r}.state`, in the format of
/// kernels::StateStore.
std::string state_file(const std::string& folder, std::uint32_t rank);

/// Makes the folder for states. Throws io::InputError if it cannot be made or written to.
void prepare_states(const std::string& folder);

/// Throws io::InputError that names the first of the ranks' state files that is missing or
/// malformed.
void require_states(const std::string& folder, std::uint32_t ranks);

}  // namespace hipress::replay
