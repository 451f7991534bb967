# The manual page, the completions of shells and the bill of materials, and `make package`: Debian
# packages of what `cmake --install` installs: snapkv, the library of bindings, and the development files.
if(NOT SNAPKV_INSTALL OR NOT SNAPKV_BUILD_APP OR SKBUILD OR NOT CMAKE_SYSTEM_NAME STREQUAL "Linux")
  return()
endif()
set(made ${PROJECT_BINARY_DIR}/package)
# whatever settings the user of the build has for the program must not end the build
set(run_snapkv ${CMAKE_COMMAND} -E env --unset=SNAPKV_REAL_MODELS XDG_CONFIG_HOME=${made}
  $<TARGET_FILE:snapkv-cli>)
foreach(shell bash zsh fish)
  add_custom_command(OUTPUT ${made}/completion.${shell}
    COMMAND ${run_snapkv} completion ${shell} > ${made}/completion.${shell} DEPENDS snapkv-cli)
endforeach()
add_custom_command(OUTPUT ${made}/snapkv.1.gz
  COMMAND ${run_snapkv} manual > ${made}/snapkv.1 && gzip -9nf ${made}/snapkv.1 DEPENDS snapkv-cli)
add_custom_target(snapkv_shell_files ALL
  DEPENDS ${made}/completion.bash ${made}/completion.zsh ${made}/completion.fish ${made}/snapkv.1.gz)
install(FILES ${made}/snapkv.1.gz DESTINATION ${CMAKE_INSTALL_MANDIR}/man1 COMPONENT program)
install(FILES ${made}/completion.bash DESTINATION ${CMAKE_INSTALL_DATADIR}/bash-completion/completions
  COMPONENT program RENAME snapkv)
install(FILES ${made}/completion.zsh DESTINATION ${CMAKE_INSTALL_DATADIR}/zsh/vendor-completions
  COMPONENT program RENAME _snapkv)
install(FILES ${made}/completion.fish DESTINATION ${CMAKE_INSTALL_DATADIR}/fish/vendor_completions.d
  COMPONENT program RENAME snapkv.fish)

find_package(Python3 3.9 COMPONENTS Interpreter)
if(Python3_FOUND)
  set(pages "")
  if(SNAPKV_PAGE_TEMPLATE)
    set(pages --pages ${PROJECT_SOURCE_DIR}/web/package-lock.json)
  endif()
  add_custom_command(OUTPUT ${made}/sbom.spdx.json
    COMMAND ${Python3_EXECUTABLE} -B ${PROJECT_SOURCE_DIR}/tools/make_sbom.py ${pages}
      --version ${PROJECT_VERSION} --found ${made}/dependencies.txt -o ${made}/sbom.spdx.json
    DEPENDS ${PROJECT_SOURCE_DIR}/tools/make_sbom.py ${made}/dependencies.txt VERBATIM)
  add_custom_target(snapkv_sbom ALL DEPENDS ${made}/sbom.spdx.json)
  install(FILES ${made}/sbom.spdx.json DESTINATION ${CMAKE_INSTALL_DOCDIR} COMPONENT program)
else()
  message(STATUS "Bill of materials: not made: Python was not found")
endif()

set(CPACK_GENERATOR DEB)
set(CPACK_PACKAGE_NAME snapkv)
set(CPACK_PACKAGE_CONTACT "snapkv.cpp maintainers <maintainers@snapkv.invalid>")
set(CPACK_PACKAGING_INSTALL_PREFIX /usr)
set(CPACK_PACKAGE_DIRECTORY ${PROJECT_BINARY_DIR}/packages)
set(CPACK_STRIP_FILES ON)
set(CPACK_INSTALL_DEFAULT_DIRECTORY_PERMISSIONS OWNER_READ OWNER_WRITE OWNER_EXECUTE GROUP_READ
  GROUP_EXECUTE WORLD_READ WORLD_EXECUTE)
