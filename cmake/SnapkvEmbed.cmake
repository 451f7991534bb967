# snapkv_embed(VARIABLE SYMBOL file): a C++ file that defines SYMBOL (snapkv::eval::kName) with the
# file's text; no file: "". VARIABLE becomes its path, a source of a target of this folder.
function(snapkv_embed variable symbol file)
  string(REGEX REPLACE "^.*::" "" name ${symbol})
  set(cpp ${CMAKE_CURRENT_BINARY_DIR}/${name}.cpp)
  set(script ${PROJECT_SOURCE_DIR}/cmake/embed_text.cmake)
  add_custom_command(OUTPUT ${cpp}
    COMMAND ${CMAKE_COMMAND} -DINPUT=${file} -DOUTPUT=${cpp} -DSYMBOL=${symbol} -P ${script}
    DEPENDS ${file} ${script}
    COMMENT "Embedding ${name}" VERBATIM)
  set(${variable} ${cpp} PARENT_SCOPE)
endfunction()
