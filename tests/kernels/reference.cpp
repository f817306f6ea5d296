#include "tests/kernels/reference.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <catch2/catch.hpp>
#include <cfloat>
#include <cmath>
#include <cstring>
#include <limits>
#include <map>
#include <random>
#include <stdexcept>

namespace hipress::kernels::reference {

namespace {

struct Sums {
  double non_negative = 0, negative = 0;
};

/// Pairwise sum of neighbours, ((a0 + a1) + (a2 + a3)) + …, in precision T.
template <class T>
T pairwise(const std::vector<T>& terms) {
  if (terms.size() == 1) return terms[0];
  std::vector<T> half;
  for (std::size_t i = 0; i < terms.size(); i += 2) half.push_back(terms[i] + terms[i + 1]);
  return pairwise(half);
}

/// Sum of a tile in precision T: first each of the 32 columns, then lanes l and l + 16, l + 8 …
template <class T>
T sum_of_tile(const std::vector<float>& tile) {
  std::vector<T> lanes;
  for (int lane = 0; lane < 32; ++lane) {
    std::vector<T> column;
    for (int row = 0; row < 32; ++row) column.push_back(tile[row * 32 + lane]);
    lanes.push_back(pairwise(column));
  }
  for (std::size_t half = 16; half > 0; half /= 2) {
    for (std::size_t lane = 0; lane < half; ++lane) lanes[lane] += lanes[lane + half];
  }
  return lanes[0];
}

/// Sum of the values for which `keep` is true, in the order of kernels/frames/reduction.hpp. A tile
/// is summed in double if its fp32 sum of the positive or of the negative values overflows.
template <class Keep>
double fixed_sum(const std::vector<float>& values, const Keep& keep) {
  const auto tile_of = [&](std::size_t first, auto keep_here) {
    std::vector<float> tile(1024, 0.0f);
    for (std::size_t i = 0; i < 1024 && first + i < values.size(); ++i) {
      if (keep_here(values[first + i])) tile[i] = values[first + i];
    }
    return tile;
  };
  double total = 0;
  for (std::size_t block = 0; block < values.size(); block += 32768) {
    std::vector<double> tiles;
    for (std::size_t i = 0; i < 32; ++i) {
      const std::size_t first = block + i * 1024;
      const float up = sum_of_tile<float>(tile_of(first, [](float v) { return !(v < 0); }));
      const float down = sum_of_tile<float>(tile_of(first, [](float v) { return v < 0; }));
      const std::vector<float> tile = tile_of(first, keep);
      const bool fits = std::isfinite(up) && std::isfinite(down);
      tiles.push_back(fits ? sum_of_tile<float>(tile) : sum_of_tile<double>(tile));
    }
    total += pairwise(tiles);
  }
  return total;
}

bool all_finite(const std::vector<float>& inputs) {
  return std::all_of(inputs.begin(), inputs.end(), [](float x) { return std::isfinite(x); });
}

/// Tag of an algorithm's messages. It is an arbitrary number, so it is read from a message.
std::uint16_t tag_of(const char* algorithm) {
  const float value = 1;
  alignas(16) std::byte message[64];
  EncodeItem item;
  item.values = &value;
  item.elements = 1;
  item.message = message;
  make_codec(algorithm)->encode({&item, 1});
  std::uint16_t tag;
  std::memcpy(&tag, message + 4, sizeof tag);
  return tag;
}

/// Message of a quantiser: number of elements, tag, bits, non-finite flag; the algorithm's numbers;
/// from the next multiple of 16, the bit planes.
std::vector<std::byte> pack(const std::vector<std::uint32_t>& codes, int bits,
                            const std::vector<float>& numbers, const char* algorithm, bool finite) {
  const auto elements = static_cast<std::uint32_t>(codes.size());
  const std::uint16_t tag = tag_of(algorithm);
  const std::size_t start = (8 + 4 * numbers.size() + 15) / 16 * 16;
  std::vector<std::byte> message(start + (codes.size() + 31) / 32 * 4 * bits);
  std::memcpy(&message[0], &elements, 4);
  std::memcpy(&message[4], &tag, 2);
  message[6] = std::byte(bits);
  message[7] = std::byte(finite ? 0 : 1);
  if (!finite) return message;
  if (!numbers.empty()) std::memcpy(&message[8], numbers.data(), 4 * numbers.size());
  for (std::size_t i = 0; i < codes.size(); ++i) {
    for (int p = 0; p < bits; ++p) {
      const std::size_t byte = start + (i / 32 * bits + p) * 4 + i % 32 / 8;
      message[byte] |= std::byte((codes[i] >> p & 1) << (i % 8));
    }
  }
  return message;
}

/// Results for a slice with a NaN or infinity: decoded values are NaN, the residual is unchanged.
Encoded non_finite(std::size_t elements, int bits, const std::vector<float>& numbers,
                   const char* algorithm, const std::vector<float>& residual) {
  return {pack(std::vector<std::uint32_t>(elements), bits, numbers, algorithm, false),
          std::vector<float>(elements, std::numeric_limits<float>::quiet_NaN()), residual};
}

std::vector<float> difference(const std::vector<float>& values, const std::vector<float>& decoded,
                              const std::vector<float>& residual) {
  std::vector<float> result;
  for (std::size_t i = 0; i < residual.size(); ++i) result.push_back(values[i] - decoded[i]);
  return result;
}

}  // namespace

std::vector<float> values_of(const std::vector<float>& inputs, float divisor,
                             const std::vector<float>& residual) {
  std::vector<float> values;
  for (std::size_t i = 0; i < inputs.size(); ++i) {
    float value = inputs[i];
    if (divisor != 1) value = value / divisor;
    if (!residual.empty()) value = value + residual[i];
    if (std::isfinite(inputs[i])) value = std::clamp(value, -FLT_MAX, FLT_MAX);
    values.push_back(value);
  }
  return values;
}

Encoded onebit(const std::vector<float>& inputs, float divisor,
               const std::vector<float>& residual) {
  const std::vector<float> values = values_of(inputs, divisor, residual);
  std::vector<std::uint32_t> codes;
  std::int64_t negatives = 0;
  for (const float value : values) {
    codes.push_back(value < 0);
    negatives += value < 0;
  }
  if (!all_finite(inputs)) return non_finite(inputs.size(), 1, {0, 0}, "onebit", residual);
  const std::int64_t others = static_cast<std::int64_t>(values.size()) - negatives;
  const auto mean = [](double sum, std::int64_t count) {
    return count == 0 ? 0.0f : static_cast<float>(sum / static_cast<double>(count));
  };
  const float up = mean(fixed_sum(values, [](float v) { return !(v < 0); }), others);
  const float down = mean(fixed_sum(values, [](float v) { return v < 0; }), negatives);
  std::vector<float> decoded;
  for (const std::uint32_t code : codes) decoded.push_back(code == 1 ? down : up);
  return {pack(codes, 1, {up, down}, "onebit", true), decoded,
          difference(values, decoded, residual)};
}

Encoded tbq(const std::vector<float>& inputs, float divisor, const std::vector<float>& residual,
            float tau) {
  const std::vector<float> values = values_of(inputs, divisor, residual);
  std::vector<std::uint32_t> codes;
  std::vector<float> decoded;
  for (const float value : values) {
    codes.push_back(value >= tau ? 1 : value <= -tau ? 2 : 0);
    decoded.push_back(value >= tau ? tau : value <= -tau ? -tau : 0.0f);
  }
  if (!all_finite(inputs)) return non_finite(inputs.size(), 2, {}, "tbq", residual);
  return {pack(codes, 2, {}, "tbq", true), decoded, difference(values, decoded, residual)};
}

namespace {

std::uint64_t finalise_64(std::uint64_t x) {
  x ^= x >> 30;
  x *= 0xbf58476d1ce4e5b9u;
  x ^= x >> 27;
  x *= 0x94d049bb133111ebu;
  x ^= x >> 31;
  return x;
}

/// Uniform draw of one element, by the documentation of kernels/frames/draws.hpp.
float uniform(const DrawKey& key, std::uint64_t element) {
  const std::uint64_t golden = 0x9e3779b97f4a7c15u;
  std::uint64_t k = finalise_64(key.seed + golden);
  k = finalise_64(k ^ key.step) + golden;
  k = finalise_64(k ^ (std::uint64_t(key.node) << 32 | key.gradient)) + golden;
  k = finalise_64(k ^ key.role);
  const std::uint64_t index = static_cast<std::uint64_t>(key.first_element) + element;
  std::uint32_t x = std::uint32_t(index) ^ std::uint32_t(k);
  x ^= x >> 16;
  x *= 0x21f0aaadu;
  x ^= std::uint32_t(k >> 32) + std::uint32_t(index >> 32) * 0x9e3779b9u;
  x ^= x >> 15;
  x *= 0xd35a2d97u;
  return float(x >> 8) / 16777216.0f;
}

}  // namespace

Encoded terngrad(const std::vector<float>& inputs, float divisor, int bits, const DrawKey& key) {
  const std::vector<float> values = values_of(inputs, divisor, {});
  if (!all_finite(inputs)) return non_finite(inputs.size(), bits, {0, 0}, "terngrad", {});
  const float least = *std::min_element(values.begin(), values.end()) + 0.0f;
  const float most = *std::max_element(values.begin(), values.end()) + 0.0f;
  const int top = (1 << bits) - 1;
  // Scalars of the slice are computed in double, and rounded for the arithmetic of elements.
  // `scale` and `down` keep very large and very small ranges, and their gaps, within fp32.
  const double range = double(most) - least;
  const double scale = range > 1e37 ? 0.0625 : range < 1e-30 ? 0x1p100 : 1.0;
  const float code_first = float(least * scale), code_gap = float(range * scale / top);
  const double down = range > 1e37 ? 0.25 : 1.0;
  const float level_first = float(least * down), level_gap = float(range * down / top);
  std::vector<std::uint32_t> codes;
  std::vector<float> decoded;
  for (std::size_t i = 0; i < values.size(); ++i) {
    int code = 0;
    const float position = (values[i] * float(scale) - code_first) / code_gap;
    if (position >= 0) code = std::min(int(std::floor(position + uniform(key, i))), top);
    codes.push_back(code);
    decoded.push_back(code == top ? most : (level_first + code * level_gap) / float(down));
  }
  return {pack(codes, bits, {least, most}, "terngrad", true), decoded, {}};
}

void rotate(float* values, std::int64_t count) {
  while (count > 0) {
    std::int64_t size = 1;
    while (2 * size <= count) size *= 2;
    // 2^(-k/2) is a power of two; for an odd k, times the fp32 number nearest to sqrt(2).
    int k = 0;
    while ((std::int64_t{1} << k) < size) ++k;
    float scale = static_cast<float>(std::ldexp(1.0, -((k + 1) / 2)));
    if (k % 2 == 1) scale *= static_cast<float>(std::sqrt(2.0));
    for (std::int64_t i = 0; i < size; ++i) values[i] *= scale;
    for (std::int64_t apart = 1; apart < size; apart *= 2) {
      for (std::int64_t i = 0; i < size; ++i) {
        if ((i & apart) != 0) continue;
        const float a = values[i], b = values[i + apart];
        values[i] = a + b;
        values[i + apart] = a - b;
      }
    }
    values += size;
    count -= size;
  }
}

namespace {

/// E4M3 code of a magnitude up to 448. Magnitudes from 2^-6 have a mantissa of three bits; smaller
/// ones are multiples of 2^-9. `up` is added before truncation: 0.5 rounds to nearest.
std::uint32_t e4m3(float magnitude, float up) {
  int exponent = -5;  // magnitude = f 2^exponent, f in [0.5, 1); -5 for all below 2^-6
  if (magnitude >= 0x1p-6f) std::frexp(magnitude, &exponent);
  const float eighths = std::ldexp(magnitude, 4 - exponent);
  const auto code = static_cast<int>(std::floor(eighths + up)) + 8 * (exponent + 5);
  return static_cast<std::uint32_t>(std::min(code, 126));
}

double value_of_e4m3(std::uint32_t code) {
  const int exponent = static_cast<int>(code >> 3 & 15), mantissa = static_cast<int>(code & 7);
  const double magnitude =
      exponent == 0 ? std::ldexp(mantissa, -9) : std::ldexp(8 + mantissa, exponent - 10);
  return code >= 128 ? -magnitude : magnitude;
}

/// Code, 0 to 7, of the nearest of 8 magnitudes; a tie gets the even code. With `stochastic`,
/// rounds up to the next magnitude if the position in the step to it plus `draw` is at least 1.
std::uint32_t fp4(float magnitude, const std::vector<float>& magnitudes, bool stochastic,
                  float draw) {
  std::uint32_t code = 0;
  if (stochastic) {
    while (code < 6 && magnitudes[code + 1] <= magnitude) ++code;
    const float step = magnitudes[code + 1] - magnitudes[code];
    const auto steps_below = static_cast<int>(magnitudes[code] / step);
    const auto steps = static_cast<int>(std::floor(magnitude / step + draw));
    return std::min(code + static_cast<std::uint32_t>(steps - steps_below), 7u);
  }
  for (; code < 7; ++code) {
    const double middle = (double{magnitudes[code]} + magnitudes[code + 1]) / 2;
    if (magnitude < middle || (magnitude == middle && code % 2 == 0)) break;
  }
  return code;
}

}  // namespace

std::vector<float> magnitudes_of_fp4(bool e2m1) {
  if (e2m1) return {0, 0.5f, 1, 1.5f, 2, 3, 4, 6};
  return {0, 1, 2, 4, 8, 16, 32, 64};
}

Encoded blocks(const std::string& algorithm, const std::vector<float>& inputs, float divisor,
               const DrawKey& key, const Blocks& how) {
  const bool fp8 = algorithm == "fp8block", is_fp4 = algorithm.starts_with("fp4block");
  const int bits = algorithm == "int4block" || is_fp4 ? 4 : 8;
  const std::vector<float> magnitudes = magnitudes_of_fp4(algorithm == "fp4block(format=e2m1)");
  const int middle = 1 << (bits - 1);
  std::vector<float> values;
  for (const float input : inputs) values.push_back(divisor == 1 ? input : input / divisor);
  const auto elements = static_cast<std::int64_t>(values.size());
  std::vector<float> sent, decoded;
  std::vector<std::uint32_t> codes;
  bool finite = all_finite(values);
  for (std::int64_t first = 0; first < elements; first += how.block) {
    const std::int64_t count = std::min(how.block, elements - first);
    float* const block = values.data() + first;
    if (how.rotate) rotate(block, count);
    float most = 0;
    for (std::int64_t i = 0; i < count; ++i) {
      most = std::max(most, std::fabs(block[i]));
      finite = finite && std::isfinite(block[i]);
    }
    const float largest = fp8 ? 448 : is_fp4 ? magnitudes.back() : static_cast<float>(middle - 1);
    const float step = std::max(most, 1e-30f) / largest;
    const float per_step = 1 / step;
    sent.push_back(step);
    for (std::int64_t i = 0; finite && i < count; ++i) {
      const float up = how.stochastic ? uniform(key, static_cast<std::uint64_t>(first + i)) : 0.5f;
      if (fp8) {
        const std::uint32_t code = e4m3(std::fabs(block[i]) * per_step, up);
        codes.push_back(block[i] < 0 ? code + 128 : code);
        decoded.push_back(static_cast<float>(value_of_e4m3(codes.back())) * step);
      } else if (is_fp4) {
        const std::uint32_t code =
            fp4(std::fabs(block[i]) * per_step, magnitudes, how.stochastic, up);
        codes.push_back(block[i] < 0 ? code + 8 : code);
        decoded.push_back((block[i] < 0 ? -magnitudes[code] : magnitudes[code]) * step);
      } else {
        const float position = block[i] * per_step + static_cast<float>(middle) + up;
        codes.push_back(static_cast<std::uint32_t>(
            std::clamp(static_cast<int>(std::floor(position)), 0, 2 * middle - 1)));
        decoded.push_back((static_cast<float>(codes.back()) - static_cast<float>(middle)) * step);
      }
    }
    if (how.rotate && finite) rotate(decoded.data() + first, count);
  }
  const auto length = static_cast<std::uint32_t>(elements);
  const std::uint16_t tag = tag_of(algorithm.c_str());
  const std::size_t start = (16 + 4 * sent.size() + 15) / 16 * 16;
  std::vector<std::byte> message(start + (values.size() + 31) / 32 * 4 * bits);
  std::memcpy(&message[0], &length, 4);
  std::memcpy(&message[4], &tag, 2);
  message[6] = std::byte(bits);
  message[7] = std::byte(finite ? 0 : 1);
  if (!finite) {
    return {
        message, std::vector<float>(values.size(), std::numeric_limits<float>::quiet_NaN()), {}};
  }
  std::memcpy(&message[16], sent.data(), 4 * sent.size());
  for (std::size_t i = 0; i < codes.size(); ++i) {
    // With 4 bits, elements 16 to 31 of a word take the upper halves of the bytes of 0 to 15.
    const std::size_t place = bits == 8 ? i : i / 32 * 16 + i % 16;
    message[start + place] |= std::byte(codes[i] << (bits == 4 && i % 32 >= 16 ? 4 : 0));
  }
  return {message, decoded, {}};
}

namespace {

/// Nearest number with `precision` significant bits whose last place is at least 2^least_exponent;
/// ties to even. Uses the library's rounding of doubles.
double nearest(float value, int precision, int least_exponent) {
  if (value == 0 || !std::isfinite(value)) return value;
  int exponent = 0;
  std::frexp(value, &exponent);
  const int last_place = std::max(exponent - precision, least_exponent);
  return std::ldexp(std::nearbyint(std::ldexp(double(value), -last_place)), last_place);
}

/// The 16-bit pattern of a number that is exact in the format.
std::uint16_t pattern(double value, int mantissa_bits, int bias) {
  const std::uint16_t sign = std::signbit(value) ? 0x8000 : 0;
  const double magnitude = std::fabs(value);
  const int infinity = 0x7fff >> mantissa_bits << mantissa_bits;
  if (std::isinf(value)) return sign | infinity;
  if (magnitude == 0) return sign;
  int exponent = 0;
  std::frexp(magnitude, &exponent);  // magnitude = f 2^exponent, f in [0.5, 1)
  const int biased = std::max(exponent - 1 + bias, 1);
  // The smallest normal numbers and the denormals have the same exponent; denormals have no hidden
  // bit.
  const double scaled = std::ldexp(magnitude, mantissa_bits + bias - biased);
  return static_cast<std::uint16_t>(
      sign | ((biased - 1) * (1 << mantissa_bits) + static_cast<int>(scaled)));
}

Encoded cast(const std::vector<float>& inputs, float divisor, int mantissa_bits, int bias,
             double largest) {
  Encoded encoded;
  encoded.message.resize((inputs.size() + inputs.size() % 2) * 2);
  for (std::size_t i = 0; i < inputs.size(); ++i) {
    const float value = divisor == 1 ? inputs[i] : inputs[i] / divisor;
    std::uint16_t code = 0;
    float decoded = 0;
    if (std::isnan(value)) {
      std::uint32_t bits;
      std::memcpy(&bits, &value, 4);
      // A quiet NaN: sign, exponent of ones, the upper bits of the payload, and the quiet bit.
      const std::uint32_t payload = (bits & 0x7fffff) >> (23 - mantissa_bits);
      code = static_cast<std::uint16_t>((bits >> 31) << 15 |
                                        (0x7fff >> mantissa_bits << mantissa_bits) | payload |
                                        1u << (mantissa_bits - 1));
      const std::uint32_t wide = (bits & 0x80000000u) | 0x7f800000u |
                                 (code & ((1u << mantissa_bits) - 1)) << (23 - mantissa_bits);
      std::memcpy(&decoded, &wide, 4);
    } else {
      double rounded = nearest(value, mantissa_bits + 1, 1 - bias - mantissa_bits);
      if (std::fabs(rounded) > largest) rounded = std::copysign(INFINITY, rounded);
      code = pattern(rounded, mantissa_bits, bias);
      decoded = static_cast<float>(rounded);
    }
    std::memcpy(&encoded.message[2 * i], &code, 2);
    encoded.decoded.push_back(decoded);
  }
  return encoded;
}

}  // namespace

namespace {

/// Message of a sparsifier: header, count, indices, values; room for `most` entries, in fours.
std::vector<std::byte> pack_entries(std::size_t elements, std::size_t most,
                                    const std::map<std::uint32_t, float>& entries,
                                    const char* algorithm, bool finite) {
  const std::size_t room = (most + 3) / 4 * 16;
  std::vector<std::byte> message(16 + 2 * room);
  const auto length = static_cast<std::uint32_t>(elements);
  const std::uint16_t tag = tag_of(algorithm);
  const auto count = static_cast<std::uint32_t>(entries.size());
  std::memcpy(&message[0], &length, 4);
  std::memcpy(&message[4], &tag, 2);
  message[7] = std::byte(finite ? 0 : 1);
  std::memcpy(&message[8], &count, 4);
  std::size_t i = 0;
  for (const auto& [index, value] : entries) {
    std::memcpy(&message[16 + 4 * i], &index, 4);
    std::memcpy(&message[16 + room + 4 * i], &value, 4);
    ++i;
  }
  return message;
}

/// The `most` values of largest magnitude, without zeros, by index. Lower indices win ties.
std::map<std::uint32_t, float> largest_of(const std::vector<float>& values, std::size_t most) {
  std::vector<std::uint32_t> order;
  for (std::size_t i = 0; i < values.size(); ++i) {
    if (values[i] != 0) order.push_back(static_cast<std::uint32_t>(i));
  }
  std::stable_sort(order.begin(), order.end(), [&](std::uint32_t a, std::uint32_t b) {
    return std::fabs(values[a]) > std::fabs(values[b]);
  });
  std::map<std::uint32_t, float> entries;
  for (std::size_t k = 0; k < std::min(most, order.size()); ++k) {
    entries[order[k]] = values[order[k]];
  }
  return entries;
}

/// Sends the ⌈rho · elements⌉ largest `values`. `kept` are the states before, `next` those after if
/// nothing is sent.
Encoded select(const std::vector<float>& inputs, const std::vector<float>& values, double rho,
               const char* algorithm, const std::vector<float>& kept, std::vector<float> next) {
  const std::size_t elements = inputs.size();
  const auto most = static_cast<std::size_t>(std::ceil(rho * static_cast<double>(elements)));
  if (!all_finite(inputs)) {
    return {pack_entries(elements, most, {}, algorithm, false),
            std::vector<float>(elements, std::numeric_limits<float>::quiet_NaN()), kept};
  }
  const std::map<std::uint32_t, float> entries = largest_of(values, most);
  std::vector<float> decoded(elements, 0.0f);
  for (const auto& [index, value] : entries) {
    decoded[index] = value;
    for (std::size_t array = 0; array < next.size() / elements; ++array) {
      next[array * elements + index] = 0;
    }
  }
  return {pack_entries(elements, most, entries, algorithm, true), decoded, next};
}

}  // namespace

Encoded dgc(const std::vector<float>& inputs, float divisor, const std::vector<float>& states,
            double rho, float momentum) {
  const std::vector<float> gradient = values_of(inputs, divisor, {});
  const std::size_t elements = inputs.size();
  const auto held = [](float value) { return std::clamp(value, -FLT_MAX, FLT_MAX); };
  std::vector<float> pending, next(2 * elements);
  for (std::size_t i = 0; i < elements; ++i) {
    const float before = states.empty() ? 0.0f : states[i];
    const float waiting = states.empty() ? 0.0f : states[elements + i];
    const float velocity = held(momentum * before + gradient[i]);
    pending.push_back(held(waiting + velocity));
    next[i] = velocity;
    next[elements + i] = pending[i];
  }
  if (states.empty()) next.clear();
  return select(inputs, pending, rho, "dgc", states, next);
}

Encoded graddrop(const std::vector<float>& inputs, float divisor,
                 const std::vector<float>& residual, double rho) {
  const std::vector<float> values = values_of(inputs, divisor, residual);
  return select(inputs, values, rho, "graddrop", residual,
                residual.empty() ? std::vector<float>() : values);
}

Encoded fp16(const std::vector<float>& inputs, float divisor) {
  return cast(inputs, divisor, 10, 15, 65504);
}

Encoded bf16(const std::vector<float>& inputs, float divisor) {
  return cast(inputs, divisor, 7, 127, 0x1.fep127);
}

std::vector<std::uint16_t> rounded(ValueType type, const std::vector<float>& values) {
  const Encoded encoded = type == ValueType::kFloat16 ? fp16(values, 1) : bf16(values, 1);
  std::vector<std::uint16_t> codes(values.size());
  if (!codes.empty()) std::memcpy(codes.data(), encoded.message.data(), 2 * codes.size());
  return codes;
}

float widened(ValueType type, std::uint16_t code) {
  const int mantissa_bits = type == ValueType::kFloat16 ? 10 : 7;
  const int bias = type == ValueType::kFloat16 ? 15 : 127;
  const int exponent = (code & 0x7fff) >> mantissa_bits;
  const int mantissa = code & ((1 << mantissa_bits) - 1);
  const double sign = (code & 0x8000) != 0 ? -1 : 1;
  if (exponent == 0x7fff >> mantissa_bits) {
    if (mantissa == 0) return static_cast<float>(sign * INFINITY);
    const std::uint32_t bits = (code & 0x8000u) << 16 | 0x7fc00000u |
                               static_cast<std::uint32_t>(mantissa) << (23 - mantissa_bits);
    float nan;
    std::memcpy(&nan, &bits, sizeof nan);
    return nan;
  }
  // Biased exponents 0 and 1 have the same last place; with 0, the hidden bit is clear.
  const int hidden = exponent == 0 ? 0 : 1 << mantissa_bits;
  return static_cast<float>(
      sign * std::ldexp(hidden + mantissa, std::max(exponent, 1) - bias - mantissa_bits));
}

Encoded encode(std::string_view algorithm, const std::vector<float>& inputs, float divisor,
               const std::vector<float>& residual, const DrawKey& key) {
  if (algorithm == "onebit") return onebit(inputs, divisor, residual);
  if (algorithm == "tbq") return tbq(inputs, divisor, residual, 0.5f);
  if (algorithm == "terngrad") return terngrad(inputs, divisor, 2, key);
  if (algorithm == "dgc") return dgc(inputs, divisor, residual, 0.01, 0);
  if (algorithm == "graddrop") return graddrop(inputs, divisor, residual, 0.01);
  if (algorithm == "fp16") return fp16(inputs, divisor);
  if (algorithm == "bf16") return bf16(inputs, divisor);
  if (algorithm == "int8block") return blocks("int8block", inputs, divisor, key, {.block = 256});
  if (algorithm == "int4block") {
    return blocks("int4block", inputs, divisor, key, {.block = 64, .stochastic = true});
  }
  if (algorithm == "fp8block") return blocks("fp8block", inputs, divisor, key, {.block = 128});
  if (algorithm == "fp4block") return blocks("fp4block", inputs, divisor, key, {.block = 32});
  throw std::logic_error("no reference for " + std::string(algorithm) + ": write one");
}

}  // namespace hipress::kernels::reference

