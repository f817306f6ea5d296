#include "transport/loopback.hpp"

#include <arpa/inet.h>
#include <ifaddrs.h>
#include <net/if.h>
#include <netinet/in.h>

#include <memory>

namespace hipress::transport {

std::string loopback(const std::string& interface) {
  if (interface.empty()) return "127.0.0.1";
  in_addr ip{};
  if (::inet_pton(AF_INET, interface.c_str(), &ip) == 1) {
    return ntohl(ip.s_addr) >> IN_CLASSA_NSHIFT == IN_LOOPBACKNET ? interface : "";
  }
  in6_addr ip6{};
  if (::inet_pton(AF_INET6, interface.c_str(), &ip6) == 1) {
    return IN6_IS_ADDR_LOOPBACK(&ip6) ? interface : "";
  }
  ifaddrs* all = nullptr;
  if (::getifaddrs(&all) != 0) return "";
  const std::unique_ptr<ifaddrs, void (*)(ifaddrs*)> owned(all, ::freeifaddrs);
  for (const ifaddrs* one = all; one != nullptr; one = one->ifa_next) {
    if (interface == one->ifa_name && (one->ifa_flags & IFF_LOOPBACK) != 0) return interface;
  }
  return "";
}

}  // namespace hipress::transport
