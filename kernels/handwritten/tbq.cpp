#include "kernels/handwritten/tbq.hpp"

#include "kernels/export.hpp"

[[maybe_unused]] static constexpr hipress::kernels::DeclaredParameter kParameters[] = {
    {"tau", 0.5, 1e-30, 1e30, false}};
HIPRESS_EXPORT_QUANTIZER(tbq, hipress::kernels::handwritten::Tbq, kParameters, 1)
