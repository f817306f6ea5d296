# Usage: cmake -DBUILD_DIR=… -DCONSUMER_DIR=… -DWORK_DIR=… -DCXX_COMPILER=… -DCXX_FLAGS=… -DBUILD_TYPE=… -P …

# run(NAME command…) sets NAME to the output of a command. If the command fails, so does the test.
function(run name)
  execute_process(COMMAND ${ARGN} RESULT_VARIABLE status OUTPUT_VARIABLE output ERROR_VARIABLE errors)
  if(NOT status EQUAL 0)
    string(REPLACE ";" " " command "${ARGN}")
    message(FATAL_ERROR "${command}: ${status}\n${output}${errors}")
  endif()
  set(${name} "${output}" PARENT_SCOPE)
endfunction()

# The C compiler must be of the same family, since the sanitizers of C and C++ must match.
string(REGEX REPLACE "clang\\+\\+" "clang" c_compiler "${CXX_COMPILER}")
string(REGEX REPLACE "g\\+\\+" "gcc" c_compiler "${c_compiler}")
string(REGEX REPLACE "/c\\+\\+$" "/cc" c_compiler "${c_compiler}")

file(REMOVE_RECURSE ${WORK_DIR})
run(ignored ${CMAKE_COMMAND} --install ${BUILD_DIR} --prefix ${WORK_DIR}/prefix)
run(ignored ${CMAKE_COMMAND} -S ${CONSUMER_DIR} -B ${WORK_DIR}/build -G Ninja
  -DCMAKE_PREFIX_PATH=${WORK_DIR}/prefix -DCMAKE_CXX_COMPILER=${CXX_COMPILER} -DCMAKE_CXX_FLAGS=${CXX_FLAGS}
  -DCMAKE_C_COMPILER=${c_compiler} -DCMAKE_C_FLAGS=${CXX_FLAGS}
  -DCMAKE_BUILD_TYPE=${BUILD_TYPE})
run(ignored ${CMAKE_COMMAND} --build ${WORK_DIR}/build)
run(printed ${WORK_DIR}/build/consumer)
# main.cpp derives both numbers.
if(NOT printed STREQUAL "9 tasks, 3024000 ps\n")
  message(FATAL_ERROR "the consumer printed '${printed}'")
endif()

run(printed ${WORK_DIR}/build/plan)
if(NOT printed STREQUAL "38 gradients: compress\n")
  message(FATAL_ERROR "plan printed '${printed}'")
endif()

# Headers of the libraries must not include those of command lines.
file(GLOB_RECURSE headers ${WORK_DIR}/prefix/include/*.hpp)
foreach(header ${headers})
  file(STRINGS ${header} found REGEX "#include <(CLI|spdlog)/")
  if(found)
    message(FATAL_ERROR "${header}: ${found}")
  endif()
endforeach()

# Programs that synchronise with the installed runtime: the C++ one uses its libraries, the C one libhipress.so.
foreach(case "synchronise;the reference's bits" "synchronise;kill;every wait named rank 2" "average;averaged")
  list(POP_FRONT case program)
  list(POP_BACK case expected)
  run(printed ${WORK_DIR}/build/${program} ${case})
  if(NOT printed STREQUAL "${expected}\n")
    message(FATAL_ERROR "${program} printed '${printed}'")
  endif()
endforeach()

# The program of docs/c-api.md is built as the page says.
file(READ ${CMAKE_CURRENT_LIST_DIR}/../../docs/c-api.md page)
string(REGEX REPLACE "^.*```c\n" "" page "${page}")
string(FIND "${page}" "\n```" end)
string(SUBSTRING "${page}" 0 ${end} program)
file(WRITE ${WORK_DIR}/average.c "${program}\n")
file(GLOB library ${WORK_DIR}/prefix/lib*/libhipress.so ${WORK_DIR}/prefix/lib/*/libhipress.so)
cmake_path(GET library PARENT_PATH folder)
separate_arguments(flags UNIX_COMMAND "${CXX_FLAGS}")
run(ignored ${c_compiler} ${flags} -I${WORK_DIR}/prefix/include/hipress ${WORK_DIR}/average.c -L${folder} -lhipress
  -Wl,-rpath,${folder} -o ${WORK_DIR}/documented)
find_program(pkg_config pkg-config)
if(pkg_config)
  run(printed ${CMAKE_COMMAND} -E env PKG_CONFIG_PATH=${folder}/pkgconfig ${pkg_config} --cflags --libs hipress)
  string(STRIP "${printed}" printed)
  if(NOT printed STREQUAL "-I${WORK_DIR}/prefix/include/hipress -L${folder} -lhipress")
    message(FATAL_ERROR "pkg-config printed '${printed}'")
  endif()
endif()
file(MAKE_DIRECTORY ${WORK_DIR}/meeting)
run(printed sh -c "'${WORK_DIR}/documented' 0 '${WORK_DIR}/meeting' & '${WORK_DIR}/documented' 1 '${WORK_DIR}/meeting' && wait $!")
if(NOT printed STREQUAL "2\n2\n")
  message(FATAL_ERROR "the program of docs/c-api.md printed '${printed}'")
endif()

# An installed compiler finds its wrappers, and the files that they include.
foreach(file kernels/compll/wrappers/pytorch.cpp kernels/export/operator.hpp)
  if(NOT EXISTS ${WORK_DIR}/prefix/share/hipress/${file})
    message(FATAL_ERROR "${file} was not installed")
  endif()
endforeach()

# An installed tool finds the installed models.
run(printed ${WORK_DIR}/prefix/bin/hipress-plan --input vgg19 --topology PS --nnodes 4
  --output ${WORK_DIR}/SeCoPaPlan.txt)
file(STRINGS ${WORK_DIR}/SeCoPaPlan.txt lines)
list(LENGTH lines gradients)
if(NOT gradients EQUAL 38)
  message(FATAL_ERROR "the plan for VGG19's 38 gradients has ${gradients} lines")
endif()
