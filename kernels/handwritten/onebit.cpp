#include "kernels/handwritten/onebit.hpp"

#include "kernels/export.hpp"

HIPRESS_EXPORT_QUANTIZER(onebit, hipress::kernels::handwritten::Onebit, nullptr, 0)
