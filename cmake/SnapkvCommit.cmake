# snapkv_commit(VARIABLE SYMBOL TARGET): writes a C++ file that defines SYMBOL (snapkv::eval::kName)
# as the Git commit of the sources ("unknown" outside Git). TARGET updates it in every build; it is
# recompiled only when the commit has changed. VARIABLE is set to its path.
function(snapkv_commit variable symbol target)
  string(REGEX REPLACE "^.*::" "" name ${symbol})
  set(cpp ${CMAKE_CURRENT_BINARY_DIR}/${name}.cpp)
  add_custom_target(${target}
    COMMAND ${CMAKE_COMMAND} -DSOURCE_DIR=${PROJECT_SOURCE_DIR} -DOUTPUT=${cpp} -DSYMBOL=${symbol}
      -P ${PROJECT_SOURCE_DIR}/cmake/write_commit.cmake
    BYPRODUCTS ${cpp}
    COMMENT "Looking up the commit" VERBATIM)
  set(${variable} ${cpp} PARENT_SCOPE)
endfunction()
