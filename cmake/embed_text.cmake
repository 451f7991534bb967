# cmake -DINPUT=file -DOUTPUT=file.cpp -DSYMBOL=ns::name -P embed_text.cmake
# Writes a C++ file that defines `const char* const ns::name` as the text of the input, or ""
# without an input.
string(REGEX MATCH "^(.*)::([^:]+)$" matched "${SYMBOL}")
set(namespace ${CMAKE_MATCH_1})
set(name ${CMAKE_MATCH_2})
set(text "")
if(INPUT)
  file(READ ${INPUT} text)
endif()
file(WRITE ${OUTPUT} "// Generated from ${name}'s file by embed_text.cmake; do not edit.
#if defined(__clang__)
#pragma clang diagnostic ignored \"-Woverlength-strings\"
#endif
namespace ${namespace} {
extern const char* const ${name};
const char* const ${name} = R\"embedded(${text})embedded\";
}  // namespace ${namespace}
")
