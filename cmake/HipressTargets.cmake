# Compiler settings, and the three kinds of target there are: a folder's library, its tool, and tests.

add_library(hipress_settings INTERFACE)
# One rounding per operation, in the order written, on every compiler: design decision "same bits everywhere".
target_compile_options(hipress_settings INTERFACE
  $<$<COMPILE_LANGUAGE:CXX>:-Wall -Wextra -Wpedantic -Wshadow -ffp-contract=off>
  $<$<COMPILE_LANGUAGE:CUDA>:-fmad=false>)
if(CMAKE_CXX_COMPILER_ID STREQUAL "GNU" AND CMAKE_CXX_COMPILER_VERSION VERSION_LESS 13)
  # g++ 12 warns of overlapping copies inside its own std::string (GCC bug 105651).
  target_compile_options(hipress_settings INTERFACE $<$<COMPILE_LANGUAGE:CXX>:-Wno-restrict>)
endif()
if(HIPRESS_WERROR)
  target_compile_options(hipress_settings INTERFACE $<$<COMPILE_LANGUAGE:CXX>:-Werror>)
endif()
if(HIPRESS_SANITIZER STREQUAL "address")
  set(sanitize -fsanitize=address,undefined -fno-sanitize-recover=all -fno-omit-frame-pointer)
elseif(HIPRESS_SANITIZER STREQUAL "thread")
  set(sanitize -fsanitize=thread -fno-omit-frame-pointer)
elseif(HIPRESS_SANITIZER)
  message(FATAL_ERROR "HIPRESS_SANITIZER is '${HIPRESS_SANITIZER}'; it takes address, thread or nothing")
endif()
if(HIPRESS_FUZZ)
  # Coverage everywhere; the programs themselves add libFuzzer's main.
  target_compile_options(hipress_settings INTERFACE $<$<COMPILE_LANGUAGE:CXX>:-fsanitize=fuzzer-no-link>)
endif()
if(HIPRESS_SANITIZER)
  target_compile_options(hipress_settings INTERFACE $<$<COMPILE_LANGUAGE:CXX>:${sanitize}>)
  target_link_options(hipress_settings INTERFACE ${sanitize})
endif()

# hipress_library(NAME SOURCES ... [PUBLIC lib...] [PRIVATE lib...])
# The library of one folder, hipress::NAME; its headers are included as "NAME/header.hpp".
function(hipress_library name)
  cmake_parse_arguments(ARG "" "" "SOURCES;PUBLIC;PRIVATE" ${ARGN})
  add_library(hipress_${name} STATIC ${ARG_SOURCES})
  add_library(hipress::${name} ALIAS hipress_${name})
  set_target_properties(hipress_${name} PROPERTIES EXPORT_NAME ${name})
  target_include_directories(hipress_${name} PUBLIC
    $<BUILD_INTERFACE:${PROJECT_SOURCE_DIR}> $<INSTALL_INTERFACE:${CMAKE_INSTALL_INCLUDEDIR}/hipress>)
  target_compile_features(hipress_${name} PUBLIC cxx_std_20)
  target_link_libraries(hipress_${name} PUBLIC ${ARG_PUBLIC} PRIVATE ${ARG_PRIVATE} $<BUILD_INTERFACE:hipress_settings>)
  set_property(GLOBAL APPEND PROPERTY HIPRESS_LIBRARIES hipress_${name})
endfunction()

# hipress_tool(NAME SOURCES ... LIBRARIES ...): the command-line tool hipress-NAME.
function(hipress_tool name)
  cmake_parse_arguments(ARG "" "" "SOURCES;LIBRARIES" ${ARGN})
  add_executable(hipress-${name} ${ARG_SOURCES})
  target_link_libraries(hipress-${name} PRIVATE ${ARG_LIBRARIES} hipress_settings)
  set_target_properties(hipress-${name} PROPERTIES RUNTIME_OUTPUT_DIRECTORY ${PROJECT_BINARY_DIR}/bin)
  set_property(GLOBAL APPEND PROPERTY HIPRESS_TOOLS hipress-${name})
endfunction()
