# Builds the template for the pages of `snapkv inspect` and `--html`, and the page of `snapkv
# serve`. web/ is copied into the build folder, its npm packages are installed there, and Vite makes
# two HTML files, which eval/ and app/server/ embed. SNAPKV_PAGES: AUTO (if npm is found), ON (an
# error without npm), OFF.
set(SNAPKV_PAGES AUTO CACHE STRING "HTML pages of snapkv inspect, --html and serve: AUTO, ON or OFF")
set_property(CACHE SNAPKV_PAGES PROPERTY STRINGS AUTO ON OFF)

set(SNAPKV_PAGE_TEMPLATE "")  # the files to embed; empty: none
set(SNAPKV_SERVER_PAGE "")
if(NOT SNAPKV_BUILD_APP OR NOT SNAPKV_PAGES)
  return()
endif()

include(SnapkvNpm)
snapkv_find_npm(problem)
if(problem)
  if(NOT SNAPKV_PAGES STREQUAL "AUTO")
    message(FATAL_ERROR "SNAPKV_PAGES=${SNAPKV_PAGES}: ${problem}")
  endif()
  message(STATUS "Pages (snapkv inspect, --html, serve): not built: ${problem}")
  return()
endif()
message(STATUS "Pages (snapkv inspect, --html, serve): built with ${NPM_EXECUTABLE}")

set(web ${PROJECT_SOURCE_DIR}/web)
set(SNAPKV_WEB_BUILD ${PROJECT_BINARY_DIR}/web)
set(SNAPKV_PAGE_TEMPLATE ${SNAPKV_WEB_BUILD}/dist/index.html)
set(SNAPKV_SERVER_PAGE ${SNAPKV_WEB_BUILD}/dist/server.html)
set(package_files ${web}/package.json ${web}/package-lock.json ${web}/.npmrc)
set(config_files ${web}/index.html ${web}/server.html ${web}/tsconfig.json ${web}/vite.config.ts)
file(GLOB_RECURSE page_sources CONFIGURE_DEPENDS ${web}/src/*)
file(GLOB_RECURSE page_tests CONFIGURE_DEPENDS ${web}/test/*)
set(script ${PROJECT_SOURCE_DIR}/cmake/build_pages.cmake)
set(arguments -DWEB=${web} -DBUILD=${SNAPKV_WEB_BUILD} -DNPM=${NPM_EXECUTABLE} -P ${script})

add_custom_command(OUTPUT ${SNAPKV_WEB_BUILD}/installed
  COMMAND ${CMAKE_COMMAND} -DSTEP=install ${arguments}
  DEPENDS ${package_files} ${script}
  COMMENT "Installing the npm packages of the pages" VERBATIM)
add_custom_command(OUTPUT ${SNAPKV_PAGE_TEMPLATE} ${SNAPKV_SERVER_PAGE}
  COMMAND ${CMAKE_COMMAND} -DSTEP=build ${arguments}
  DEPENDS ${SNAPKV_WEB_BUILD}/installed ${config_files} ${page_sources} ${page_tests}
  COMMENT "Building the pages" VERBATIM)
add_custom_target(snapkv_pages DEPENDS ${SNAPKV_PAGE_TEMPLATE} ${SNAPKV_SERVER_PAGE})
