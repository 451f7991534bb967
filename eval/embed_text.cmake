# cmake -DINPUT=file -DOUTPUT=file.cpp -DSYMBOL=name -P embed_text.cmake
# Writes a C++ file that defines `const char* const snapkv::eval::SYMBOL` with the input's text.
file(READ ${INPUT} text)
file(WRITE ${OUTPUT} "// Generated from ${SYMBOL}'s file by embed_text.cmake; do not edit.
namespace snapkv::eval {
extern const char* const ${SYMBOL};
const char* const ${SYMBOL} = R\"embedded(${text})embedded\";
}  // namespace snapkv::eval
")
