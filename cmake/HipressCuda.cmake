# Decides whether the CUDA back end is built. Included by HipressDependencies.cmake.

set(hipress_least_cuda 12.4)
set(hipress_gpu_devices /dev/nvidia[0-9]*)

# hipress_cuda_choice(RESULT): turns HIPRESS_CUDA into AUTO, ON or OFF. HIPRESS_CUDA may also be in small letters, or any of CMake's
# booleans. GPU becomes AUTO if the driver shows a GPU, otherwise OFF.
function(hipress_cuda_choice result)
  string(TOUPPER "${HIPRESS_CUDA}" choice)
  if(choice MATCHES "^(ON|1|TRUE|YES|Y)$")
    set(choice ON)
  elseif(choice MATCHES "^(OFF|0|FALSE|NO|N)$")
    set(choice OFF)
  elseif(choice STREQUAL "GPU")
    file(GLOB gpus ${hipress_gpu_devices})
    set(choice OFF)
    if(gpus)
      set(choice AUTO)
    endif()
  elseif(NOT choice STREQUAL "AUTO")
    message(FATAL_ERROR "HIPRESS_CUDA is '${HIPRESS_CUDA}'; it takes AUTO, GPU, ON or OFF")
  endif()
  set(${result} ${choice} PARENT_SCOPE)
endfunction()

# hipress_takes_nvcc(RESULT CHOICE): true if CMAKE_CUDA_COMPILER exists and is new enough. With ON, anything else is an error; with
# AUTO, a warning names a compiler that is too old, such as Debian's own.
function(hipress_takes_nvcc result choice)
  string(CONCAT remedy "put nvcc of CUDA ${hipress_least_cuda} or later on the PATH, set CMAKE_CUDA_COMPILER, or "
                       "configure with -DHIPRESS_CUDA=AUTO")
  set(${result} FALSE PARENT_SCOPE)
  if(NOT CMAKE_CUDA_COMPILER)
    if(choice STREQUAL "ON")
      message(FATAL_ERROR "HIPRESS_CUDA=ON, but no CUDA compiler was found: ${remedy}")
    endif()
    return()
  endif()
  execute_process(COMMAND ${CMAKE_CUDA_COMPILER} --version OUTPUT_VARIABLE said ERROR_QUIET)
  if(said MATCHES "release ([0-9]+[.][0-9]+)" AND CMAKE_MATCH_1 VERSION_LESS hipress_least_cuda)
    if(choice STREQUAL "ON")
      message(FATAL_ERROR "HIPRESS_CUDA=ON, but ${CMAKE_CUDA_COMPILER} is of CUDA ${CMAKE_MATCH_1}: ${remedy}")
    endif()
    message(WARNING "CUDA ${CMAKE_MATCH_1} (${CMAKE_CUDA_COMPILER}) is older than ${hipress_least_cuda}: "
                    "built without the CUDA back end")
    return()
  endif()
  set(${result} TRUE PARENT_SCOPE)
endfunction()
