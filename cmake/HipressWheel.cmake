# The wheel that pip makes and installs, below the folder of the package `hipress`: no launchers, and of other libraries only
# those that not every Linux has.
#   bin/             the tools, which look for libraries in ../lib/hipress
#   lib/hipress/     libhipress.so, and what it and the tools need
#   share/hipress/   models, profiles, …, the bill of materials and licences
get_property(tools GLOBAL PROPERTY HIPRESS_TOOLS)
set_target_properties(${tools} PROPERTIES INSTALL_RPATH "$ORIGIN/../lib/hipress")
# A wheel has no links: one name for each library. Python alone loads this one.
set_target_properties(hipress_c PROPERTIES INSTALL_RPATH "$ORIGIN")
set_property(TARGET hipress_c PROPERTY VERSION)
set_property(TARGET hipress_c PROPERTY SOVERSION)
foreach(target ${tools} hipress_c)
  target_link_options(${target} PRIVATE LINKER:--disable-new-dtags)  # a run path also for what those libraries need
  list(APPEND files $<TARGET_FILE:${target}>)
endforeach()
install(TARGETS ${tools} RUNTIME DESTINATION bin COMPONENT wheel)
install(TARGETS hipress_c hipress_all LIBRARY DESTINATION lib/hipress COMPONENT wheel)
install(FILES ${hipress_python_version} DESTINATION . COMPONENT wheel)
install(FILES ${PROJECT_SOURCE_DIR}/LICENSE DESTINATION share/hipress COMPONENT wheel)
install(DIRECTORY ${PROJECT_BINARY_DIR}/share/ DESTINATION ${SKBUILD_DATA_DIR}/share COMPONENT wheel)
install(CODE "
  set(PROGRAMS ${files})
  set(SHARED $<TARGET_FILE:hipress_all>)
  set(WHEEL TRUE)
  set(FOLDER \"\$ENV{DESTDIR}\${CMAKE_INSTALL_PREFIX}/lib/hipress\")
  include(\"${PROJECT_SOURCE_DIR}/cmake/bundle/libraries.cmake\")" COMPONENT wheel)
hipress_install_sbom(wheel)
