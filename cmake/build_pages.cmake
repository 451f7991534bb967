# cmake -DSTEP=install|build -DWEB=<web/> -DBUILD=<folder> -DNPM=<npm> -P build_pages.cmake
# A step of cmake/SnapkvPages.cmake, run in a separate folder so that the sources are not changed.
function(run what)
  execute_process(COMMAND ${ARGN} WORKING_DIRECTORY ${BUILD} RESULT_VARIABLE status
    OUTPUT_VARIABLE out ERROR_VARIABLE out)
  if(NOT status EQUAL 0)
    string(JOIN " " command ${ARGN})
    message(FATAL_ERROR "${out}\n${command}\nended with ${status}: ${what}\n"
      "-DSNAPKV_PAGES=OFF (make: PAGES=OFF) builds snapkv without its HTML pages.")
  endif()
endfunction()

if(STEP STREQUAL "install")
  file(MAKE_DIRECTORY ${BUILD})
  file(COPY ${WEB}/package.json ${WEB}/package-lock.json ${WEB}/.npmrc DESTINATION ${BUILD})
  # no package needs its install script here; esbuild's script only checks its own binary
  run("the npm packages of the pages could not be installed (network?)"
    ${NPM} ci --include=dev --ignore-scripts --no-audit --no-fund)
  file(TOUCH ${BUILD}/installed)
else()
  file(REMOVE_RECURSE ${BUILD}/src ${BUILD}/test)
  file(COPY ${WEB}/src ${WEB}/test ${WEB}/index.html ${WEB}/server.html ${WEB}/tsconfig.json
    ${WEB}/vite.config.ts DESTINATION ${BUILD})
  run("the pages could not be built" ${NPM} run build)
  # makes them newer than their sources, even if they have not changed
  file(TOUCH ${BUILD}/dist/index.html ${BUILD}/dist/server.html)
endif()
