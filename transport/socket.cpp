#include "transport/socket.hpp"

#include <arpa/inet.h>
#include <fcntl.h>
#include <fmt/format.h>
#include <ifaddrs.h>
#include <net/if.h>
#include <netdb.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <pthread.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstring>
#include <memory>
#include <mutex>
#include <optional>
#include <stdexcept>
#include <system_error>
#include <vector>

#include "io/error.hpp"
#include "transport/record.hpp"

namespace hipress::transport {
namespace {

/// Backlog of connections not yet accepted. A rank accepts as soon as it has met the others.
constexpr int kBacklog = 128;

/// Descriptors of this process's sockets; they never change during a fork.
class OpenSockets {
 public:
  /// Never destroyed: threads that end late may still close sockets.
  static OpenSockets& all() {
    static auto* const made = new OpenSockets;
    return *made;
  }

  int add(const std::function<int()>& open) {
    const std::lock_guard lock(mutex_);
    numbers_.reserve(numbers_.size() + 1);
    const int number = open();
    if (number >= 0) numbers_.push_back(number);
    return number;
  }
  void remove(int number) {
    const std::lock_guard lock(mutex_);
    std::erase(numbers_, number);
  }

 private:
  OpenSockets() {
    const int error = ::pthread_atfork([] { all().mutex_.lock(); }, [] { all().mutex_.unlock(); },
                                       [] { all().replace_in_child(); });
    if (error != 0) throw std::system_error(error, std::generic_category(), "pthread_atfork");
  }

  /// Replaces the sockets by /dev/null. Uses only calls that are safe after a fork. The descriptors
  /// stay open, because the child's copies of the sockets' owners may still close them.
  void replace_in_child() {
    const int nothing = ::open("/dev/null", O_RDWR | O_CLOEXEC);
    for (const int number : numbers_) {
      if (nothing < 0 || ::dup3(nothing, number, O_CLOEXEC) < 0) ::close(number);
    }
    if (nothing >= 0) ::close(nothing);
    mutex_.unlock();
  }

