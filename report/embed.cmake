# Writes the page's files as C++ texts: cmake -DFOLDER=… -DOUTPUT=page_files.cpp -P embed.cmake

set(source "// Made by embed.cmake of the page's files.\n#include \"report/page_files.hpp\"\n\nnamespace hipress::report {\n")
foreach(file Html Css Js)
  string(TOLOWER ${file} ending)
  file(READ ${FOLDER}/page.${ending} text)
  string(FIND "${text}" ")page\"" end_of_text)
  if(NOT end_of_text EQUAL -1)
    message(FATAL_ERROR "page.${ending}: ')page\"' would end the C++ text that it becomes: write it otherwise")
  endif()
  string(APPEND source "const std::string_view kPage${file} = R\"page(${text})page\";\n")
endforeach()
file(WRITE ${OUTPUT} "${source}}  // namespace hipress::report\n")