namespace hipress::kernels::testing {

const std::vector<std::int64_t> kLengths = {1,    2,     3,     5,     31,    32,     33,
                                            63,   64,    65,    1000,  1023,  1024,   1025,
                                            2047, 32767, 32768, 32769, 65537, 1000003};

namespace {

constexpr std::byte kGuard{0x5b};
constexpr std::size_t kGuardBytes = 128;

/// A gradient between two guards, at an offset from a 64-byte boundary.
class Guarded {
 public:
  Guarded(const Stored& content, int offset)
      : type_(content.type),
        size_(content.bytes.size()),
        storage_(content.bytes.size() + 2 * kGuardBytes + 128, kGuard) {
    const std::size_t misaligned = reinterpret_cast<std::uintptr_t>(storage_.data()) % 64;
    first_ = kGuardBytes + (64 - misaligned) % 64 + offset * bytes_per_value(type_);
    std::copy(content.bytes.begin(), content.bytes.end(), storage_.begin() + first_);
  }
  void* data() { return storage_.data() + first_; }
  /// Requires intact guards, and returns the content.
  Stored checked() const {
    for (std::size_t i = 0; i < storage_.size(); ++i) {
      if ((i < first_ || i >= first_ + size_) && storage_[i] != kGuard) {
        FAIL("written outside the slice, at byte " << static_cast<long>(i - first_));
      }
    }
    return {type_, {storage_.begin() + first_, storage_.begin() + first_ + size_}};
  }

