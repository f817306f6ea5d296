# Compiler settings, and two kinds of target: a folder's library, and a command-line tool.

add_library(hipress_settings INTERFACE)
# Every compiler rounds once per operation, in the order written (docs/decisions/0005-equal-bits.md).
target_compile_options(hipress_settings INTERFACE
  # Programs are position-independent like libraries, so that one precompiled header serves both. -Wshadow is off for unity builds,
  # in which names of one file shadow those of another; the preset dev checks each file alone.
  $<$<COMPILE_LANGUAGE:CXX>:-Wall -Wextra -Wpedantic $<IF:$<BOOL:$<TARGET_PROPERTY:UNITY_BUILD>>,$<$<CXX_COMPILER_ID:GNU>:-Wno-subobject-linkage>,-Wshadow> -ffp-contract=off -fPIC>
  $<$<COMPILE_LANGUAGE:CUDA>:-fmad=false>)
if(CMAKE_CXX_COMPILER_ID STREQUAL "GNU" AND CMAKE_CXX_COMPILER_VERSION VERSION_LESS 13)
  # g++ 12 wrongly warns of overlapping and of endless copies inside its own std::string (GCC bugs 105651 and 105329).
  target_compile_options(hipress_settings INTERFACE
    $<$<COMPILE_LANGUAGE:CXX>:-Wno-restrict -Wno-stringop-overflow -Wno-error=array-bounds>)
endif()
if(CMAKE_CXX_COMPILER_ID STREQUAL "GNU")
  # GCC collects garbage only above 512 MiB: for these small files, earlier collections take a tenth of the time and free little.
  target_compile_options(hipress_settings INTERFACE $<$<COMPILE_LANGUAGE:CXX>:--param=ggc-min-heapsize=524288>)
endif()
if(HIPRESS_PACKAGE)
  # Builds in any folder give the same bits.
  set(same_names -ffile-prefix-map=${PROJECT_BINARY_DIR}=build -ffile-prefix-map=${PROJECT_SOURCE_DIR}=.)
  list(JOIN same_names "," same_names_of_host)
  target_compile_options(hipress_settings INTERFACE
    $<$<COMPILE_LANGUAGE:CXX>:${same_names}> $<$<COMPILE_LANGUAGE:CUDA>:-Xcompiler=${same_names_of_host}>)
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
  # All code is instrumented for coverage; the fuzz programs themselves add libFuzzer's main.
  target_compile_options(hipress_settings INTERFACE $<$<COMPILE_LANGUAGE:CXX>:-fsanitize=fuzzer-no-link>)
endif()
if(HIPRESS_SANITIZER)
  target_compile_options(hipress_settings INTERFACE $<$<COMPILE_LANGUAGE:CXX>:${sanitize}>)
  target_link_options(hipress_settings INTERFACE ${sanitize})
endif()

# The precompiled header has the includes of many files. GCC takes it only with the flags that it was made with, so all targets get
# {fmt}'s definitions, even those without {fmt}. ccache needs the sloppiness that scripts/build.sh sets.
target_compile_definitions(hipress_settings INTERFACE $<TARGET_PROPERTY:fmt::fmt,INTERFACE_COMPILE_DEFINITIONS>)
set(hipress_precompiled_header $<$<COMPILE_LANGUAGE:CXX>:${PROJECT_SOURCE_DIR}/cmake/precompiled.hpp>)
file(CONFIGURE OUTPUT ${PROJECT_BINARY_DIR}/nothing.cpp CONTENT "")
add_library(hipress_precompiled OBJECT ${PROJECT_BINARY_DIR}/nothing.cpp)
target_compile_features(hipress_precompiled PRIVATE cxx_std_20)
target_link_libraries(hipress_precompiled PRIVATE fmt::fmt hipress_settings)
target_precompile_headers(hipress_precompiled PRIVATE ${hipress_precompiled_header})

