# Run by cpack, which has staged each component of the bundle in a folder of its own: packs all of them anew, sorted, with one time
# and owner, so that the same files give the same bytes.
if(DEFINED ENV{SOURCE_DATE_EPOCH})
  set(time $ENV{SOURCE_DATE_EPOCH})
else()
  string(TIMESTAMP time "%s" UTC)
endif()
foreach(archive ${CPACK_PACKAGE_FILES})
  get_filename_component(name ${archive} NAME)
  string(REGEX REPLACE "[.]tar[.]gz$" "" folder ${name})
  file(GLOB components ${CPACK_TEMPORARY_DIRECTORY}/*/${folder})
  file(COPY ${components} DESTINATION ${CPACK_TEMPORARY_DIRECTORY})
  execute_process(COMMAND tar -C ${CPACK_TEMPORARY_DIRECTORY} --sort=name --mtime=@${time} --owner=0 --group=0 --numeric-owner
                          --mode=u=rwX,go=rX --format=gnu -I "gzip -9n" -cf ${archive} ${folder} COMMAND_ERROR_IS_FATAL ANY)
endforeach()
