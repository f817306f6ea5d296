#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "kernels/codec/codec.hpp"

namespace hipress::kernels {

/// What encoders keep between steps (error-feedback residuals …), by gradient name and role.
///
/// Arrays belong to the whole gradient and are indexed by element, not by partition: under a plan
/// with other partitions, and after a checkpoint is loaded, every element's residual is still
/// found. Each rank has one store. Several threads may call get(); the arrays themselves are not
/// guarded.
class StateStore {
 public:
  /// The first of `arrays` arrays of `elements` floats each; array i is i * elements floats after
  /// it. New arrays are zero; half-computed residuals are settled first. The pointer is valid until
  /// load() or the store's end. std::invalid_argument if this (gradient, role) is known with
  /// another length or number of arrays: it is then of another model.
  float* get(std::string_view gradient, std::uint32_t role, std::int64_t elements, int arrays);

  /// The same as get(), for the slice that begins at `first_element`: what EncodeItem::state takes.
  /// std::invalid_argument too if there is no such element.
  State slice(std::string_view gradient, std::uint32_t role, std::int64_t elements, int arrays,
              std::int64_t first_element);

  /// The same, for encodes by `codec` that may leave the residual half computed, which is faster.
  /// The codec settles it before the slice is reached in any other way; it must live as long as the
  /// store is used. std::invalid_argument too if the slice reaches beyond the gradient.
  State slice_of(const Codec& codec, std::string_view gradient, std::uint32_t role,
                 std::int64_t elements, std::int64_t first_element, std::int64_t slice_elements);

  /// The sum of the squares of a gradient's first array under a role, which is its residual where
  /// it has one; half-computed residuals are settled first. Negative if there is none.
  double squared_norm(std::string_view gradient, std::uint32_t role);

  /// Bytes of all arrays.
  std::int64_t bytes() const;

  /// Settles half-computed residuals and writes every array to a file, which appears at once and
  /// complete (through a temporary file). io::InputError if the file cannot be written, or if a
  /// gradient's name is longer than load() accepts (65536 bytes).
  void save(const std::string& path);

  /// Replaces the store's content by a file's. Throws io::InputError, and leaves the store as it
  /// was, if the file cannot be read, is no state file, is of another version, is truncated, or
  /// holds a number that is not finite (no encoder leaves one in a residual), and io::RunError if
  /// it has more bytes than memory is free.
  void load(const std::string& path);

  /// The same for a store that is in use: copies the file's values into the existing arrays, which
  /// stay where they are. Also throws io::InputError, and leaves the store as it was, unless the
  /// file holds exactly the gradients, roles and lengths of this store.
  void restore(const std::string& path);

 private:
  /// A slice that encodes may leave half done.
  struct Open {
    const Codec* codec;
    std::int64_t elements;
    std::unique_ptr<Deferred> deferred;
  };
  struct Arrays {
    std::int64_t elements = 0;
    int arrays = 0;
    std::vector<float> data;
    std::map<std::int64_t, Open> open;  ///< by first element
  };
  using Key = std::pair<std::string, std::uint32_t>;

  Arrays& arrays_of(std::string_view gradient, std::uint32_t role, std::int64_t elements,
                    int arrays);
  static void settle(Arrays& state);
  /// A file's content; throws as load(). `admit` throws for entries that are not to be read; it is
  /// called before there is memory for their floats.
  using States = std::map<Key, Arrays, std::less<>>;
  using Admit = std::function<void(const Key& key, const Arrays& header)>;
  static States read(const std::string& path, const Admit& admit = {});

  mutable std::mutex mutex_;
  States states_;
};

}  // namespace hipress::kernels
