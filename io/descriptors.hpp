#pragma once

#include <unistd.h>

#include <cstdint>
#include <string_view>
#include <utility>

namespace hipress::io {

/// Lets this process open `wanted` more files and sockets: raises the soft limit (ulimit -n; 1024
/// on most machines) as far as necessary and as the hard limit permits. Returns how many more it
/// may then open: fewer than `wanted` if the hard limit is too low.
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
  /// False, with errno, if what was written did not arrive.
  bool close() { return number_ < 0 || ::close(std::exchange(number_, -1)) == 0; }

 private:
  int number_ = -1;
};

/// Whether all of `bytes` could be written to the open file; if not, errno says why.
bool write_all(const Descriptor& to, std::string_view bytes);

}  // namespace hipress::io
