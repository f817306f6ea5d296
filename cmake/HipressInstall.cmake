# Rules for `cmake --install`, and the package that find_package(hipress) finds.
include(CMakePackageConfigHelpers)

get_property(libraries GLOBAL PROPERTY HIPRESS_LIBRARIES)
get_property(tools GLOBAL PROPERTY HIPRESS_TOOLS)
add_custom_target(tools DEPENDS ${tools})

install(TARGETS ${libraries} EXPORT hipress ARCHIVE DESTINATION ${CMAKE_INSTALL_LIBDIR})
install(TARGETS hipress_c EXPORT hipress LIBRARY DESTINATION ${CMAKE_INSTALL_LIBDIR})
install(TARGETS ${tools} RUNTIME DESTINATION ${CMAKE_INSTALL_BINDIR})
foreach(folder io models kernels transport job casync traces costs plans runtime sim planner sweep replay profiler report requests)
  install(DIRECTORY ${PROJECT_SOURCE_DIR}/${folder} DESTINATION ${CMAKE_INSTALL_INCLUDEDIR}/hipress
          FILES_MATCHING PATTERN "*.hpp" PATTERN "hipress.h" PATTERN "profiles" EXCLUDE)
endforeach()
# Data lies in share/hipress as in the source tree, where io::data_file looks for it.
install(DIRECTORY ${PROJECT_SOURCE_DIR}/models/ DESTINATION ${CMAKE_INSTALL_DATADIR}/hipress/models
        COMPONENT data FILES_MATCHING PATTERN "*.yaml")
install(DIRECTORY ${PROJECT_SOURCE_DIR}/profiler/profiles DESTINATION ${CMAKE_INSTALL_DATADIR}/hipress/profiler
        COMPONENT data FILES_MATCHING PATTERN "*.yaml")
install(DIRECTORY ${PROJECT_SOURCE_DIR}/machines/ DESTINATION ${CMAKE_INSTALL_DATADIR}/hipress/machines
        COMPONENT data FILES_MATCHING PATTERN "*.yaml")
# Headers that code generated at run time includes, and the programs of the shipped algorithms.
install(DIRECTORY ${PROJECT_SOURCE_DIR}/kernels DESTINATION ${CMAKE_INSTALL_DATADIR}/hipress
        COMPONENT data FILES_MATCHING PATTERN "*.hpp" PATTERN "*.cuh" PATTERN "*.pse" PATTERN "compll" EXCLUDE)
# Templates that hipress-compll fills in for a framework.
install(DIRECTORY ${PROJECT_SOURCE_DIR}/kernels/compll/wrappers
        DESTINATION ${CMAKE_INSTALL_DATADIR}/hipress/kernels/compll COMPONENT data)
install(EXPORT hipress NAMESPACE hipress:: DESTINATION ${CMAKE_INSTALL_LIBDIR}/cmake/hipress FILE hipressTargets.cmake)
set(hipress_DATA_DIR ${CMAKE_INSTALL_DATADIR}/hipress)
configure_package_config_file(${PROJECT_SOURCE_DIR}/cmake/hipressConfig.cmake.in
  ${PROJECT_BINARY_DIR}/hipressConfig.cmake INSTALL_DESTINATION ${CMAKE_INSTALL_LIBDIR}/cmake/hipress
  PATH_VARS hipress_DATA_DIR)
write_basic_package_version_file(${PROJECT_BINARY_DIR}/hipressConfigVersion.cmake COMPATIBILITY SameMinorVersion)
install(FILES ${PROJECT_BINARY_DIR}/hipressConfig.cmake ${PROJECT_BINARY_DIR}/hipressConfigVersion.cmake
        DESTINATION ${CMAKE_INSTALL_LIBDIR}/cmake/hipress)

# The C library for pkg-config, wherever --prefix puts it.
install(CODE "
  set(PROJECT_DESCRIPTION [[${PROJECT_DESCRIPTION}]])
  set(PROJECT_VERSION ${PROJECT_VERSION})
  set(CMAKE_INSTALL_LIBDIR ${CMAKE_INSTALL_LIBDIR})
  set(CMAKE_INSTALL_INCLUDEDIR ${CMAKE_INSTALL_INCLUDEDIR})
  configure_file(\"${PROJECT_SOURCE_DIR}/cmake/hipress.pc.in\"
                 \"\$ENV{DESTDIR}\${CMAKE_INSTALL_PREFIX}/${CMAKE_INSTALL_LIBDIR}/pkgconfig/hipress.pc\" @ONLY)")

# Man pages and completions of shells. Builds of packages write them; other builds install those that scripts/docs.sh --man has
# written, if any.
set(reference ${PROJECT_SOURCE_DIR}/build/docs/share)
if(HIPRESS_PACKAGE)
  find_package(Python3 REQUIRED COMPONENTS Interpreter)
  set(reference ${PROJECT_BINARY_DIR}/share)
  add_custom_target(hipress_reference ALL DEPENDS tools VERBATIM COMMAND ${Python3_EXECUTABLE} -B
    ${PROJECT_SOURCE_DIR}/scripts/write_reference.py man ${reference} --tools ${PROJECT_BINARY_DIR}/bin)
endif()
if(NOT SKBUILD)
  install(DIRECTORY ${reference}/ DESTINATION ${CMAKE_INSTALL_DATADIR} OPTIONAL)
endif()

# hipress_install_sbom(COMPONENT): writes the bill of materials of a component, and the licences of the libraries in it.
function(hipress_install_sbom component)
  find_package(Python3 REQUIRED COMPONENTS Interpreter)
  set(compiled_in "")
  if(OPENSSL_USE_STATIC_LIBS)
    set(compiled_in "--compiled-in libssl-dev")
  endif()
  install(CODE "
    set(prefix \"\$ENV{DESTDIR}\${CMAKE_INSTALL_PREFIX}\")
    execute_process(COMMAND \"${Python3_EXECUTABLE}\" -B \"${PROJECT_SOURCE_DIR}/scripts/sbom.py\" \"\${prefix}\"
      --output \"\${prefix}/share/hipress/sbom.spdx.json\" --licenses \"\${prefix}/share/hipress/licenses\" ${compiled_in}
      COMMAND_ERROR_IS_FATAL ANY)" COMPONENT ${component} EXCLUDE_FROM_ALL)
endfunction()

# The Python package finds the library from this folder; a wheel brings its own copy.
if(NOT SKBUILD)
  install(DIRECTORY ${PROJECT_SOURCE_DIR}/python/hipress DESTINATION ${CMAKE_INSTALL_DATADIR}/hipress/python
          FILES_MATCHING PATTERN "*.py" PATTERN "*.pyi" PATTERN "py.typed")
  install(FILES ${hipress_python_version} DESTINATION ${CMAKE_INSTALL_DATADIR}/hipress/python/hipress)
endif()
