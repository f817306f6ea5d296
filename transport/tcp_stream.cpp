#include "transport/tcp_stream.hpp"

#include <fmt/format.h>
#include <sys/socket.h>
#include <sys/uio.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <limits>
#include <stdexcept>
#include <utility>

namespace hipress::transport {
namespace {

[[noreturn]] void throw_closed(int error) {
  throw WireClosed(error != 0 ? std::strerror(error) : "the connection is closed");
}

}  // namespace

// ------------------------------------------------------------------------------------- sending

void OutStream::connect(Socket socket, std::function<void()> wants_room) {
  const std::lock_guard lock(mutex_);
  if (over_) throw_closed(0);
  socket_ = std::move(socket);
  wants_room_ = std::move(wants_room);
}

void OutStream::put(int slot, std::span<const std::byte> source, std::size_t window_offset,
                    Progress& progress) {
  if (source.size() > std::numeric_limits<std::uint32_t>::max()) {
    throw std::invalid_argument("a put of 4 GiB and more");
  }
  const std::lock_guard lock(mutex_);
  if (over_ || !socket_) throw_closed(0);
  waiting_.push_back({.header = {.window_offset = window_offset,
                                 .bytes = static_cast<std::uint32_t>(source.size()),
                                 .slot = slot},
                      .bytes = source,
                      .progress = &progress});
  // A frame behind others is sent by continue_sending().
  if (waiting_.size() == 1) send_waiting();
}

void OutStream::send(Frame& frame) {
  constexpr std::size_t kHeader = sizeof frame.header;
  while (!frame.complete()) {
    const std::size_t of_header = std::min(frame.sent, kHeader);
    const auto rest = frame.bytes.subspan(frame.sent - of_header);
    // sendmsg() only reads from it.
    iovec parts[2] = {
        {reinterpret_cast<std::byte*>(&frame.header) + of_header, kHeader - of_header},
        {const_cast<std::byte*>(rest.data()), rest.size()}};
    msghdr message{};
    message.msg_iov = parts;
    message.msg_iovlen = rest.empty() ? 1 : 2;
    const ssize_t n = ::sendmsg(socket_.number(), &message, MSG_NOSIGNAL | MSG_DONTWAIT);
    if (n >= 0) {
      frame.sent += static_cast<std::size_t>(n);
    } else if (errno == EAGAIN || errno == EWOULDBLOCK) {
      return;
    } else if (errno != EINTR) {
      const int error = errno;
      end();
      throw_closed(error);
    }
  }
  ++frame.progress->left;
}

void OutStream::send_waiting() {
  while (!waiting_.empty()) {
    send(waiting_.front());
    if (!waiting_.front().complete()) return wants_room_();
    waiting_.pop_front();
  }
}

void OutStream::continue_sending() noexcept {
  try {
    const std::lock_guard lock(mutex_);
    if (!over_) send_waiting();
  } catch (const WireClosed&) {
    // The next wait() or put() reports the error.
  }
  changed_.notify_all();
}

void OutStream::wait(Progress& progress) {
  std::unique_lock lock(mutex_);
  changed_.wait(lock, [&] { return over_ || progress.left > progress.waited; });
  if (progress.left == progress.waited) throw_closed(0);
  ++progress.waited;
}

void OutStream::forget(const Progress& progress) noexcept {
  const std::lock_guard lock(mutex_);
  const auto is_its = [&](const Frame& frame) { return frame.progress == &progress; };
  // A truncated frame would make the receiver misread the stream.
  if (!waiting_.empty() && is_its(waiting_.front()) && waiting_.front().sent > 0) end();
  std::erase_if(waiting_, is_its);
}

void OutStream::end() noexcept {
  over_ = true;
  waiting_.clear();
  changed_.notify_all();
}

void OutStream::close() noexcept {
  const std::lock_guard lock(mutex_);
  end();
  // The kernel still delivers the bytes that it holds: this socket has no unread bytes, which would
  // reset the connection. shut_down() has an effect even if another process has the socket, too.
  socket_.shut_down();
  socket_.close();
}

// ----------------------------------------------------------------------------------- receiving

void InStream::connect(Socket socket) {
  const std::lock_guard lock(state_);
  socket_ = std::move(socket);
  closed_ = false;
}

void InStream::expose(int slot, std::span<std::byte> memory) {
  const std::lock_guard lock(state_);
  windows_[slot] = {.memory = memory};
}

void InStream::withdraw(int slot) noexcept {
  {
    const std::lock_guard lock(state_);
    windows_.erase(slot);
    if (written_ != slot) return;
    closed_ = true;
    socket_.shut_down();
  }
  const std::lock_guard reading(reading_);
  expected_ = {};
}

void InStream::wait(int slot) {
  const std::lock_guard reading(reading_);
  while (!take_put(slot)) {
    if (!fault_.empty()) throw std::runtime_error(std::exchange(fault_, {}));
    if (closed_) throw_closed(0);
    if (unparsed_.empty()) receive();
    parse();
  }
}

bool InStream::take_put(int slot) {
  const std::lock_guard lock(state_);
  const auto window = windows_.find(slot);
  if (window == windows_.end() || window->second.puts == 0) return false;
  --window->second.puts;
  return true;
}

void InStream::receive() {
  iovec parts[2] = {{expected_.data(), expected_.size()}, {staged_.data(), staged_.size()}};
  const bool direct = !expected_.empty();
  msghdr message{};
  message.msg_iov = direct ? parts : parts + 1;
  message.msg_iovlen = direct ? 2 : 1;
  ssize_t n = -1;
  do {
    n = ::recvmsg(socket_.number(), &message, 0);
  } while (n < 0 && errno == EINTR && !closed_);
  if (n <= 0) throw_closed(n < 0 ? errno : 0);
  const auto bytes = static_cast<std::size_t>(n);
  const std::size_t in_place = std::min(bytes, expected_.size());
  expected_ = expected_.subspan(in_place);
  unparsed_ = std::span(staged_).first(bytes - in_place);
  if (direct && expected_.empty()) end_frame();
}

void InStream::parse() {
  while (!unparsed_.empty()) {
    if (header_bytes_ < sizeof header_) {
      const auto more = unparsed_.first(std::min(unparsed_.size(), sizeof header_ - header_bytes_));
      std::memcpy(reinterpret_cast<std::byte*>(&header_) + header_bytes_, more.data(), more.size());
      header_bytes_ += more.size();
      unparsed_ = unparsed_.subspan(more.size());
      if (header_bytes_ < sizeof header_) return;
      begin_frame();
      if (!fault_.empty()) return;
    }
    const auto piece = unparsed_.first(std::min(unparsed_.size(), expected_.size()));
    if (!piece.empty()) std::memcpy(expected_.data(), piece.data(), piece.size());
    expected_ = expected_.subspan(piece.size());
    unparsed_ = unparsed_.subspan(piece.size());
    if (expected_.empty()) end_frame();
  }
}

void InStream::begin_frame() {
  const std::lock_guard lock(state_);
  const auto window = windows_.find(header_.slot);
  if (window == windows_.end()) {
    return end_with(fmt::format("a frame for window {}, which is not there", header_.slot));
  }
  const std::span<std::byte> memory = window->second.memory;
  if (header_.window_offset > memory.size() ||
      header_.bytes > memory.size() - header_.window_offset) {
    return end_with(fmt::format("{} bytes for offset {} of a window of {}", header_.bytes,
                                header_.window_offset, memory.size()));
  }
  expected_ = memory.subspan(header_.window_offset, header_.bytes);
  written_ = header_.slot;
}

void InStream::end_with(std::string fault) {
  fault_ = std::move(fault);
  closed_ = true;  // data after an invalid frame is meaningless
  unparsed_ = {};
}

void InStream::end_frame() {
  header_bytes_ = 0;
  const std::lock_guard lock(state_);
  written_.reset();
  const auto window = windows_.find(header_.slot);
  if (window != windows_.end()) ++window->second.puts;
}

void InStream::close() noexcept {
  {
    const std::lock_guard lock(state_);
    closed_ = true;
    socket_.shut_down();
  }
  const std::lock_guard reading(reading_);
  expected_ = {};
  const std::lock_guard lock(state_);
  socket_.close();
}

}  // namespace hipress::transport
