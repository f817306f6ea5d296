# Writes `#define HIPRESS_GIT_HASH "1a2b3c4"`, the commit checked out, or "unknown" where there is none. Run by every
# build; a header that says so already is left alone, so that nothing is compiled again.
#   cmake -DGIT=git -DSOURCE=FOLDER -DHEADER=FILE -P git_hash.cmake
set(git_hash "")
if(GIT)
  execute_process(COMMAND "${GIT}" rev-parse --short HEAD WORKING_DIRECTORY "${SOURCE}"
                  OUTPUT_VARIABLE git_hash OUTPUT_STRIP_TRAILING_WHITESPACE ERROR_QUIET)
endif()
if(NOT git_hash)
  set(git_hash unknown)
endif()
set(text "#define HIPRESS_GIT_HASH \"${git_hash}\"\n")
set(before "")
if(EXISTS "${HEADER}")
  file(READ "${HEADER}" before)
endif()
if(NOT text STREQUAL before)
  file(WRITE "${HEADER}" "${text}")
endif()
