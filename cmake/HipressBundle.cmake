# `cpack` makes hipress-VERSION-linux-x86_64.tar.gz: the tools with all that they need, to be unpacked anywhere on an
# x86-64 Linux with nothing installed.
#   bin/              a launcher per program, hipress-demo, hipress-gpu-check
#   libexec/hipress/  the programs; in builds with tests and benchmarks, also what hipress-gpu-check runs
#   lib/hipress/      shared libraries (bundle/libraries.cmake says which)
#   share/hipress/    models, profiles, examples, what generated code includes
get_property(programs GLOBAL PROPERTY HIPRESS_TOOLS)
foreach(check test_kernels test_emulated_kernels test_replay test_runtime bench_codecs bench_replay)
  if(TARGET ${check})
    list(APPEND programs ${check})
  endif()
endforeach()

install(TARGETS ${programs} RUNTIME DESTINATION libexec/hipress COMPONENT bundle EXCLUDE_FROM_ALL)
foreach(program ${programs})
  install(PROGRAMS ${PROJECT_SOURCE_DIR}/cmake/bundle/launcher.sh DESTINATION bin RENAME ${program}
          COMPONENT bundle EXCLUDE_FROM_ALL)
  list(APPEND program_files $<TARGET_FILE:${program}>)
endforeach()
install(PROGRAMS ${PROJECT_SOURCE_DIR}/cmake/bundle/demo.sh DESTINATION bin RENAME hipress-demo
        COMPONENT bundle EXCLUDE_FROM_ALL)
install(PROGRAMS ${PROJECT_SOURCE_DIR}/scripts/gpu_check.sh DESTINATION bin RENAME hipress-gpu-check
        COMPONENT bundle EXCLUDE_FROM_ALL)
# hipress-gpu-check runs this script if the machine has PyTorch.
install(PROGRAMS ${PROJECT_SOURCE_DIR}/scripts/gpu_steps.py DESTINATION share/hipress COMPONENT bundle EXCLUDE_FROM_ALL)
install(DIRECTORY ${PROJECT_SOURCE_DIR}/python/hipress DESTINATION share/hipress/python
        COMPONENT bundle EXCLUDE_FROM_ALL FILES_MATCHING PATTERN "*.py" PATTERN "*.pyi" PATTERN "py.typed")
install(FILES ${hipress_python_version} DESTINATION share/hipress/python/hipress COMPONENT bundle EXCLUDE_FROM_ALL)
# libhipress.so finds the libraries beside it, and so do those libraries: an RPATH also applies to them, a RUNPATH does not.
set_target_properties(hipress_c PROPERTIES INSTALL_RPATH "$ORIGIN")
target_link_options(hipress_c PRIVATE LINKER:--disable-new-dtags)
install(TARGETS hipress_c LIBRARY DESTINATION lib/hipress COMPONENT bundle EXCLUDE_FROM_ALL)
if(TARGET hipress_all)
  install(TARGETS hipress_all LIBRARY DESTINATION lib/hipress COMPONENT bundle EXCLUDE_FROM_ALL)
endif()
install(DIRECTORY ${PROJECT_SOURCE_DIR}/examples DESTINATION share/hipress COMPONENT bundle EXCLUDE_FROM_ALL
        PATTERN "*.png" EXCLUDE)
# Programs that the tests of hipress-gpu-check compile at run time, besides the shipped algorithms.
install(DIRECTORY ${PROJECT_SOURCE_DIR}/tests/kernels/data DESTINATION share/hipress/tests/kernels
        COMPONENT bundle EXCLUDE_FROM_ALL)
install(FILES ${PROJECT_SOURCE_DIR}/docs/cluster.md ${PROJECT_SOURCE_DIR}/LICENSE DESTINATION share/hipress COMPONENT bundle EXCLUDE_FROM_ALL)
install(CODE "
  set(PROGRAMS \"${program_files}\")
  set(SHARED \"$<TARGET_FILE:hipress_c>\")
  set(FOLDER \"\$ENV{DESTDIR}\${CMAKE_INSTALL_PREFIX}/lib/hipress\")
  include(\"${PROJECT_SOURCE_DIR}/cmake/bundle/libraries.cmake\")" COMPONENT bundle EXCLUDE_FROM_ALL)
hipress_install_sbom(bundle)

set(bundle_cuda "")
if(HIPRESS_HAVE_CUDA)
  set(bundle_cuda "-cuda${CUDAToolkit_VERSION_MAJOR}")
endif()
set(CPACK_GENERATOR TGZ)
set(CPACK_ARCHIVE_COMPONENT_INSTALL ON)
set(CPACK_COMPONENTS_ALL data bundle)
set(CPACK_COMPONENTS_GROUPING ALL_COMPONENTS_IN_ONE)
set(CPACK_COMPONENT_INCLUDE_TOPLEVEL_DIRECTORY ON)
set(CPACK_STRIP_FILES ON)
set(CPACK_PACKAGE_FILE_NAME hipress-${PROJECT_VERSION}-linux-x86_64${bundle_cuda})
set(CPACK_PACKAGE_DIRECTORY ${PROJECT_BINARY_DIR})
set(CPACK_POST_BUILD_SCRIPTS ${PROJECT_SOURCE_DIR}/cmake/bundle/repack.cmake)
include(CPack)
