#pragma once

#include <cstdint>
#include <span>
#include <string>

#include "casync/layout.hpp"
#include "models/model.hpp"

namespace hipress::replay {

/// Gradients, or their means, in a folder that other programs write or read:
/// `folder/rank{r}/{index}.f32` holds what rank r has of the model's gradient `index` (from 0, in
/// the order of the input): raw little-endian fp32 and nothing else, whatever the model's dtype.
std::string gradient_file(const std::string& folder, std::uint32_t rank, std::uint32_t gradient);

/// Gradients of all ranks, read from files; every iteration takes the same.
class GradientFiles {
 public:
  /// Looks at every file of every rank. io::InputError that names the first one that is missing, is
  /// no regular file or has not the bytes of its gradient.
  GradientFiles(std::string folder, const models::Model& model, std::uint32_t ranks);

  /// Reads a gradient's elements from `first_element` on. Any thread may call it. io::RunError if
  /// the file has changed since it was looked at.
  void read(std::uint32_t rank, std::uint32_t gradient, std::int64_t first_element,
            std::span<float> values) const;

 private:
  std::string folder_;
};

/// Makes the folders that write_means() fills for `ranks` ranks from `first_rank` on. Every process
/// of a job calls it before the ranks meet. Throws io::InputError if the folder holds a file, or if
/// a rank's folder cannot be made or written to.
void prepare_means(const std::string& folder, std::uint32_t first_rank, std::uint32_t ranks);

/// Writes what a rank ends with, each file whole or not at all. `units` as Runtime has them.
/// io::RunError where writing fails, as on a full disk.
void write_means(const std::string& folder, std::uint32_t rank, const models::Model& model,
                 const casync::Layout& layout, std::span<const std::span<float>> units);

/// What a rank's encoders keep, in a folder: `folder/rank{r}.state`, as kernels::StateStore has it.
std::string state_file(const std::string& folder, std::uint32_t rank);

/// Makes the folder that states are written to. io::InputError if it cannot be made or written to.
void prepare_states(const std::string& folder);

/// io::InputError that names the first of the ranks' files that cannot be read, or is none of ours.
void require_states(const std::string& folder, std::uint32_t ranks);

}  // namespace hipress::replay
