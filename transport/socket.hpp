#pragma once

#include <sys/socket.h>

#include <functional>
#include <string>

#include "io/descriptors.hpp"

namespace hipress::transport {

/// An open socket, or none. Children that this process forks do not have it: they find /dev/null in
/// its place, so that a connection ends with this process, whatever children outlive it.
class Socket : public io::Descriptor {
 public:
  Socket() = default;
  /// A socket that is open already.
  explicit Socket(int number) : Socket([number] { return number; }) {}
  /// The socket that `open` returns, or none if that is negative (errno says why). No child is
  /// forked meanwhile, so `open` must not wait.
  explicit Socket(const std::function<int()>& open);
  Socket(Socket&&) noexcept = default;
  Socket& operator=(Socket&&) noexcept = default;
  ~Socket() { close(); }

  bool close();
  /// Ends both directions and wakes threads that wait for either; the descriptor stays open.
  void shut_down() const noexcept;
};

/// An IPv4 or IPv6 address with a port.
struct Address {
  sockaddr_storage storage{};
  socklen_t length = 0;

  const sockaddr* get() const { return reinterpret_cast<const sockaddr*>(&storage); }
  /// "10.0.0.1" or "fe00::1".
  std::string host() const;
  /// "10.0.0.1:4711" or "[fe00::1]:4711".
  std::string text() const;
};

/// Reads what Address::text() writes; std::invalid_argument for any other text. Never asks a name
/// server.
Address parse_address(const std::string& text);

/// The address, with port 0, at which a rank for which the user names `interface` listens:
/// loopback if that is empty, else the address that it is, or that of the interface of this name.
/// io::InputError if this host has no such interface.
Address address_of(const std::string& interface);

/// A non-blocking socket that listens at a free port of `address`. std::system_error if there is
/// none, or no descriptor is left.
Socket listen_at(const Address& address);

/// Where a listening socket can be reached.
Address local_address(const Socket& socket);

/// A non-blocking socket whose connection to `address` is under way; it becomes writable when the
/// connection has succeeded or failed. `error` is set to errno's value if the connection has failed
/// already, else to 0. std::system_error if no descriptor is left.
Socket start_connecting(const Address& address, int& error);

/// Accepts a connection, which is non-blocking; none if nobody waits. std::system_error when no
/// descriptor or memory is left for it.
Socket accept_from(const Socket& listener);

/// Sets a socket up for records and segments: written bytes leave at once, and the kernel buffers
/// about one segment. A smaller buffer would run empty while a thread is woken to write. With the
/// kernel's default of several MiB, data on loopback has left the processor's cache when it is
/// read, which costs a tenth more core time per byte.
void tune_for_sending(const Socket& socket);

/// From now on, reads wait for data.
void make_blocking(const Socket& socket);

}  // namespace hipress::transport
