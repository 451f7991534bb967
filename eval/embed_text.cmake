# cmake -DINPUT=file -DOUTPUT=file.cpp -DSYMBOL=name -P embed_text.cmake
# Writes a C++ file that defines `const char* const snapkv::eval::SYMBOL` with the input's text, ""
# without an input.
set(text "")
if(INPUT)
  file(READ ${INPUT} text)
endif()
file(WRITE ${OUTPUT} "// Generated from ${SYMBOL}'s file by embed_text.cmake; do not edit.
#if defined(__clang__)
#pragma clang diagnostic ignored \"-Woverlength-strings\"
#endif
namespace snapkv::eval {
extern const char* const ${SYMBOL};
const char* const ${SYMBOL} = R\"embedded(${text})embedded\";
}  // namespace snapkv::eval
")