# hipress_library(NAME SOURCES ... [PUBLIC lib...] [PRIVATE lib...])
# The library of one folder, hipress::NAME; its headers are included as "NAME/header.hpp". With HIPRESS_ONE_LIBRARY,
# hipress::NAME instead links programs with libhipress_all.so, which holds the objects of all folders.
function(hipress_library name)
  cmake_parse_arguments(ARG "" "" "SOURCES;PUBLIC;PRIVATE" ${ARGN})
  add_library(hipress_${name} STATIC ${ARG_SOURCES})
  if(HIPRESS_ONE_LIBRARY)
    # Folders link each other as archives, because libhipress_all.so is made of all of these.
    list(TRANSFORM ARG_PUBLIC REPLACE "^hipress::" "hipress_")
    list(TRANSFORM ARG_PRIVATE REPLACE "^hipress::" "hipress_")
    add_library(hipress_${name}_shared INTERFACE)
    add_library(hipress::${name} ALIAS hipress_${name}_shared)
    target_compile_features(hipress_${name}_shared INTERFACE cxx_std_20)
    foreach(property INCLUDE_DIRECTORIES COMPILE_DEFINITIONS)
      set_property(TARGET hipress_${name}_shared PROPERTY INTERFACE_${property}
                   $<TARGET_PROPERTY:hipress_${name},INTERFACE_${property}>)
    endforeach()
    target_link_libraries(hipress_${name}_shared INTERFACE hipress_all yaml-cpp Threads::Threads)
  else()
    add_library(hipress::${name} ALIAS hipress_${name})
  endif()
  set_target_properties(hipress_${name} PROPERTIES EXPORT_NAME ${name})
  target_include_directories(hipress_${name} PUBLIC
    $<BUILD_INTERFACE:${PROJECT_SOURCE_DIR}> $<INSTALL_INTERFACE:${CMAKE_INSTALL_INCLUDEDIR}/hipress>)
  target_compile_features(hipress_${name} PUBLIC cxx_std_20)
  target_link_libraries(hipress_${name} PUBLIC ${ARG_PUBLIC} PRIVATE ${ARG_PRIVATE} $<BUILD_INTERFACE:hipress_settings>)
  target_precompile_headers(hipress_${name} REUSE_FROM hipress_precompiled)
  set_property(GLOBAL APPEND PROPERTY HIPRESS_LIBRARIES hipress_${name})
endfunction()

# hipress_all_libraries(): makes libhipress_all.so of all folders' libraries; call it once they are declared. Programs that need it
# look for it beside themselves and in a bundle's ../lib/hipress.
function(hipress_all_libraries)
  get_property(libraries GLOBAL PROPERTY HIPRESS_LIBRARIES)
  add_library(hipress_all SHARED ${PROJECT_BINARY_DIR}/nothing.cpp)
  set(whole ${libraries})
  list(TRANSFORM whole REPLACE "(.+)" "$<TARGET_FILE:\\1>")
  # The whole archives come first, then the targets themselves, which bring the other libraries that they need.
  target_link_libraries(hipress_all PRIVATE -Wl,--whole-archive ${whole} -Wl,--no-whole-archive ${libraries})
  # libhipress_all.so finds the libraries beside it, as libhipress.so does (HipressBundle.cmake).
  set_target_properties(hipress_all PROPERTIES LIBRARY_OUTPUT_DIRECTORY ${PROJECT_BINARY_DIR}/bin BUILD_RPATH "$ORIGIN"
                        INSTALL_RPATH "$ORIGIN")
  target_link_options(hipress_all PRIVATE LINKER:--disable-new-dtags LINKER:--exclude-libs,libssl.a:libcrypto.a)
endfunction()

# hipress_tool(NAME SOURCES ... LIBRARIES ...): adds the command-line tool hipress-NAME.
function(hipress_tool name)
  cmake_parse_arguments(ARG "" "" "SOURCES;LIBRARIES" ${ARGN})
  add_executable(hipress-${name} ${ARG_SOURCES})
  target_link_libraries(hipress-${name} PRIVATE ${ARG_LIBRARIES} hipress_settings)
  set_target_properties(hipress-${name} PROPERTIES RUNTIME_OUTPUT_DIRECTORY ${PROJECT_BINARY_DIR}/bin)
  target_precompile_headers(hipress-${name} REUSE_FROM hipress_tools_precompiled)
  set_property(GLOBAL APPEND PROPERTY HIPRESS_TOOLS hipress-${name})
endfunction()