 private:
  ValueType type_;
  std::size_t size_;
  std::size_t first_ = 0;
  std::vector<std::byte> storage_;
};

struct alignas(16) Chunk {
  std::byte bytes[16];
};

/// 16-byte aligned memory for a message, with a guard behind it.
class MessageBuffer {
 public:
  explicit MessageBuffer(std::int64_t bytes) : bytes_(bytes), chunks_(bytes / 16 + 3) {
    std::memset(chunks_.data(), 0xa5, chunks_.size() * 16);
  }
  std::byte* data() { return chunks_.data()->bytes; }
  std::vector<std::byte> checked() {
    for (std::size_t i = bytes_; i < chunks_.size() * 16; ++i) {
      if (data()[i] != std::byte(0xa5)) FAIL("written behind the message, at byte " << i);
    }
    return {data(), data() + bytes_};
  }

 private:
  std::int64_t bytes_;
  std::vector<Chunk> chunks_;
};

}  // namespace

std::vector<std::pair<std::string, std::vector<float>>> hard_slices(std::int64_t elements) {
  std::vector<std::pair<std::string, std::vector<float>>> slices;
  const auto add = [&](const char* name, auto value_of) {
    std::vector<float> values;
    for (std::int64_t i = 0; i < elements; ++i) values.push_back(value_of(i));
    slices.emplace_back(name, std::move(values));
  };
  std::mt19937 generator(7);
  std::student_t_distribution<float> heavy(1.5f);
  add("equal magnitudes", [](auto i) { return i % 2 == 0 ? 0.25f : -0.25f; });
  add("zeros", [](auto i) { return i % 3 == 0 ? -0.0f : 0.0f; });
  add("one spike", [&](auto i) { return i == elements - 2 ? -3.0f : 0.0f; });
  add("one spike in noise", [&](auto i) { return i == elements / 2 ? 1e20f : 1e-20f; });
  add("two magnitudes", [](auto i) { return i % 50 == 0 ? 2.0f : 1.0f; });
  add("ascending", [](auto i) { return static_cast<float>(i); });
  add("descending", [&](auto i) { return static_cast<float>(elements - i); });
  add("large at the end", [&](auto i) { return i > elements - elements / 50 ? 5.0f : 0.01f; });
  add("heavy tails", [&](auto) { return heavy(generator); });
  add("denormal", [](auto i) { return static_cast<float>(i % 1000) * 0x1p-149f; });
  return slices;
}

std::vector<float> gaussian(std::int64_t elements, std::uint32_t seed) {
  std::mt19937 generator(seed);
  std::normal_distribution<float> normal(0.0f, 0.7f);
  std::vector<float> values;
  for (std::int64_t i = 0; i < elements; ++i) values.push_back(normal(generator));
  return values;
}

Stored stored(ValueType type, const std::vector<float>& values) {
  const auto bytes_of = [](const auto& numbers) {
    const auto* first = reinterpret_cast<const std::byte*>(numbers.data());
    return std::vector<std::byte>(first, first + numbers.size() * sizeof numbers[0]);
  };
  if (type == ValueType::kFloat32) return {type, bytes_of(values)};
  return {type, bytes_of(reference::rounded(type, values))};
}

std::vector<float> loaded(const Stored& values) {
  std::vector<float> floats(values.elements());
  for (std::size_t i = 0; i < floats.size(); ++i) {
    if (values.type == ValueType::kFloat32) {
      std::memcpy(&floats[i], &values.bytes[4 * i], 4);
    } else {
      std::uint16_t code;
      std::memcpy(&code, &values.bytes[2 * i], 2);
      floats[i] = reference::widened(values.type, code);
    }
  }
  return floats;
}

std::string_view to_string(ValueType type) {
  return type == ValueType::kFloat32 ? "fp32" : type == ValueType::kFloat16 ? "fp16" : "bf16";
}

std::vector<std::byte> encode(const Codec& codec, const Stored& inputs, float divisor,
                              std::vector<float>* residual, const DrawKey& key, int offset) {
  const std::int64_t elements = inputs.elements();
  Guarded values(inputs, offset);
  Guarded state(stored(ValueType::kFloat32, residual == nullptr ? std::vector<float>() : *residual),
                (offset + 1) % 16);
  MessageBuffer message(codec.encoded_bytes(elements));
  std::int64_t bytes = -1;
  EncodeItem item;
  item.values = values.data();
  item.type = inputs.type;
  item.elements = elements;
  item.divisor = divisor;
  if (residual != nullptr && !residual->empty()) {
    item.state = {static_cast<float*>(state.data()), elements};
  }
  item.message = message.data();
  item.key = key;
  item.message_bytes = &bytes;
  codec.encode({&item, 1});
  REQUIRE(bytes <= codec.encoded_bytes(elements));
  REQUIRE(values.checked() == inputs);
  if (residual != nullptr) *residual = loaded(state.checked());
  std::vector<std::byte> made = message.checked();
  made.resize(static_cast<std::size_t>(bytes));
  return made;
}

std::vector<std::byte> encode(const Codec& codec, const std::vector<float>& inputs, float divisor,
                              std::vector<float>* residual, const DrawKey& key, int offset) {
  return encode(codec, stored(ValueType::kFloat32, inputs), divisor, residual, key, offset);
}

Stored decode(const Codec& codec, const std::vector<std::byte>& message, std::int64_t elements,
              ValueType type, int offset) {
  Guarded values(stored(type, std::vector<float>(elements, std::nanf("0x123"))), offset);
  MessageBuffer copy(static_cast<std::int64_t>(message.size()));
  std::copy(message.begin(), message.end(), copy.data());
  const std::byte* messages[] = {copy.data()};
  const std::int64_t lengths[] = {static_cast<std::int64_t>(message.size())};
  DecodeItem item;
  item.messages = messages;
  item.message_bytes = lengths;
  item.elements = elements;
  item.values = values.data();
  item.type = type;
  codec.decode({&item, 1});
  return values.checked();
}

std::vector<float> decode(const Codec& codec, const std::vector<std::byte>& message,
                          std::int64_t elements, int offset) {
  return loaded(decode(codec, message, elements, ValueType::kFloat32, offset));
}

Stored decode_add(const Codec& codec, const std::vector<std::vector<std::byte>>& messages,
                  const Stored& x, float own_divisor, float sum_divisor, int offset) {
  Guarded values(x, offset);
  std::vector<MessageBuffer> copies;
  std::vector<const std::byte*> pointers;
  std::vector<std::int64_t> lengths;
  for (const auto& message : messages) {
    copies.emplace_back(static_cast<std::int64_t>(message.size()));
    std::copy(message.begin(), message.end(), copies.back().data());
    lengths.push_back(static_cast<std::int64_t>(message.size()));
  }
  for (auto& copy : copies) pointers.push_back(copy.data());
  DecodeItem item;
  item.messages = pointers;
  item.message_bytes = lengths;
  item.elements = x.elements();
  item.values = values.data();
  item.type = x.type;
  item.mode = DecodeMode::kAdd;
  item.own_divisor = own_divisor;
  item.sum_divisor = sum_divisor;
  codec.decode({&item, 1});
  return values.checked();
}

std::vector<float> decode_add(const Codec& codec,
                              const std::vector<std::vector<std::byte>>& messages,
                              const std::vector<float>& x, float own_divisor, float sum_divisor,
                              int offset) {
  return loaded(decode_add(codec, messages, stored(ValueType::kFloat32, x), own_divisor,
                           sum_divisor, offset));
}

bool same_bits(const std::vector<float>& a, const std::vector<float>& b) {
  return a.size() == b.size() &&
         (a.empty() || std::memcmp(a.data(), b.data(), a.size() * sizeof(float)) == 0);
}

std::string describe(Isa isa, std::string_view algorithm, std::int64_t elements, int offset) {
  return fmt::format("{}: {}, {} elements, offset {}", to_string(isa), algorithm, elements, offset);
}

}  // namespace hipress::kernels::testing
