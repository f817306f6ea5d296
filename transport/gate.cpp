#include "transport/gate.hpp"

#include <fmt/format.h>
#include <poll.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cstring>
#include <iterator>
#include <list>
#include <memory>
#include <optional>
#include <random>
#include <system_error>
#include <utility>

#include "io/error.hpp"

namespace hipress::transport {
namespace {

/// Longest wait of one poll; stop() takes effect within this time.
constexpr std::chrono::milliseconds kLongestPoll{50};
/// Pause before the next attempt to connect to a rank, doubled from kFirstPause up to kMaxPause.
constexpr std::chrono::milliseconds kFirstPause{1};
constexpr std::chrono::milliseconds kMaxPause{100};

/// Fixed-length message that arrives or leaves piecewise over a non-blocking socket.
template <std::size_t kBytes>
class Pieces {
 public:
  std::array<std::byte, kBytes> bytes{};

  bool complete() const { return done_ == kBytes; }
  /// Reads the available bytes. False if the connection is over; errno then holds the reason, or 0
  /// if the other end closed it.
  bool receive(const Socket& from) {
    return move([&](std::byte* at, std::size_t n) { return ::recv(from.number(), at, n, 0); });
  }
  /// Sends until the kernel's buffer is full. False if the connection is over.
  bool send(const Socket& to) {
    return move([&](const std::byte* at, std::size_t n) {
      return ::send(to.number(), at, n, MSG_NOSIGNAL);
    });
  }

 private:
  template <typename Call>
  bool move(const Call& call) {
    while (!complete()) {
      errno = 0;
      const ssize_t n = call(bytes.data() + done_, kBytes - done_);
      if (n > 0) {
        done_ += static_cast<std::size_t>(n);
      } else if (errno != EINTR) {
        return errno == EAGAIN;
      }
    }
    return true;
  }

  std::size_t done_ = 0;
};

pollfd polled(const Socket& socket, short events) {
  return {.fd = socket.number(), .events = events, .revents = 0};
}

enum class Progress { kWaiting, kProven, kOver };

/// Accepted connection during its authentication.
class Visitor {
 public:
  Visitor(Socket socket, const Secret& secret, const std::string& address, Clock::time_point now)
      : socket_(std::move(socket)), acceptor_(secret, address), leaves_(now + kGreetingTime) {
    nonce_.bytes = acceptor_.nonce();
  }

  Progress advance(Clock::time_point now) {
    if (now >= leaves_ || !nonce_.send(socket_)) return Progress::kOver;
    if (!claim_) {
      if (!message_.receive(socket_)) return Progress::kOver;
      if (!message_.complete()) return Progress::kWaiting;
      claim_ = acceptor_.verify(message_.bytes);
      if (!claim_) return Progress::kOver;
      answer_.bytes = acceptor_.answer();
    }
    if (!answer_.send(socket_)) return Progress::kOver;
    return answer_.complete() ? Progress::kProven : Progress::kWaiting;
  }

  pollfd wants() const {
    const bool writes = !nonce_.complete() || claim_.has_value();
    return polled(socket_, writes ? POLLOUT : POLLIN);
  }
  const Claim& claim() const { return *claim_; }
  Socket take() { return std::move(socket_); }

 private:
  Socket socket_;
  Acceptor acceptor_;
  Clock::time_point leaves_;
  Pieces<kNonceBytes> nonce_;
  Pieces<kClaimBytes> message_;
  std::optional<Claim> claim_;
  Pieces<kAnswerBytes> answer_;
};

/// Attempt to connect to a rank.
class Attempt {
 public:
  Attempt(const Secret& secret, const std::string& address, const Claim& claim,
          Clock::time_point now)
      : connector_(secret, address, claim), ends_(now + kGreetingTime) {
    socket_ = start_connecting(parse_address(address), error_);
  }

