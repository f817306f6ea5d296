#include "transport/redis_connection.hpp"

#include <arpa/inet.h>
#include <fmt/format.h>
#include <netdb.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <openssl/bio.h>
#include <openssl/err.h>
#include <openssl/ssl.h>
#include <openssl/x509v3.h>
#include <poll.h>
#include <sys/socket.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <stdexcept>
#include <utility>

#include "io/error.hpp"
#include "transport/store.hpp"

namespace hipress::transport {
namespace {

constexpr std::size_t kBlock = 16384;

/// Waits until the socket is ready for `events` or has failed; the next call on it reports the
/// failure.
void wait_for(int socket, short events, Clock::time_point until) {
  for (;;) {
    const auto left = std::chrono::ceil<std::chrono::milliseconds>(until - Clock::now());
    if (left.count() <= 0) throw StoreLost("it does not answer");
    pollfd one{.fd = socket, .events = events, .revents = 0};
    constexpr std::int64_t kLongest = 1'000'000;
    const int ready = ::poll(&one, 1, static_cast<int>(std::min(left.count(), kLongest)));
    if (ready > 0) return;
    if (ready < 0 && errno != EINTR) throw StoreLost(std::strerror(errno));
  }
}

bool would_block() { return errno == EAGAIN || errno == EWOULDBLOCK || errno == EINTR; }

void send_all(int socket, std::string_view bytes, Clock::time_point until) {
  while (!bytes.empty()) {
    const ssize_t sent = ::send(socket, bytes.data(), bytes.size(), MSG_NOSIGNAL);
    if (sent >= 0) {
      bytes.remove_prefix(static_cast<std::size_t>(sent));
    } else if (would_block()) {
      wait_for(socket, POLLOUT, until);
    } else {
      throw StoreLost(std::strerror(errno));
    }
  }
}

std::size_t receive_some(int socket, std::span<char> into, Clock::time_point until) {
  for (;;) {
    // Wait first, so that a server that sends without pause does not outlast the deadline.
    wait_for(socket, POLLIN, until);
    const ssize_t got = ::recv(socket, into.data(), into.size(), 0);
    if (got > 0) return static_cast<std::size_t>(got);
    if (got == 0) throw StoreLost("it closed the connection");
    if (!would_block()) throw StoreLost(std::strerror(errno));
  }
}

using Addresses = std::unique_ptr<addrinfo, void (*)(addrinfo*)>;

Addresses look_up(const RedisAddress& address) {
  addrinfo wanted{};
  wanted.ai_family = AF_UNSPEC;
  wanted.ai_socktype = SOCK_STREAM;
  wanted.ai_flags = AI_NUMERICSERV;
  addrinfo* found = nullptr;
  const std::string port = std::to_string(address.port);
  const int error = ::getaddrinfo(address.host.c_str(), port.c_str(), &wanted, &found);
  if (error != 0) {
    const char* const why = error == EAI_SYSTEM ? std::strerror(errno)
                                                : static_cast<const char*>(::gai_strerror(error));
    throw std::runtime_error(fmt::format("the host is not known: {}", why));
  }
  return {found, ::freeaddrinfo};
}

/// Connects to the address. On failure returns an empty socket and sets `error` to an errno.
Socket connect_to(const addrinfo& to, Clock::time_point until, int& error) {
  Socket made(
      [&] { return ::socket(to.ai_family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0); });
  if (!made) throw_if_exhausted(errno);
  if (!made) throw StoreLost(fmt::format("no socket can be made: {}", std::strerror(errno)));
  error = ::connect(made.number(), to.ai_addr, to.ai_addrlen) == 0 ? 0 : errno;
  if (error == EINPROGRESS || error == EINTR) {
    try {
      wait_for(made.number(), POLLOUT, until);
      socklen_t length = sizeof error;
      if (::getsockopt(made.number(), SOL_SOCKET, SO_ERROR, &error, &length) != 0) error = errno;
    } catch (const StoreLost&) {
      error = ETIMEDOUT;
    }
  }
  if (error != 0) return {};
  constexpr int kOn = 1;  // requests and replies are small
  ::setsockopt(made.number(), IPPROTO_TCP, TCP_NODELAY, &kOn, sizeof kOn);
  return made;
}

std::string tls_reason() {
  const unsigned long code = ERR_get_error();
  const char* const reason = code == 0 ? nullptr : ERR_reason_error_string(code);
  return reason != nullptr ? reason : "for no reason that OpenSSL tells";
}

}  // namespace

/// TLS session through OpenSSL's memory buffers, so that all waiting is done in one place and a
/// closed socket raises no SIGPIPE.
class RedisConnection::Tls {
 public:
  Tls(int socket, const RedisAddress& address, const std::string& authorities)
      : socket_(socket), context_(SSL_CTX_new(TLS_client_method()), SSL_CTX_free) {
    require(context_ != nullptr);
    require(SSL_CTX_set_min_proto_version(context_.get(), TLS1_2_VERSION) == 1);
    SSL_CTX_set_verify(context_.get(), SSL_VERIFY_PEER, nullptr);
    trust(authorities);
    ssl_.reset(SSL_new(context_.get()));
    require(ssl_ != nullptr);
    BIO* const in = BIO_new(BIO_s_mem());
    BIO* const out = BIO_new(BIO_s_mem());
    require(in != nullptr && out != nullptr);
    SSL_set_bio(ssl_.get(), in, out);
    expect(address.host);
  }

