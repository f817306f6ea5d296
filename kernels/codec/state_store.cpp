#include "kernels/codec/state_store.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstring>
#include <functional>
#include <limits>
#include <numeric>
#include <span>
#include <stdexcept>

#include "io/error.hpp"
#include "io/file.hpp"
#include "io/input_file.hpp"
#include "io/memory.hpp"
#include "io/quantity.hpp"

// File format: "HPSTATE2", a byte-order mark, the number of entries; per entry the name's length
// and bytes, role, arrays, elements and the floats; then a checksum of all that, and "HPSTATE." at
// the end. Integers and floats are in the machine's byte order. "HPSTATE1" has no checksum.

namespace hipress::kernels {

namespace {

constexpr std::string_view kMagic = "HPSTATE2", kMagicBefore = "HPSTATE1";
constexpr std::string_view kEnd = "HPSTATE.";
constexpr std::uint32_t kByteOrderMark = 0x01020304;
constexpr std::uint32_t kLongestName = 1 << 16;

/// 64-bit checksum of bytes added in pieces; it depends on the pieces' boundaries. Each step is a
/// bijection of the sum so far, so a single wrong word always changes the result; other damage goes
/// unnoticed with probability 2^-64.
class Checksum {
 public:
  void add(const void* from, std::size_t bytes) {
    const auto* at = static_cast<const char*>(from);
    for (; bytes >= sizeof(std::uint64_t); bytes -= sizeof(std::uint64_t)) {
      mix(at, sizeof(std::uint64_t));
      at += sizeof(std::uint64_t);
    }
    if (bytes > 0) mix(at, bytes);
  }
  std::uint64_t value() const { return sum_; }

 private:
  void mix(const char* at, std::size_t bytes) {
    std::uint64_t word = 0;
    std::memcpy(&word, at, bytes);
    sum_ = std::rotl((sum_ ^ word) * 0x9e3779b97f4a7c15u, 29);
  }
  std::uint64_t sum_ = 0x6a09e667f3bcc908u;
};

/// Writes a state file and computes its checksum.
class Writer {
 public:
  explicit Writer(std::ostream& out) : out_(out) {}
  void write(const void* from, std::size_t bytes) {
    sum_.add(from, bytes);
    out_.write(static_cast<const char*>(from), static_cast<std::streamsize>(bytes));
  }
  template <class T>
  void put(const T& value) {
    write(&value, sizeof value);
  }
  std::uint64_t sum() const { return sum_.value(); }

 private:
  std::ostream& out_;
  Checksum sum_;
};

/// Reads a state file; throws io::InputError where it is truncated.
class StateReader {
 public:
  explicit StateReader(const std::string& path) : file_(path, {.most_bytes = INT64_MAX}) {
    if (!file_.size()) fail("is a pipe; a state is read from a regular file");
    bytes_left_ = *file_.size();
    // The content takes its full size in memory even if the file is sparse.
    const std::int64_t available = io::available_memory();
    if (bytes_left_ <= available) return;
    throw io::RunError(fmt::format(
        "{}: has {}, and {} of memory are free; take a checkpoint of this model, or allow "
        "this process more (ulimit -v, the container's limit)",
        io::printable_path(path), io::format_size(bytes_left_), io::format_size(available)));
  }

  void read(void* to, std::int64_t bytes) {
    constexpr const char* kTruncated = "is truncated; take an earlier checkpoint";
    if (bytes > bytes_left_) fail(kTruncated);
    bytes_left_ -= bytes;
    const auto all = static_cast<std::size_t>(bytes);
    for (auto* at = static_cast<char*>(to); bytes > 0;) {
      const std::size_t got = file_.read(at, static_cast<std::size_t>(bytes));
      if (got == 0) fail(kTruncated);
      at += got;
      bytes -= static_cast<std::int64_t>(got);
    }
    sum_.add(to, all);
  }
  std::uint64_t sum() const { return sum_.value(); }
  template <class T>
  T number() {
    T value;
    read(&value, sizeof value);
    return value;
  }
  std::string text(std::size_t bytes) {
    std::string found(bytes, '\0');
    read(found.data(), static_cast<std::int64_t>(found.size()));
    return found;
  }
  std::int64_t bytes_left() const { return bytes_left_; }
  [[noreturn]] void fail(const std::string& complaint) const {
    throw io::InputError(file_.path(), 0, complaint);
  }