  Progress advance(Clock::time_point now) {
    if (now >= ends_ || error_ != 0) return Progress::kOver;
    if (!nonce_.complete()) {
      if (!nonce_.receive(socket_)) {
        error_ = errno;
        return Progress::kOver;
      }
      if (!nonce_.complete()) return Progress::kWaiting;
      claim_.bytes = connector_.claim(nonce_.bytes);
    }
    if (!claim_.send(socket_) || !answer_.receive(socket_)) return Progress::kOver;
    if (!answer_.complete()) return Progress::kWaiting;
    impostor_ = !connector_.verify(answer_.bytes);
    return impostor_ ? Progress::kOver : Progress::kProven;
  }

  pollfd wants() const {
    const bool writes = nonce_.complete() && !claim_.complete();
    return polled(socket_, writes ? POLLOUT : POLLIN);
  }
  /// True if no process listens there, or there is no route.
  bool is_refused() const {
    return error_ == ECONNREFUSED || error_ == EHOSTUNREACH || error_ == ENETUNREACH;
  }
  int error() const { return error_; }
  bool met_impostor() const { return impostor_; }
  Socket take() { return std::move(socket_); }

 private:
  Socket socket_;
  Connector connector_;
  Clock::time_point ends_;
  Pieces<kNonceBytes> nonce_;
  Pieces<kClaimBytes> claim_;
  Pieces<kAnswerBytes> answer_;
  int error_ = 0;
  bool impostor_ = false;
};

/// Rank that is being connected to.
struct Callee {
  std::string address;
  std::unique_ptr<Attempt> attempt;
  Clock::time_point next = Clock::time_point::min();
  std::chrono::milliseconds pause = kFirstPause;
};

/// State of one call of Gate::connect().
class Connecting {
 public:
  Connecting(int rank, const Socket& listener, const std::string& address, const Secret& secret,
             const Gate::Request& request)
      : rank_(rank),
        listener_(listener),
        address_(address),
        secret_(secret),
        request_(request),
        awaited_(request.accepted) {
    for (const auto& [peer, where] : request.dialled) callees_[peer].address = where;
  }

  bool done() const { return callees_.empty() && awaited_.empty(); }
  /// Some rank that is not yet connected.
  int missing() const { return callees_.empty() ? awaited_.front() : callees_.begin()->first; }
  Gate::Connections take() { return std::move(connections_); }

  void advance() {
    wait();
    const Clock::time_point now = Clock::now();
    accept_all(now);
    std::erase_if(visitors_, [&](Visitor& visitor) { return advance(visitor, now); });
    for (auto callee = callees_.begin(); callee != callees_.end();) {
      callee =
          advance(callee->first, callee->second, now) ? callees_.erase(callee) : std::next(callee);
    }
  }

 private:
  void wait() {
    std::vector<pollfd> all{polled(listener_, POLLIN)};
    for (const Visitor& visitor : visitors_) all.push_back(visitor.wants());
    auto until = kLongestPoll;
    for (const auto& [peer, callee] : callees_) {
      if (callee.attempt) {
        all.push_back(callee.attempt->wants());
      } else {
        until = std::min(until, callee.pause);
      }
    }
    ::poll(all.data(), all.size(), static_cast<int>(until.count()));
  }

  void accept_all(Clock::time_point now) {
    // Limited, so that a crowd cannot keep this rank from serving the visitors that it has.
    for (int accepted = 0; accepted < kMaxUnproven; ++accepted) {
      try {
        Socket socket = accept_from(listener_);
        if (!socket) return;
        if (visitors_.size() == static_cast<std::size_t>(kMaxUnproven)) visitors_.pop_front();
        visitors_.emplace_back(std::move(socket), secret_, address_, now);
      } catch (const std::system_error& error) {
        if (visitors_.empty()) throw;
        visitors_.pop_front();
      }
    }
  }

