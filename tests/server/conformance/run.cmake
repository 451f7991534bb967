# cmake -DNODE=<node> -DNPM=<npm> -DSOURCE=<this folder> -DBUILD=<folder> -DSNAPKV=<program>
#   -DMODEL=<gguf> -P run.cmake: runs conformance.mjs next to the packages that it imports.
if(NOT EXISTS ${BUILD}/installed)
  file(COPY ${SOURCE}/package.json ${SOURCE}/package-lock.json ${SOURCE}/.npmrc DESTINATION ${BUILD})
  execute_process(COMMAND ${NPM} ci --ignore-scripts --no-audit --no-fund WORKING_DIRECTORY ${BUILD}
    RESULT_VARIABLE status OUTPUT_VARIABLE out ERROR_VARIABLE out TIMEOUT 240)
  if(NOT status EQUAL 0)
    message("SKIPPED: npm could not install the clients (network?):\n${out}")
    return()
  endif()
  file(TOUCH ${BUILD}/installed)
endif()
file(COPY ${SOURCE}/conformance.mjs ${SOURCE}/hermes.jinja DESTINATION ${BUILD})
execute_process(COMMAND ${NODE} ${BUILD}/conformance.mjs ${SNAPKV} ${MODEL} RESULT_VARIABLE status)
if(NOT status EQUAL 0)
  message(FATAL_ERROR "conformance.mjs ended with ${status}")
endif()