set(CPACK_COMPONENTS_ALL program library development)
set(CPACK_DEB_COMPONENT_INSTALL ON)
set(CPACK_DEBIAN_FILE_NAME DEB-DEFAULT)
set(CPACK_DEBIAN_PACKAGE_SHLIBDEPS ON)
set(CPACK_DEBIAN_PACKAGE_GENERATE_SHLIBS ON)
set(CPACK_DEBIAN_PACKAGE_CONTROL_STRICT_PERMISSION ON)

set(CPACK_DEBIAN_PROGRAM_PACKAGE_NAME snapkv)
set(CPACK_DEBIAN_PROGRAM_PACKAGE_SECTION utils)
set(CPACK_DEBIAN_PROGRAM_PACKAGE_RECOMMENDS poppler-utils)  # pdftotext, for PDFs
set(CPACK_DEBIAN_PROGRAM_DESCRIPTION "long prompts in little memory
 Runs GGUF models and keeps, of a long prompt, only the part of the KV cache
 that matters for what comes next (SnapKV): as a command and a server.")

set(library_package libsnapkv-c${PROJECT_VERSION_MAJOR})
set(CPACK_DEBIAN_LIBRARY_PACKAGE_NAME ${library_package})
set(CPACK_DEBIAN_LIBRARY_PACKAGE_SECTION libs)
file(WRITE ${made}/triggers "activate-noawait ldconfig\n")
set(CPACK_DEBIAN_LIBRARY_PACKAGE_CONTROL_EXTRA ${made}/triggers)
set(CPACK_DEBIAN_LIBRARY_DESCRIPTION "long prompts in little memory - C library
 Runs GGUF models and keeps, of a long prompt, only the part of the KV cache
 that matters for what comes next (SnapKV): the library that bindings load.")

set(CPACK_DEBIAN_DEVELOPMENT_PACKAGE_NAME libsnapkv-dev)
set(CPACK_DEBIAN_DEVELOPMENT_PACKAGE_SECTION libdevel)
set(CPACK_DEBIAN_DEVELOPMENT_PACKAGE_SHLIBDEPS OFF)
# what find_package(snapkv) looks for
set(CPACK_DEBIAN_DEVELOPMENT_PACKAGE_DEPENDS "${library_package} (= ${PROJECT_VERSION}), libdnnl-dev, \
libhwy-dev, libfmt-dev, libpcre2-dev, libutf8proc-dev")
if(SNAPKV_DNNL_OPENCL)
  string(APPEND CPACK_DEBIAN_DEVELOPMENT_PACKAGE_DEPENDS ", ocl-icd-opencl-dev")
endif()
set(CPACK_DEBIAN_DEVELOPMENT_DESCRIPTION "long prompts in little memory - development files
 Headers in C and C++, the static library and the CMake package of snapkv,
 which compresses the KV cache of long prompts (SnapKV).")

# The changelog and the licence of each, where Debian wants them.
string(TIMESTAMP SNAPKV_DATE "%a, %d %b %Y %H:%M:%S +0000" UTC)  # SOURCE_DATE_EPOCH, if it is set
configure_file(${PROJECT_SOURCE_DIR}/packaging/debian-changelog.in ${made}/changelog @ONLY)
add_custom_command(OUTPUT ${made}/changelog.gz COMMAND gzip -9nfk ${made}/changelog
  DEPENDS ${made}/changelog)
add_custom_target(snapkv_changelog ALL DEPENDS ${made}/changelog.gz)
foreach(component program library development)
  string(TOUPPER ${component} upper)
  set(doc_dir ${CMAKE_INSTALL_DATADIR}/doc/${CPACK_DEBIAN_${upper}_PACKAGE_NAME})
  install(FILES ${made}/changelog.gz DESTINATION ${doc_dir} COMPONENT ${component} EXCLUDE_FROM_ALL)
  install(FILES ${PROJECT_SOURCE_DIR}/LICENSE DESTINATION ${doc_dir} RENAME copyright
    COMPONENT ${component} EXCLUDE_FROM_ALL)
endforeach()
include(CPack)