 private:
  io::InputFile file_;
  std::int64_t bytes_left_ = 0;
  Checksum sum_;
};

/// Throws std::invalid_argument unless the slice lies within its gradient.
void check_slice(std::string_view gradient, std::int64_t elements, std::int64_t first_element,
                 std::int64_t slice_elements) {
  if (first_element < 0 || slice_elements < 0 || slice_elements > elements ||
      first_element > elements - slice_elements) {
    throw std::invalid_argument(
        fmt::format("state of gradient {}: a slice of {} elements from element {} on, of {}",
                    io::quote(gradient), slice_elements, first_element, elements));
  }
}

}  // namespace

StateStore::Arrays& StateStore::arrays_of(std::string_view gradient, std::uint32_t role,
                                          std::int64_t elements, int arrays) {
  if (elements < 0 || arrays < 0 ||
      (arrays > 0 && elements > std::numeric_limits<std::int64_t>::max() / 4 / arrays)) {
    throw std::invalid_argument(fmt::format("state of gradient {}: {} arrays of {} elements",
                                            io::quote(gradient), arrays, elements));
  }
  Key key(gradient, role);
  const auto known = states_.find(key);
  if (known == states_.end()) {
    // Allocated before it is inserted: the allocation may fail.
    Arrays made;
    made.elements = elements;
    made.arrays = arrays;
    made.data.resize(static_cast<std::size_t>(elements * arrays));
    return states_.try_emplace(std::move(key), std::move(made)).first->second;
  }
  Arrays& state = known->second;
  if (state.elements != elements || state.arrays != arrays) {
    throw std::invalid_argument(
        fmt::format("state of gradient {}, role {}: {} arrays of {} elements are kept, {} of {} "
                    "asked for; start with an empty store for another model or algorithm",
                    io::quote(gradient), role, state.arrays, state.elements, arrays, elements));
  }
  return state;
}

void StateStore::settle(Arrays& state) {
  for (const auto& [first, open] : state.open) {
    open.codec->settle({state.data.data() + first, state.elements, open.deferred.get()},
                       open.elements);
  }
}

float* StateStore::get(std::string_view gradient, std::uint32_t role, std::int64_t elements,
                       int arrays) {
  const std::lock_guard lock(mutex_);
  Arrays& state = arrays_of(gradient, role, elements, arrays);
  settle(state);
  return state.data.data();
}

State StateStore::slice(std::string_view gradient, std::uint32_t role, std::int64_t elements,
                        int arrays, std::int64_t first_element) {
  check_slice(gradient, elements, first_element, 0);
  return {get(gradient, role, elements, arrays) + first_element, elements};
}

State StateStore::slice_of(const Codec& codec, std::string_view gradient, std::uint32_t role,
                           std::int64_t elements, std::int64_t first_element,
                           std::int64_t slice_elements) {
  check_slice(gradient, elements, first_element, slice_elements);
  const std::lock_guard lock(mutex_);
  Arrays& state = arrays_of(gradient, role, elements, codec.traits().state_arrays);
  const auto known = state.open.find(first_element);
  const bool same = known != state.open.end() && known->second.codec == &codec &&
                    known->second.elements == slice_elements;
  if (!same) {
    // The slice's bounds or codec differ from the last time: settle every open slice that overlaps
    // it.
    for (auto open = state.open.begin(); open != state.open.end();) {
      const bool overlaps = open->first < first_element + slice_elements &&
                            first_element < open->first + open->second.elements;
      if (overlaps) {
        open->second.codec->settle(
            {state.data.data() + open->first, elements, open->second.deferred.get()},
            open->second.elements);
        open = state.open.erase(open);
      } else {
        ++open;
      }
    }
    state.open[first_element] = {&codec, slice_elements, std::make_unique<Deferred>()};
  }
  return {state.data.data() + first_element, elements, state.open.at(first_element).deferred.get()};
}

double StateStore::squared_norm(std::string_view gradient, std::uint32_t role) {
  const std::lock_guard lock(mutex_);
  const auto known = states_.find(Key(gradient, role));
  if (known == states_.end()) return -1;
  settle(known->second);
  const std::span<const float> all = known->second.data;
  const std::span<const float> residual =
      all.last(std::min(all.size(), static_cast<std::size_t>(known->second.elements)));
  return std::transform_reduce(residual.begin(), residual.end(), 0.0, std::plus<>(),
                               [](double value) { return value * value; });
}

std::int64_t StateStore::bytes() const {
  const std::lock_guard lock(mutex_);
  std::int64_t total = 0;
  for (const auto& [key, state] : states_) {
    total += static_cast<std::int64_t>(state.data.size() * sizeof(float));
  }
  return total;
}

void StateStore::save(const std::string& path) {
  const std::lock_guard lock(mutex_);
  for (const auto& [key, state] : states_) {
    if (key.first.size() > kLongestName) {
      throw io::InputError(
          path, 0,
          fmt::format("cannot hold the state of a gradient whose name has {} bytes, more than {}",
                      key.first.size(), kLongestName));
    }
  }
  for (auto& [key, state] : states_) settle(state);
  io::write_file(path, [&](std::ostream& out) {
    Writer file(out);
    file.write(kMagic.data(), kMagic.size());
    file.put(kByteOrderMark);
    file.put(static_cast<std::uint64_t>(states_.size()));
    for (const auto& [key, state] : states_) {
      file.put(static_cast<std::uint32_t>(key.first.size()));
      file.write(key.first.data(), key.first.size());
      file.put(key.second);
      file.put(static_cast<std::int32_t>(state.arrays));
      file.put(state.elements);
      file.write(state.data.data(), state.data.size() * sizeof(float));
    }
    file.put(file.sum());
    file.write(kEnd.data(), kEnd.size());
  });
}

StateStore::States StateStore::read(const std::string& path, const Admit& admit) {
  StateReader file(path);
  const std::string magic = file.text(kMagic.size());
  if (magic != kMagic && magic != kMagicBefore) {
    file.fail("is not a state file of this version (it does not begin with HPSTATE2)");
  }
  if (file.number<std::uint32_t>() != kByteOrderMark) {
    file.fail("was written on a machine with another byte order");
  }
  States states;
  for (auto entries = file.number<std::uint64_t>(); entries > 0; --entries) {
    const auto length = file.number<std::uint32_t>();
    if (length > kLongestName) file.fail("is damaged: a gradient's name is too long");
    std::string name(length, '\0');
    file.read(name.data(), length);
    const auto role = file.number<std::uint32_t>();
    Arrays state;
    state.arrays = file.number<std::int32_t>();
    state.elements = file.number<std::int64_t>();
    // Compared by division, so that a damaged length neither overflows nor reserves memory.
    if (state.arrays < 0 || state.elements < 0 ||
        (state.arrays > 0 && state.elements > file.bytes_left() / 4 / state.arrays)) {
      file.fail(
          fmt::format("is truncated or damaged in the state of gradient {}", io::quote(name)));
    }
    if (admit) admit(Key(name, role), state);
    state.data.resize(static_cast<std::size_t>(state.elements * state.arrays));
    file.read(state.data.data(), static_cast<std::int64_t>(state.data.size() * sizeof(float)));
    for (const float value : state.data) {
      if (!std::isfinite(value)) {
        file.fail(
            fmt::format("holds a number that is not finite for gradient {}", io::quote(name)));
      }
    }
    if (!states.try_emplace(Key(name, role), std::move(state)).second) {
      file.fail(
          fmt::format("is damaged: gradient {}, role {} is there twice", io::quote(name), role));
    }
  }
  const std::uint64_t sum = file.sum();
  if (magic == kMagic && file.number<std::uint64_t>() != sum) {
    file.fail("is damaged: its checksum does not match its content; take an earlier checkpoint");
  }
  if (file.text(kEnd.size()) != kEnd) file.fail("is damaged at its end");
  if (file.bytes_left() != 0) file.fail("is damaged: something follows its end");
  return states;
}

void StateStore::load(const std::string& path) {
  auto states = read(path);
  const std::lock_guard lock(mutex_);
  states_ = std::move(states);
}

void StateStore::restore(const std::string& path) {
  constexpr const char* kRemedy = "load it under the plan, model and ranks that it was saved under";
  const std::lock_guard lock(mutex_);
  const auto refuse_missing = [&](const Key& key, const Arrays& ours) {
    throw io::InputError(
        path, 0,
        fmt::format("has no state of gradient {}, role {}, with {} arrays of {} "
                    "elements; {}",
                    io::quote(key.first), key.second, ours.arrays, ours.elements, kRemedy));
  };
  const States states = read(path, [&](const Key& key, const Arrays& theirs) {
    const auto ours = states_.find(key);
    if (ours == states_.end()) {
      throw io::InputError(path, 0,
                           fmt::format("holds a state of gradient {}, role {}, that nothing here "
                                       "keeps; {}",
                                       io::quote(key.first), key.second, kRemedy));
    }
    if (theirs.elements != ours->second.elements || theirs.arrays != ours->second.arrays) {
      refuse_missing(key, ours->second);
    }
  });
  for (const auto& [key, ours] : states_) {
    if (!states.contains(key)) refuse_missing(key, ours);
  }
  for (auto& [key, ours] : states_) {
    settle(ours);  // nothing may still be subtracted from the data, which are overwritten
    const std::vector<float>& values = states.find(key)->second.data;
    std::copy(values.begin(), values.end(), ours.data.begin());
  }
}

}  // namespace hipress::kernels
