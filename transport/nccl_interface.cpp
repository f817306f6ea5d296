#include <arpa/inet.h>
#include <fmt/format.h>
#include <ifaddrs.h>
#include <net/if.h>
#include <netinet/in.h>

#include <cstring>
#include <memory>

#include "io/environment.hpp"
#include "io/error.hpp"
#include "transport/nccl_library.hpp"

namespace hipress::transport {
namespace {

/// Bytes of an IPv4 or IPv6 address in network order; empty if the text is not an address.
std::string numeric_address(const std::string& text) {
  char bytes[sizeof(in6_addr)];
  if (::inet_pton(AF_INET, text.c_str(), bytes) == 1) return {bytes, sizeof(in_addr)};
  if (::inet_pton(AF_INET6, text.c_str(), bytes) == 1) return {bytes, sizeof(in6_addr)};
  return {};
}

std::string numeric_address(const sockaddr* address) {
  if (address == nullptr) return {};
  if (address->sa_family == AF_INET) {
    const auto& ip = reinterpret_cast<const sockaddr_in*>(address)->sin_addr;
    return {reinterpret_cast<const char*>(&ip), sizeof ip};
  }
  if (address->sa_family == AF_INET6) {
    const auto& ip = reinterpret_cast<const sockaddr_in6*>(address)->sin6_addr;
    return {reinterpret_cast<const char*>(&ip), sizeof ip};
  }
  return {};
}

/// Name of the interface with this address; empty if not found.
std::string interface_with(const std::string& address) {
  ifaddrs* all = nullptr;
  if (::getifaddrs(&all) != 0) return {};
  const std::unique_ptr<ifaddrs, void (*)(ifaddrs*)> owned(all, ::freeifaddrs);
  for (const ifaddrs* one = all; one != nullptr; one = one->ifa_next) {
    if (numeric_address(one->ifa_addr) == address) return one->ifa_name;
  }
  return {};
}

}  // namespace

std::string nccl_interface(const std::string& interface) {
  const std::string address = numeric_address(interface.empty() ? "127.0.0.1" : interface);
  const bool named = address.empty() && ::if_nametoindex(interface.c_str()) != 0;
  const std::string name = named             ? interface
                           : address.empty() ? std::string()
                                             : interface_with(address);
  if (name.empty()) {
    throw io::InputError(fmt::format(
        "{} is neither an address nor an interface of this host (ip address show lists them)",
        io::quote(interface.empty() ? "127.0.0.1" : interface)));
  }
  return "=" + name;  // "=": an exact match instead of a prefix
}

void bind_nccl(const std::string& interface) { io::set_nccl_interface(nccl_interface(interface)); }

}  // namespace hipress::transport
