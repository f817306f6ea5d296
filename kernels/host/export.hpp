#pragma once

#include "kernels/host/quantizer_body.hpp"
#include "kernels/host/sparsifier_body.hpp"

/// A file of generated code ends with HIPRESS_EXPORT_QUANTIZER(SYMBOL, "name", Algorithm,
/// parameters, count), or the macro of a different kind. The file is compiled once per instruction
/// set and defines
///
///   extern "C" const CompiledAlgorithm SYMBOL_ISA;
///
/// SYMBOL begins with hipress_, which no macro does. ISA follows from the compiler's flags;
/// HIPRESS_SCALAR selects the scalar loops.
namespace hipress::kernels {

#if defined(HIPRESS_SCALAR)
#define HIPRESS_ISA scalar
using ExportLanes = float;
#else
using ExportLanes = FloatVector;
#if defined(__AVX512F__)
#define HIPRESS_ISA avx512
#elif defined(__AVX2__)
#define HIPRESS_ISA avx2
#else
#define HIPRESS_ISA portable
#endif
#endif

}  // namespace hipress::kernels

#define HIPRESS_JOIN_(a, b) a##b
#define HIPRESS_JOIN(a, b) HIPRESS_JOIN_(a, b)
#if defined(HIPRESS_PLUGIN)
#define HIPRESS_PROGRAM_SYMBOL(SYMBOL) hipress_program
#else
#define HIPRESS_PROGRAM_SYMBOL(SYMBOL) HIPRESS_JOIN(SYMBOL##_, HIPRESS_ISA)
#endif

/// PARAMETERS is an array of COUNT DeclaredParameters.
#define HIPRESS_EXPORT_ALGORITHM_(SYMBOL, TABLE)                                      \
  extern "C" {                                                                        \
  extern const ::hipress::kernels::CompiledAlgorithm HIPRESS_PROGRAM_SYMBOL(SYMBOL);  \
  const ::hipress::kernels::CompiledAlgorithm HIPRESS_PROGRAM_SYMBOL(SYMBOL) = TABLE; \
  }
#define HIPRESS_EXPORT_QUANTIZER(SYMBOL, NAME, ALGORITHM, PARAMETERS, COUNT)                   \
  HIPRESS_EXPORT_ALGORITHM_(                                                                   \
      SYMBOL, (::hipress::kernels::host_quantizer<ALGORITHM, ::hipress::kernels::ExportLanes>( \
                  NAME, PARAMETERS, COUNT)))
#define HIPRESS_EXPORT_BLOCK_QUANTIZER(SYMBOL, NAME, ALGORITHM, PARAMETERS, COUNT)           \
  HIPRESS_EXPORT_ALGORITHM_(                                                                 \
      SYMBOL,                                                                                \
      (::hipress::kernels::host_block_quantizer<ALGORITHM, ::hipress::kernels::ExportLanes>( \
          NAME, PARAMETERS, COUNT)))
#define HIPRESS_EXPORT_SPARSIFIER(SYMBOL, NAME, ALGORITHM, PARAMETERS, COUNT)                   \
  HIPRESS_EXPORT_ALGORITHM_(                                                                    \
      SYMBOL, (::hipress::kernels::host_sparsifier<ALGORITHM, ::hipress::kernels::ExportLanes>( \
                  NAME, PARAMETERS, COUNT)))

/// Array programs use the standard library, whose functions the linker shares between files. So the
/// AVX2 and AVX-512 builds refer to the portable code.
#if defined(HIPRESS_PLUGIN) || defined(HIPRESS_SCALAR) || \
    (!defined(__AVX512F__) && !defined(__AVX2__))
#define HIPRESS_EXPORT_ARRAYS(SYMBOL, NAME, ALGORITHM, PARAMETERS, COUNT) \
  HIPRESS_EXPORT_ALGORITHM_(SYMBOL,                                       \
                            ::hipress::kernels::array_program<ALGORITHM>(NAME, PARAMETERS, COUNT))
#else
#define HIPRESS_EXPORT_ARRAYS(SYMBOL, NAME, ALGORITHM, PARAMETERS, COUNT)   \
  extern "C" const ::hipress::kernels::CompiledAlgorithm SYMBOL##_portable; \
  HIPRESS_EXPORT_ALGORITHM_(SYMBOL, SYMBOL##_portable)
#endif
