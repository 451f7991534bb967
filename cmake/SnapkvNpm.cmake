# snapkv_find_npm(PROBLEM): finds NODE_EXECUTABLE, at least version 18, and NPM_EXECUTABLE. Sets PROBLEM
# to the reason why it cannot, or to nothing.
function(snapkv_find_npm problem)
  set(${problem} "" PARENT_SCOPE)
  find_program(NODE_EXECUTABLE NAMES node nodejs DOC "Node.js")
  find_program(NPM_EXECUTABLE NAMES npm DOC "npm")
  if(NOT NODE_EXECUTABLE OR NOT NPM_EXECUTABLE)
    set(${problem} "Node.js or npm was not found" PARENT_SCOPE)
    return()
  endif()
  execute_process(COMMAND ${NODE_EXECUTABLE} --version OUTPUT_VARIABLE version
    OUTPUT_STRIP_TRAILING_WHITESPACE)
  string(REGEX REPLACE "^v" "" version "${version}")
  if(version VERSION_LESS 18)
    set(${problem} "${NODE_EXECUTABLE} is version ${version}, 18 is needed" PARENT_SCOPE)
  endif()
endfunction()
