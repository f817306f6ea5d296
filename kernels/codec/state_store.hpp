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

/// State of encoders between steps, such as error-feedback residuals, by gradient name and role.
///
/// Arrays cover the whole gradient and are indexed by element, not by partition. Residuals
/// therefore survive a change of partitions and the loading of a checkpoint. Each rank has one
/// store. get() is thread-safe; access to the arrays is not synchronised.
class StateStore {
 public:
  /// Returns the first of `arrays` arrays of `elements` floats each; array i begins i * elements
  /// floats later. New arrays are zero; half-computed residuals are settled first. The pointer is
  /// valid until load() or the store's destruction. Throws std::invalid_argument if this (gradient,
  /// role) exists with a different length or number of arrays, as after training a different model.
  float* get(std::string_view gradient, std::uint32_t role, std::int64_t elements, int arrays);

  /// Like get(), for the slice that begins at `first_element`, in the form of EncodeItem::state.
  /// Also throws std::invalid_argument if there is no such element.
  State slice(std::string_view gradient, std::uint32_t role, std::int64_t elements, int arrays,
              std::int64_t first_element);

  /// State of a slice for encodes by `codec`, which may leave the residual half computed to save
  /// time. `codec` completes the residual before the slice is accessed in any other way, so it must
  /// outlive the use of the store. Also throws std::invalid_argument if the slice exceeds the
  /// gradient.
  State slice_of(const Codec& codec, std::string_view gradient, std::uint32_t role,
                 std::int64_t elements, std::int64_t first_element, std::int64_t slice_elements);

  /// Sum of squares of the last array of this (gradient, role). With built-in algorithms it is the
  /// residual or, with dgc, the unsent values. Half-computed residuals are settled first. Negative
  /// if there is no such entry.
  double squared_norm(std::string_view gradient, std::uint32_t role);

  /// Size of all arrays, in bytes.
  std::int64_t bytes() const;

  /// Settles half-computed residuals and writes every array to a file, atomically through a
  /// temporary file. Throws io::InputError if the file cannot be written, or if a gradient's name
  /// is longer than load() accepts (65536 bytes).
  void save(const std::string& path);

  /// Replaces the store's content by a file's. On an error the store is unchanged. Throws
  /// io::InputError if the file cannot be read, is not a state file, has a different version, is
  /// truncated, or holds a non-finite number (no encoder leaves one in a residual). Throws
  /// io::RunError if the file exceeds the free memory.
  void load(const std::string& path);

  /// Loads a file into a store in use: copies the file's values into the existing arrays, which
  /// stay in place. Also throws io::InputError, and leaves the store unchanged, unless the file
  /// holds exactly the gradients, roles and lengths of this store.
  void restore(const std::string& path);

 private:
  /// A slice whose residual encodes may leave half computed.
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
  /// Reads a file; throws as load() does. `admit` is called before memory is allocated for an
  /// entry's floats, and throws to reject the entry.
  using States = std::map<Key, Arrays, std::less<>>;
  using Admit = std::function<void(const Key& key, const Arrays& header)>;
  static States read(const std::string& path, const Admit& admit = {});

  mutable std::mutex mutex_;
  States states_;
};

}  // namespace hipress::kernels
