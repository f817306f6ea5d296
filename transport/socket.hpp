#pragma once

#include <sys/socket.h>

#include <functional>
#include <string>

#include "io/descriptors.hpp"

namespace hipress::transport {

/// Throws std::system_error for errno; `what` names the call that failed.
[[noreturn]] void throw_errno(const char* what);

/// An open socket, or none. Forked children do not inherit it: they find /dev/null in its place, so
/// a connection ends with this process, even if children outlive it.
class Socket : public io::Descriptor {
 public:
  Socket() = default;
  /// Takes an open socket.
  explicit Socket(int number) : Socket([number] { return number; }) {}
  /// Takes the socket that `open` returns, or none if that is negative (errno holds the reason). No
  /// child can be forked meanwhile, so `open` must not block.
  explicit Socket(const std::function<int()>& open);
  Socket(Socket&&) noexcept = default;
  Socket& operator=(Socket&&) noexcept = default;
  ~Socket() { close(); }

  bool close();
  /// Shuts down both directions and wakes threads that wait for either; the descriptor stays open.
  void shut_down() const noexcept;
};

/// An IPv4 or IPv6 address with a port.
struct Address {
  sockaddr_storage storage{};
  socklen_t length = 0;

  const sockaddr* get() const { return reinterpret_cast<const sockaddr*>(&storage); }
  /// Host part: "10.0.0.1" or "fe00::1".
  std::string host() const;
  /// Host and port: "10.0.0.1:4711" or "[fe00::1]:4711".
  std::string text() const;
};

/// Parses the format of Address::text(); throws std::invalid_argument for any other text. Never
/// asks a name server.
Address parse_address(const std::string& text);

/// Listening address for JobOptions::interface, with port 0: loopback if `interface` is empty, else
/// the address that it gives, or the address of the interface that it names. Throws io::InputError
/// if this host has no such interface.
Address address_of(const std::string& interface);

/// Listens at a free port of `address` with a non-blocking socket. Throws std::system_error if
/// there is no free port, or no descriptor is left.
Socket listen_at(const Address& address);

/// Address of a listening socket.
Address local_address(const Socket& socket);

/// Starts to connect a non-blocking socket to `address`. It becomes writable when the connection
/// has succeeded or failed. Sets `error` to errno if the connection has failed already, else to 0.
/// Throws std::system_error if no descriptor is left.
Socket start_connecting(const Address& address, int& error);

/// Accepts a connection as a non-blocking socket; returns an empty one if no connection is pending.
/// Throws std::system_error if no descriptor or memory is left for it.
Socket accept_from(const Socket& listener);

/// Tunes a socket for records and segments: no delay of small writes, and kernel buffers of about
/// one segment. A smaller buffer would run empty while a thread is woken to write. With the
/// kernel's default of several MiB, data on loopback has left the CPU cache when it is read, which
/// costs a tenth more core time per byte.
void tune_for_sending(const Socket& socket);

/// Makes reads wait for data.
void make_blocking(const Socket& socket);

}  // namespace hipress::transport
