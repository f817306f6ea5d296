#include "transport/gather.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

namespace hipress::transport {
namespace {

/// Maximum length of a text in bytes; a longer one is a fault.
constexpr std::uint64_t kLongestText = std::uint64_t{1} << 32;

}  // namespace

std::string text_of(std::span<const std::byte> content) {
  return {reinterpret_cast<const char*>(content.data()), content.size()};
}

void Gathers::add(std::uint64_t number, int rank, const std::string& text) {
  Gather& gather = of(number);
  gather.progress = Clock::now();
  gather.texts[static_cast<std::size_t>(rank)] = text;
  gather.complete[static_cast<std::size_t>(rank)] = true;
}

void Gathers::add(int rank, const Record& record, std::span<const std::byte> content) {
  const auto sender = static_cast<std::size_t>(rank);
  Gather& gather = of(record.iteration);
  std::string& text = gather.texts[sender];
  if (gather.complete[sender] || record.offset != text.size() || record.length > kLongestText) {
    throw PeerError(rank, fmt::format("rank {} sent a piece of text out of place", rank));
  }
  text += text_of(content);
  gather.complete[sender] = text.size() == record.length;
  gather.progress = Clock::now();
}

int Gathers::missing(std::uint64_t number) const {
  const std::vector<bool>& complete = all_.at(number).complete;
  return static_cast<int>(std::find(complete.begin(), complete.end(), false) - complete.begin());
}

std::vector<std::string> Gathers::take(std::uint64_t number) {
  std::vector<std::string> texts = std::move(all_.at(number).texts);
  all_.erase(number);
  return texts;
}

}  // namespace hipress::transport
