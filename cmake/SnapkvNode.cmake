# The addon for Node.js (node/) and the package around it, which `make node` makes. SNAPKV_NODE: OFF, ON
# (an error where npm cannot install the headers of Node-API), AUTO (without the addon there).
set(SNAPKV_NODE OFF CACHE STRING "The addon for Node.js: AUTO, ON or OFF")
set_property(CACHE SNAPKV_NODE PROPERTY STRINGS AUTO ON OFF)
set(SNAPKV_NODE_PROBLEM "SNAPKV_NODE is OFF")  # why there is no addon
if(NOT SNAPKV_NODE)
  return()
endif()

set(SNAPKV_NODE_BUILD ${PROJECT_BINARY_DIR}/node)
set(SNAPKV_NODE_MODULES ${SNAPKV_NODE_BUILD}/npm/node_modules)  # for building and testing

# Installs what node/package.json names for development, unless it is there.
function(snapkv_install_node_packages problem)
  set(folder ${SNAPKV_NODE_BUILD}/npm)
  file(SHA256 ${PROJECT_SOURCE_DIR}/node/package-lock.json wanted)
  set(installed "")
  if(EXISTS ${folder}/installed)
    file(READ ${folder}/installed installed)
  endif()
  set_property(DIRECTORY APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS
    ${PROJECT_SOURCE_DIR}/node/package-lock.json)
  if(installed STREQUAL wanted)
    return()
  endif()
  file(COPY ${PROJECT_SOURCE_DIR}/node/package.json ${PROJECT_SOURCE_DIR}/node/package-lock.json
    ${PROJECT_SOURCE_DIR}/node/.npmrc DESTINATION ${folder})
  execute_process(COMMAND ${NPM_EXECUTABLE} ci --include=dev --ignore-scripts --fetch-retries=1
    WORKING_DIRECTORY ${folder} TIMEOUT 300 RESULT_VARIABLE status OUTPUT_VARIABLE out
    ERROR_VARIABLE out)
  if(status EQUAL 0)
    file(WRITE ${folder}/installed ${wanted})
  else()
    set(${problem} "npm could not install its packages (network?): ${out}" PARENT_SCOPE)
  endif()
endfunction()

set(problem "")
if(NOT SNAPKV_C_LIBRARY)
  set(problem "it needs SNAPKV_C_LIBRARY")
elseif(SNAPKV_SANITIZE)
  set(problem "Node.js cannot load a library with sanitizers")
elseif(NOT CMAKE_SYSTEM_NAME STREQUAL "Linux")
  set(problem "the package is made for Linux")
else()
  include(SnapkvNpm)
  snapkv_find_npm(problem)
  if(NOT problem)
    snapkv_install_node_packages(problem)
  endif()
endif()
set(SNAPKV_NODE_PROBLEM "${problem}")
if(problem)
  if(NOT SNAPKV_NODE STREQUAL "AUTO")
    message(FATAL_ERROR "SNAPKV_NODE=${SNAPKV_NODE}: ${problem}")
  endif()
  message(STATUS "Addon for Node.js: not built: ${problem}")
  return()
endif()
message(STATUS "Addon for Node.js: built")

add_subdirectory(node)

string(TOLOWER "${CMAKE_SYSTEM_PROCESSOR}" cpu)  # as process.arch calls it
if(cpu MATCHES "^(x86_64|amd64)$")
  set(cpu x64)
elseif(cpu MATCHES "^(aarch64|arm64)$")
  set(cpu arm64)
endif()
get_target_property(json_dirs nlohmann_json::nlohmann_json INTERFACE_INCLUDE_DIRECTORIES)
list(GET json_dirs 0 json_dir)
set(SNAPKV_NODE_TARBALL ${SNAPKV_NODE_BUILD}/snapkv-cpp-${PROJECT_VERSION}.tgz)
set(SNAPKV_NODE_PACK ${CMAKE_COMMAND} -DSOURCE=${PROJECT_SOURCE_DIR} -DBUILD=${SNAPKV_NODE_BUILD}
  -DADDON=$<TARGET_FILE:snapkv_node> -DLIBRARY=$<TARGET_FILE:snapkv_c>
  -DSONAME=$<TARGET_SONAME_FILE_NAME:snapkv_c> -DSTRIP=${CMAKE_STRIP} -DVERSION=${PROJECT_VERSION}
  -DCPU=${cpu} -DNPM=${NPM_EXECUTABLE} -DMODULES=${SNAPKV_NODE_MODULES}
  -DJSON_HEADER=${json_dir}/nlohmann/json.hpp -DXXHASH_HEADER=${XXHASH_INCLUDE_DIR}/xxhash.h
  -P ${PROJECT_SOURCE_DIR}/cmake/pack_node.cmake)
add_custom_target(snapkv_node_package COMMAND ${SNAPKV_NODE_PACK} DEPENDS snapkv_node snapkv_c
  COMMENT "Packing ${SNAPKV_NODE_TARBALL}" VERBATIM)
