#pragma once

#include <cstring>
#include <span>
#include <string>
#include <type_traits>
#include <vector>

#include "transport/endpoint.hpp"

namespace hipress::job {

/// All-gather of plain data, in rank order. All machines must have the same architecture.
template <class T>
std::vector<std::vector<T>> gather(transport::Endpoint& endpoint, std::span<const T> mine) {
  static_assert(std::is_trivially_copyable_v<T>);
  const std::string bytes(reinterpret_cast<const char*>(mine.data()), mine.size_bytes());
  std::vector<std::vector<T>> all;
  for (const std::string& text : endpoint.all_gather(bytes)) {
    std::vector<T>& values = all.emplace_back(text.size() / sizeof(T));
    if (!values.empty()) std::memcpy(values.data(), text.data(), values.size() * sizeof(T));
  }
  return all;
}

/// All-gather of one value per rank.
template <class T>
std::vector<T> gather(transport::Endpoint& endpoint, const T& mine) {
  std::vector<T> all;
  for (const std::vector<T>& values : gather(endpoint, std::span<const T>(&mine, 1))) {
    all.push_back(values.at(0));
  }
  return all;
}

}  // namespace hipress::job