  /// True if the visitor is finished: connected, or turned away.
  bool advance(Visitor& visitor, Clock::time_point now) {
    const Progress progress = visitor.advance(now);
    if (progress != Progress::kProven) return progress == Progress::kOver;
    const Claim claim = visitor.claim();
    const auto from = std::ranges::find(awaited_, static_cast<int>(claim.from));
    const bool welcome = claim.to == static_cast<std::uint32_t>(rank_) &&
                         claim.purpose == request_.purpose && from != awaited_.end();
    if (welcome) {
      connections_.accepted[*from] = visitor.take();
      awaited_.erase(from);
    }
    return true;
  }

  /// Advances the attempt; true once the rank is connected.
  bool advance(int peer, Callee& callee, Clock::time_point now) {
    if (!callee.attempt) {
      if (now < callee.next) return false;
      const Claim claim{.from = static_cast<std::uint32_t>(rank_),
                        .to = static_cast<std::uint32_t>(peer),
                        .purpose = request_.purpose};
      callee.attempt = std::make_unique<Attempt>(secret_, callee.address, claim, now);
    }
    const Progress progress = callee.attempt->advance(now);
    if (progress == Progress::kProven) {
      connections_.dialled[peer] = callee.attempt->take();
      return true;
    }
    if (progress == Progress::kOver) try_again_later(peer, callee, now);
    return false;
  }

  void try_again_later(int peer, Callee& callee, Clock::time_point now) {
    if (callee.attempt->is_refused()) {
      throw PeerError(peer, fmt::format("rank {} cannot connect to rank {} at {}: {}", rank_, peer,
                                        callee.address, std::strerror(callee.attempt->error())));
    }
    if (callee.attempt->met_impostor()) {
      throw PeerError(
          peer,
          fmt::format("rank {} asked for rank {} at {} and met a process without the job's secret",
                      rank_, peer, callee.address));
    }
    callee.attempt.reset();
    callee.next = now + callee.pause + std::chrono::microseconds(jitter_() % 1000);
    callee.pause = std::min(2 * callee.pause, kMaxPause);
  }

  const int rank_;
  const Socket& listener_;
  const std::string& address_;
  const Secret& secret_;
  const Gate::Request& request_;
  std::vector<int> awaited_;
  std::map<int, Callee> callees_;
  std::list<Visitor> visitors_;  ///< visitors in order of arrival
  Gate::Connections connections_;
  std::minstd_rand jitter_{std::random_device{}()};
};

/// Error of this rank: it has no descriptors or memory left.
PeerError own_fault(int rank, const std::system_error& error) {
  const bool descriptors = error.code() == std::errc::too_many_files_open ||
                           error.code() == std::errc::too_many_files_open_in_system;
  return PeerError(rank, fmt::format("rank {} cannot open a connection: {}{}", rank, error.what(),
                                     descriptors ? "; raise its limit (ulimit -n)" : ""));
}

}  // namespace

Gate::Gate(int rank, const std::string& interface) : rank_(rank) {
  const Address wanted = address_of(interface);
  try {
    listener_ = listen_at(wanted);
    address_ = local_address(listener_).text();
  } catch (const std::system_error& error) {
    if (error.code() == std::errc::address_not_available) {
      throw io::InputError(
          fmt::format("rank {} cannot listen at {}: this host has no such address "
                      "(ip address show lists them)",
                      rank, wanted.text()));
    }
    throw own_fault(rank, error);
  }
}

Gate::Connections Gate::connect(const Secret& secret, const Request& request) {
  Connecting connecting(rank_, listener_, address_, secret, request);
  try {
    while (!connecting.done()) {
      connecting.advance();
      if (connecting.done()) break;
      const int missing = connecting.missing();
      if (stopped_) {
        throw PeerError(missing,
                        fmt::format("rank {} stopped connecting to rank {}", rank_, missing));
      }
      if (Clock::now() >= request.deadline) {
        throw PeerError(missing,
                        fmt::format("rank {} and rank {} did not connect in time", rank_, missing));
      }
    }
  } catch (const std::system_error& error) {
    throw own_fault(rank_, error);
  }
  listener_.close();
  return connecting.take();
}

}  // namespace hipress::transport
