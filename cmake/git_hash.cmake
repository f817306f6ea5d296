# Writes a header, `#define HIPRESS_GIT_HASH "1a2b3c4d5e"`, and a Python module that names version and commit. The commit is the one
# checked out, or that of the archive (.git_archival), or "unknown". Every build runs this script. Files that would not change are
# left alone, so that nothing is compiled again.
#   cmake -DGIT=git -DSOURCE=FOLDER -DVERSION=0.2.0 -DHEADER=FILE -DMODULE=FILE -P git_hash.cmake
set(git_hash "")
if(GIT)
  execute_process(COMMAND "${GIT}" rev-parse --short=10 HEAD WORKING_DIRECTORY "${SOURCE}"
                  OUTPUT_VARIABLE git_hash OUTPUT_STRIP_TRAILING_WHITESPACE ERROR_QUIET)
endif()
if(NOT git_hash AND EXISTS "${SOURCE}/.git_archival")
  # `git archive` has replaced $Format:%H$ there.
  file(STRINGS "${SOURCE}/.git_archival" git_hash REGEX "^[0-9a-f]+$")
  string(SUBSTRING "${git_hash}" 0 10 git_hash)
endif()
if(NOT git_hash)
  set(git_hash unknown)
endif()

# write(FILE TEXT): writes the text, unless the file already has it.
function(write file text)
  set(before "")
  if(EXISTS "${file}")
    file(READ "${file}" before)
  endif()
  if(NOT text STREQUAL before)
    file(WRITE "${file}" "${text}")
  endif()
endfunction()

write("${HEADER}" "#define HIPRESS_GIT_HASH \"${git_hash}\"\n")
write("${MODULE}" "\"\"\"Version and commit of this build.\"\"\"\n\nVERSION = \"${VERSION}\"\nCOMMIT = \"${git_hash}\"\n")
