# snapkv_embed(VARIABLE SYMBOL file): makes a C++ file that defines SYMBOL (snapkv::eval::kName) as
# the text of a file, or "" without a file. VARIABLE is set to its path, a source for targets of
# this folder.
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
