# Copies into the bundle the shared libraries that its programs need. Variables: PROGRAMS (list), SHARED (list of shared libraries),
# FOLDER (destination), WHEEL (true: only libraries for FOLDER itself, each under one name). They go to these folders:
#   FOLDER           all libraries that are not named below
#   FOLDER/ibverbs   libibverbs and what it needs; a cluster's own, made for its adapters, is better
#   FOLDER/gcc       the C++ library and gcc's; Debian 12's need glibc 2.36, libhipress.so only glibc 2.35, so a machine's
#                    Python loads the machine's own C++ library (python/hipress/_library.py)
#   FOLDER/glibc     the C library with its loader, for machines with an older one
# Left out: the CUDA driver's libraries and NCCL, which belong to the machine.
file(GET_RUNTIME_DEPENDENCIES EXECUTABLES ${PROGRAMS} LIBRARIES ${SHARED} RESOLVED_DEPENDENCIES_VAR libraries
     UNRESOLVED_DEPENDENCIES_VAR missing PRE_EXCLUDE_REGEXES "^libcuda\\.so" "^libnvidia-" "^libnccl\\.so")
if(missing)
  message(FATAL_ERROR "the bundle lacks ${missing}")
endif()

set(glibc "^(ld-linux-x86-64|libc|libm|libdl|libpthread|librt|libresolv|libutil|libnss_[a-z]+)\\.so")
foreach(library ${libraries})
  get_filename_component(name ${library} NAME)
  if(name MATCHES "${glibc}")
    if(name MATCHES "^libc\\.so")
      get_filename_component(glibc_folder ${library} DIRECTORY)
    endif()
  elseif(name MATCHES "^libhipress(_all)?\\.so")
    continue()  # HipressBundle.cmake installs them, with $ORIGIN for their run path
  elseif(WHEEL AND name MATCHES "^lib(stdc\\+\\+|gcc_s)\\.so")
    continue()  # every machine with glibc 2.35 has new enough ones
  elseif(WHEEL)
    file(REAL_PATH ${library} file)
    file(COPY_FILE ${file} ${FOLDER}/${name})
  elseif(name MATCHES "^lib(stdc\\+\\+|gcc_s)\\.so")
    file(COPY ${library} DESTINATION ${FOLDER}/gcc FOLLOW_SYMLINK_CHAIN)
  elseif(name MATCHES "^lib(ibverbs|nl-)")
    file(COPY ${library} DESTINATION ${FOLDER}/ibverbs FOLLOW_SYMLINK_CHAIN)
  else()
    file(COPY ${library} DESTINATION ${FOLDER} FOLLOW_SYMLINK_CHAIN)
  endif()
endforeach()
if(WHEEL)
  return()
endif()
# These are copied even if only the machine's own libraries need them: parts of one C library do not work with those of another.
foreach(name ld-linux-x86-64.so.2 libc.so.6 libm.so.6 libdl.so.2 libpthread.so.0 librt.so.1 libresolv.so.2 libutil.so.1
             libnss_dns.so.2 libnss_files.so.2)
  file(COPY ${glibc_folder}/${name} DESTINATION ${FOLDER}/glibc FOLLOW_SYMLINK_CHAIN)
endforeach()
