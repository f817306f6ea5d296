#include "kernels/handwritten/terngrad.hpp"

#include "kernels/export.hpp"

[[maybe_unused]] static constexpr hipress::kernels::DeclaredParameter kParameters[] = {
    {"b", 2, 1, 8, true}};
HIPRESS_EXPORT_QUANTIZER(terngrad, hipress::kernels::handwritten::Terngrad, kParameters, 1)