  void shake_hands(Clock::time_point until) {
    run([this] { return SSL_connect(ssl_.get()); }, until);
  }
  void send(std::string_view bytes, Clock::time_point until) {
    run([&] { return SSL_write(ssl_.get(), bytes.data(), static_cast<int>(bytes.size())); }, until);
  }
  std::size_t receive(std::span<char> into, Clock::time_point until) {
    return static_cast<std::size_t>(run(
        [&] { return SSL_read(ssl_.get(), into.data(), static_cast<int>(into.size())); }, until));
  }

 private:
  static void require(bool done) {
    if (!done) throw std::runtime_error(fmt::format("TLS cannot be set up: {}", tls_reason()));
  }

  void trust(const std::string& authorities) {
    if (authorities.empty()) {
      require(SSL_CTX_set_default_verify_paths(context_.get()) == 1);
    } else if (SSL_CTX_load_verify_locations(context_.get(), authorities.c_str(), nullptr) != 1) {
      throw std::runtime_error(
          fmt::format("the file '{}' of HIPRESS_REDIS_CA holds no certificates "
                      "in PEM that can be read: {}",
                      io::printable_path(authorities), tls_reason()));
    }
  }

  /// Requires a certificate for this host.
  void expect(const std::string& host) {
    std::array<unsigned char, sizeof(in6_addr)> ignored{};
    if (::inet_pton(AF_INET, host.c_str(), ignored.data()) == 1 ||
        ::inet_pton(AF_INET6, host.c_str(), ignored.data()) == 1) {
      require(X509_VERIFY_PARAM_set1_ip_asc(SSL_get0_param(ssl_.get()), host.c_str()) == 1);
      return;
    }
    require(SSL_set1_host(ssl_.get(), host.c_str()) == 1);
    require(SSL_set_tlsext_host_name(ssl_.get(), host.c_str()) == 1);
  }

  /// Repeats `action` while OpenSSL needs more data from the server.
  template <typename Action>
  int run(const Action& action, Clock::time_point until) {
    for (;;) {
      ERR_clear_error();
      const int result = action();
      const int what = SSL_get_error(ssl_.get(), result);
      pass_on(until);
      if (result > 0) return result;
      if (what != SSL_ERROR_WANT_READ) fail(what);
      std::array<char, kBlock> block;
      const std::size_t got = receive_some(socket_, block, until);
      require(BIO_write(SSL_get_rbio(ssl_.get()), block.data(), static_cast<int>(got)) ==
              static_cast<int>(got));
    }
  }

  /// Sends OpenSSL's pending output.
  void pass_on(Clock::time_point until) {
    std::array<char, kBlock> block;
    for (;;) {
      const int got =
          BIO_read(SSL_get_wbio(ssl_.get()), block.data(), static_cast<int>(block.size()));
      if (got <= 0) return;
      send_all(socket_, {block.data(), static_cast<std::size_t>(got)}, until);
    }
  }

  [[noreturn]] void fail(int what) {
    if (what == SSL_ERROR_ZERO_RETURN) throw StoreLost("it closed the connection");
    const long verdict = SSL_get_verify_result(ssl_.get());
    if (verdict != X509_V_OK) {
      throw std::runtime_error(
          fmt::format("its certificate is refused: {}; name the file of the authority that signed "
                      "it in HIPRESS_REDIS_CA",
                      X509_verify_cert_error_string(verdict)));
    }
    throw std::runtime_error(fmt::format("TLS fails: {}", tls_reason()));
  }

  int socket_;
  std::unique_ptr<SSL_CTX, decltype(&SSL_CTX_free)> context_;
  std::unique_ptr<SSL, decltype(&SSL_free)> ssl_{nullptr, SSL_free};
};

RedisConnection::RedisConnection(const RedisAddress& address, const std::string& authorities,
                                 Clock::time_point until) {
  connect(address, until);
  if (!address.tls) return;
  try {
    tls_ = std::make_unique<Tls>(socket_.number(), address, authorities);
    tls_->shake_hands(until);
  } catch (const StoreLost& error) {
    throw StoreLost(fmt::format("{} while TLS is agreed on; redis:// is for a server without TLS",
                                error.what()));
  }
}

RedisConnection::~RedisConnection() = default;

void RedisConnection::connect(const RedisAddress& address, Clock::time_point until) {
  const Addresses found = look_up(address);
  std::int64_t untried = 0;
  int error = 0;
  for (const addrinfo* one = found.get(); one != nullptr; one = one->ai_next) ++untried;
  for (const addrinfo* one = found.get(); one != nullptr; one = one->ai_next, --untried) {
    // Split the remaining time, so that some is left if this address does not answer.
    const auto now = Clock::now();
    socket_ = connect_to(*one, now + (until - now) / untried, error);
    if (socket_) return;
  }
  if (error == ETIMEDOUT) throw StoreLost("it does not answer");
  throw std::runtime_error(std::strerror(error));
}

void RedisConnection::send(std::string_view bytes, Clock::time_point until) {
  if (tls_) return tls_->send(bytes, until);
  send_all(socket_.number(), bytes, until);
}

std::size_t RedisConnection::receive(std::span<char> into, Clock::time_point until) {
  return tls_ ? tls_->receive(into, until) : receive_some(socket_.number(), into, until);
}

}  // namespace hipress::transport