  std::mutex mutex_;
  std::vector<int> numbers_;
};

/// Address given by a numeric `host` and `port`; nullopt for names.
std::optional<Address> numeric(const std::string& host, const std::string& port) {
  addrinfo hints{};
  hints.ai_flags = AI_NUMERICHOST | AI_NUMERICSERV;
  hints.ai_socktype = SOCK_STREAM;
  addrinfo* found = nullptr;
  if (host.empty() || port.empty()) return std::nullopt;
  if (::getaddrinfo(host.c_str(), port.c_str(), &hints, &found) != 0) return std::nullopt;
  const std::unique_ptr<addrinfo, void (*)(addrinfo*)> owned(found, ::freeaddrinfo);
  Address address;
  std::memcpy(&address.storage, found->ai_addr, found->ai_addrlen);
  address.length = found->ai_addrlen;
  return address;
}

/// True if other hosts can use this address: it is not a wildcard and needs no scope.
bool can_be_told(const sockaddr& address) {
  if (address.sa_family == AF_INET) {
    return reinterpret_cast<const sockaddr_in&>(address).sin_addr.s_addr != htonl(INADDR_ANY);
  }
  if (address.sa_family != AF_INET6) return false;
  const in6_addr& ip = reinterpret_cast<const sockaddr_in6&>(address).sin6_addr;
  return !IN6_IS_ADDR_UNSPECIFIED(&ip) && !IN6_IS_ADDR_LINKLOCAL(&ip);
}

/// Address of an interface, IPv4 preferred.
std::optional<Address> address_of_interface(const std::string& name) {
  ifaddrs* all = nullptr;
  if (::getifaddrs(&all) != 0) return std::nullopt;
  const std::unique_ptr<ifaddrs, void (*)(ifaddrs*)> owned(all, ::freeifaddrs);
  for (const int family : {AF_INET, AF_INET6}) {
    for (const ifaddrs* one = all; one != nullptr; one = one->ifa_next) {
      if (name != one->ifa_name || one->ifa_addr == nullptr) continue;
      if (one->ifa_addr->sa_family != family || !can_be_told(*one->ifa_addr)) continue;
      Address address;
      address.length = family == AF_INET ? sizeof(sockaddr_in) : sizeof(sockaddr_in6);
      std::memcpy(&address.storage, one->ifa_addr, address.length);
      return address;
    }
  }
  return std::nullopt;
}

}  // namespace

void throw_errno(const char* what) {
  throw std::system_error(errno, std::generic_category(), what);
}

Socket::Socket(const std::function<int()>& open) : Descriptor(OpenSockets::all().add(open)) {}

bool Socket::close() {
  if (*this) OpenSockets::all().remove(number());
  return Descriptor::close();
}

void Socket::shut_down() const noexcept {
  if (*this) ::shutdown(number(), SHUT_RDWR);
}

std::string Address::host() const {
  std::array<char, NI_MAXHOST> host{};
  if (::getnameinfo(get(), length, host.data(), host.size(), nullptr, 0, NI_NUMERICHOST) != 0) {
    return "?";
  }
  return host.data();
}

std::string Address::text() const {
  std::array<char, NI_MAXSERV> port{};
  if (::getnameinfo(get(), length, nullptr, 0, port.data(), port.size(), NI_NUMERICSERV) != 0) {
    return "?";
  }
  return storage.ss_family == AF_INET6 ? fmt::format("[{}]:{}", host(), port.data())
                                       : fmt::format("{}:{}", host(), port.data());
}

Address parse_address(const std::string& text) {
  const std::size_t colon = text.rfind(':');
  std::optional<Address> address;
  if (colon != std::string::npos) {
    std::string host = text.substr(0, colon);
    if (host.starts_with('[') && host.ends_with(']')) host = host.substr(1, host.size() - 2);
    address = numeric(host, text.substr(colon + 1));
  }
  if (!address) {
    throw std::invalid_argument(fmt::format("{} is no address with a port", io::quote(text)));
  }
  return *address;
}

Address address_of(const std::string& interface) {
  const std::string& name = interface.empty() ? "127.0.0.1" : interface;
  std::optional<Address> address = numeric(name, "0");
  if (address && !can_be_told(*address->get())) {
    throw io::InputError(
        fmt::format("other ranks cannot connect to {}: give the address or the name of one "
                    "interface (ip address show lists them)",
                    io::quote(name)));
  }
  if (!address) address = address_of_interface(name);
  if (!address) {
    throw io::InputError(
        fmt::format("{} is neither an address nor an interface of this host that has one (ip "
                    "address show lists them)",
                    io::quote(name)));
  }
  return *address;
}

Socket listen_at(const Address& address) {
  Socket socket([&] {
    return ::socket(address.storage.ss_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
  });
  if (!socket) throw_errno("socket");
  if (::bind(socket.number(), address.get(), address.length) != 0) throw_errno("bind");
  if (::listen(socket.number(), kBacklog) != 0) throw_errno("listen");
  return socket;
}

Address local_address(const Socket& socket) {
  Address address;
  address.length = sizeof address.storage;
  if (::getsockname(socket.number(), reinterpret_cast<sockaddr*>(&address.storage),
                    &address.length) != 0) {
    throw_errno("getsockname");
  }
  return address;
}

Socket start_connecting(const Address& address, int& error) {
  Socket socket([&] {
    return ::socket(address.storage.ss_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
  });
  if (!socket) throw_errno("socket");
  const bool failed = ::connect(socket.number(), address.get(), address.length) != 0;
  error = failed && errno != EINPROGRESS ? errno : 0;
  return socket;
}

Socket accept_from(const Socket& listener) {
  for (;;) {
    Socket socket([&] {
      return ::accept4(listener.number(), nullptr, nullptr, SOCK_CLOEXEC | SOCK_NONBLOCK);
    });
    if (socket) return socket;
    // The first pending connection may have been aborted already.
    if (errno == EINTR || errno == ECONNABORTED || errno == EPROTO) continue;
    if (errno == EAGAIN || errno == EWOULDBLOCK) return {};
    throw_errno("accept");
  }
}

void tune_for_sending(const Socket& socket) {
  const int on = 1;
  ::setsockopt(socket.number(), IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
  const int kept_bytes = kSegmentBytes;
  ::setsockopt(socket.number(), SOL_SOCKET, SO_SNDBUF, &kept_bytes, sizeof kept_bytes);
}

void make_blocking(const Socket& socket) {
  const int flags = ::fcntl(socket.number(), F_GETFL);
  if (flags < 0 || ::fcntl(socket.number(), F_SETFL, flags & ~O_NONBLOCK) != 0)
    throw_errno("fcntl");
}

}  // namespace hipress::transport
