# Installs the build, moves the installed tree to another place, builds tests/packaging/consumer
# with it and runs the result:
#   cmake -DBUILD_DIR= -DWORK_DIR= -DCONSUMER_DIR= -DLIBDIR= -DGENERATOR= -DCXX= -DCXX_FLAGS= -P ...
function(run)
  execute_process(COMMAND ${ARGN} RESULT_VARIABLE status OUTPUT_VARIABLE out ERROR_VARIABLE err)
  if(NOT status EQUAL 0)
    string(JOIN " " command ${ARGN})
    message(FATAL_ERROR "${command}\nended with ${status}\n${out}\n${err}")
  endif()
  set(output "${out}" PARENT_SCOPE)
endfunction()

file(REMOVE_RECURSE ${WORK_DIR})
file(MAKE_DIRECTORY ${WORK_DIR})
run(${CMAKE_COMMAND} --install ${BUILD_DIR} --prefix ${WORK_DIR}/first)
file(RENAME ${WORK_DIR}/first ${WORK_DIR}/moved)

foreach(file bin/snapkv include/snapkv/engine.h share/snapkv/needle.gguf)
  if(NOT EXISTS ${WORK_DIR}/moved/${file})
    message(FATAL_ERROR "${file} was not installed")
  endif()
endforeach()

# The package must not contain the path where it was built.
file(GLOB package_files ${WORK_DIR}/moved/${LIBDIR}/cmake/snapkv/*.cmake)
if(NOT package_files)
  message(FATAL_ERROR "no CMake package under ${LIBDIR}/cmake/snapkv")
endif()
foreach(file ${package_files})
  file(READ ${file} text)
  foreach(path ${BUILD_DIR} ${WORK_DIR} ${SOURCE_DIR}/)
    string(FIND "${text}" "${path}" at)
    if(NOT at EQUAL -1)
      message(FATAL_ERROR "${file} mentions ${path}")
    endif()
  endforeach()
endforeach()

run(${CMAKE_COMMAND} -S ${CONSUMER_DIR} -B ${WORK_DIR}/consumer -G ${GENERATOR}
  -DCMAKE_BUILD_TYPE=Release -DCMAKE_CXX_COMPILER=${CXX} -DCMAKE_CXX_FLAGS=${CXX_FLAGS}
  -DCMAKE_PREFIX_PATH=${WORK_DIR}/moved -DCMAKE_FIND_USE_PACKAGE_REGISTRY=OFF)
file(STRINGS ${WORK_DIR}/consumer/CMakeCache.txt found REGEX "^snapkv_DIR:")
if(NOT found MATCHES "=${WORK_DIR}/moved/")
  message(FATAL_ERROR "the consumer found another snapkv: ${found}")
endif()
run(${CMAKE_COMMAND} --build ${WORK_DIR}/consumer)
run(${WORK_DIR}/consumer/consumer)
if(NOT output STREQUAL " 40718.\n")
  message(FATAL_ERROR "the consumer's answer is \"${output}\", expected \" 40718.\"")
endif()
run(${WORK_DIR}/moved/bin/snapkv info -m ${WORK_DIR}/moved/share/snapkv/needle.gguf)
file(REMOVE_RECURSE ${WORK_DIR})
