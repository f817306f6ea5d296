# Content of the wheel that pip makes and installs, below the folder of the package `hipress`. It has no launchers, and no libraries
# that every Linux has.
#   bin/             the tools, which look for libraries in ../lib/hipress
#   lib/hipress/     libhipress.so, and what it and the tools need
#   share/hipress/   models, profiles, …, the bill of materials and licences
get_property(tools GLOBAL PROPERTY HIPRESS_TOOLS)
set_target_properties(${tools} PROPERTIES INSTALL_RPATH "$ORIGIN/../lib/hipress")
# A wheel has no links, so each library has one name. Only Python loads libhipress.so.
set_target_properties(hipress_c PROPERTIES INSTALL_RPATH "$ORIGIN")
set_property(TARGET hipress_c PROPERTY VERSION)
set_property(TARGET hipress_c PROPERTY SOVERSION)
foreach(target ${tools} hipress_c)
  target_link_options(${target} PRIVATE LINKER:--disable-new-dtags)  # an RPATH also applies to the libraries of libraries
  list(APPEND files $<TARGET_FILE:${target}>)
endforeach()
install(TARGETS ${tools} RUNTIME DESTINATION bin COMPONENT wheel)
install(TARGETS hipress_c hipress_all LIBRARY DESTINATION lib/hipress COMPONENT wheel)
install(FILES ${hipress_python_version} DESTINATION . COMPONENT wheel)
install(FILES ${PROJECT_SOURCE_DIR}/LICENSE DESTINATION share/hipress COMPONENT wheel)
install(DIRECTORY ${PROJECT_BINARY_DIR}/share/ DESTINATION ${SKBUILD_DATA_DIR}/share COMPONENT wheel)
install(CODE "
  set(PROGRAMS \"${files}\")
  set(SHARED \"$<TARGET_FILE:hipress_all>\")
  set(WHEEL TRUE)
  set(FOLDER \"\$ENV{DESTDIR}\${CMAKE_INSTALL_PREFIX}/lib/hipress\")
  include(\"${PROJECT_SOURCE_DIR}/cmake/bundle/libraries.cmake\")" COMPONENT wheel)
hipress_install_sbom(wheel)
