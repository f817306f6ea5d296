#include "runtime/c_interface.hpp"

#include <fmt/format.h>

#include <cstdlib>
#include <cstring>
#include <new>
#include <optional>
#include <string_view>
#include <type_traits>
#include <utility>

#include "io/error.hpp"
#include "io/utf8.hpp"
#include "models/shape.hpp"
#include "transport/endpoint.hpp"

using namespace hipress;

namespace {

/// Error of this thread's last failed call.
struct LastError {
  std::string text;
  int culprit = -1;
  hipress_loss loss = HIPRESS_FAULT;
};
thread_local LastError last_error;

/// Replaces field names of requests in a message by members of hipress_options.
std::string in_c(std::string message) {
  for (const auto& [field, member] :
       {std::pair<std::string_view, std::string_view>{"`interface`", "`network`"},
        {"`secret_file`", "`secret`"}}) {
    const std::size_t at = message.find(field);
    if (at != std::string::npos) message.replace(at, field.size(), member);
  }
  return message;
}

std::vector<std::int64_t> shape_of(const hipress_gradient& gradient) {
  const int count = gradient.dimensions;
  const auto refuse = [&](const char* remedy) {
    throw std::invalid_argument(fmt::format("gradient {}: {} dimensions: {}",
                                            io::quote(runtime::text_of(gradient.name)), count,
                                            remedy));
  };
  if (count == 0) return {};
  if (count < 0 || count > static_cast<int>(models::kMaxDimensions)) {
    refuse("give 1 to 16, or 0 if the shape is unknown");
  }
  if (gradient.shape == nullptr) refuse("shape is null; point it at them, or set dimensions to 0");
  return {gradient.shape, gradient.shape + count};
}

/// Name of a gradient; throws std::invalid_argument if messages and plan files cannot hold it
/// unchanged.
std::string name_of(const hipress_gradient& gradient, std::size_t number) {
  std::string name = runtime::text_of(gradient.name);
  const std::string found = io::unfit_for_name(name);
  if (found.empty()) return name;
  throw std::invalid_argument(fmt::format("gradient {} is called {}: a name must not hold {}",
                                          number, io::quote(name), found));
}

}  // namespace

namespace hipress::runtime {

hipress_status note(hipress_status status, const char* text, int culprit,
                    hipress_loss loss) noexcept {
  try {
    last_error = {text, culprit, loss};
  } catch (const std::bad_alloc&) {
    last_error.text.clear();
    last_error.culprit = culprit;
    last_error.loss = loss;
  }
  return status;
}

hipress_status note_exception() noexcept {
  try {
    throw;
  } catch (const transport::PeerError& error) {
    const bool has_left = error.loss == transport::Loss::kLeft;
    return note(HIPRESS_LOST, error.what(), error.culprit, has_left ? HIPRESS_LEFT : HIPRESS_FAULT);
  } catch (const io::InputError& error) {
    return note(HIPRESS_INVALID, in_c(error.what()).c_str());
  } catch (const std::logic_error& error) {  // includes std::invalid_argument
    return note(HIPRESS_INVALID, error.what());
  } catch (const std::exception& error) {
    return note(HIPRESS_FAILED, error.what());
  } catch (...) {
    return note(HIPRESS_FAILED, "unknown error");
  }
}

std::string text_of(const char* text) { return text == nullptr ? "" : text; }

char* copy_of(const std::string& text) noexcept {
  auto* copy = static_cast<char*>(std::malloc(text.size() + 1));
  if (copy != nullptr) std::memcpy(copy, text.c_str(), text.size() + 1);
  return copy;
}

models::Dtype dtype_of(const hipress_type& type) {
  std::underlying_type_t<hipress_type> number;
  std::memcpy(&number, &type, sizeof number);
  switch (number) {
    case HIPRESS_FLOAT32:
      return models::Dtype::kFloat32;
    case HIPRESS_FLOAT16:
      return models::Dtype::kFloat16;
    case HIPRESS_BFLOAT16:
      return models::Dtype::kBfloat16;
  }
  throw std::invalid_argument(fmt::format(
      "type {} is not one of HIPRESS_FLOAT32, HIPRESS_FLOAT16 and HIPRESS_BFLOAT16", number));
}

std::vector<Gradient> gradients_of(const hipress_gradient* gradients, std::size_t count,
                                   const std::uint32_t* fragments) {
  if (gradients == nullptr || count == 0) throw std::invalid_argument("no gradients are given");
  std::vector<Gradient> all;
  for (const hipress_gradient& one : list_of(gradients, count, "gradients")) {
    all.push_back(
        {.name = name_of(one, all.size()),
         .elements = one.elements,
         .type = dtype_of(one.type),
         .shape = shape_of(one),
         .ready_s = one.ready_s,
         .fragment = fragments == nullptr ? std::nullopt : std::optional(fragments[all.size()])});
  }
  return all;
}

}  // namespace hipress::runtime

extern "C" {

const char* hipress_last_error(void) { return last_error.text.c_str(); }

int hipress_culprit(void) { return last_error.culprit; }

hipress_loss hipress_how_lost(void) { return last_error.loss; }

}  // extern "C"
