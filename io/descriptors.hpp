#pragma once

#include <unistd.h>

#include <cstdint>
#include <string_view>
#include <utility>

namespace hipress::io {

/// Raises the soft limit on open files (ulimit -n; often 1024), at most to the hard limit, so that
/// this process can open `wanted` more files and sockets. Returns the number that it can open then,
/// which is below `wanted` if the hard limit is too low.
std::int64_t allow_descriptors(std::int64_t wanted);

/// An open file, closed at the end of the scope.
class Descriptor {
 public:
  Descriptor() = default;
  explicit Descriptor(int number) : number_(number) {}
  Descriptor(Descriptor&& other) noexcept : number_(std::exchange(other.number_, -1)) {}
  Descriptor& operator=(Descriptor&& other) noexcept {
    std::swap(number_, other.number_);
    return *this;
  }
  ~Descriptor() { close(); }

  int number() const { return number_; }
  explicit operator bool() const { return number_ >= 0; }
  /// Closes the file. Returns false, with errno set, if written data was lost.
  bool close() { return number_ < 0 || ::close(std::exchange(number_, -1)) == 0; }

 private:
  int number_ = -1;
};

/// Writes all of `bytes`. Returns false, with errno set, on failure.
bool write_all(const Descriptor& to, std::string_view bytes);

}  // namespace hipress::io
