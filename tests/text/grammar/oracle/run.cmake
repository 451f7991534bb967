# cmake -DNODE=<node> -DORACLE=<folder with node_modules> -DSOURCE=<tests/text/grammar> -DPROGRAM=<sample_documents>
#   -P run.cmake: runs compare.mjs next to the packages that it imports.
file(COPY ${SOURCE}/oracle/compare.mjs DESTINATION ${ORACLE})
execute_process(COMMAND ${NODE} ${ORACLE}/compare.mjs ${PROGRAM} ${SOURCE}/schemas.json RESULT_VARIABLE status)
if(NOT status EQUAL 0)
  message(FATAL_ERROR "compare.mjs ended with ${status}")
endif()
