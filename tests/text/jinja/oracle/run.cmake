# cmake -DNODE=<node> -DORACLE=<folder with node_modules> -DSOURCE=<tests/text/jinja> -DRENDER=<render_all>
#   -P run.cmake: runs compare.mjs next to the packages that it imports.
if(NOT DEFINED ENV{SNAPKV_TEST_DATA})
  message("SKIPPED: SNAPKV_TEST_DATA is not set; it must name the folder that has templates/*.jinja")
  return()
endif()
file(COPY ${SOURCE}/oracle/compare.mjs DESTINATION ${ORACLE})
execute_process(COMMAND ${NODE} ${ORACLE}/compare.mjs ${RENDER} $ENV{SNAPKV_TEST_DATA}/templates
  ${SOURCE}/conversations.json ${SOURCE}/oracle/differences.json RESULT_VARIABLE status)
if(NOT status EQUAL 0)
  message(FATAL_ERROR "compare.mjs ended with ${status}")
endif()
