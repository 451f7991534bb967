# The manual page and the completions of shells, and `make package`: a Debian package of everything that
# `cmake --install` installs.
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
install(FILES ${made}/snapkv.1.gz DESTINATION ${CMAKE_INSTALL_MANDIR}/man1)
install(FILES ${made}/completion.bash DESTINATION ${CMAKE_INSTALL_DATADIR}/bash-completion/completions
  RENAME snapkv)
install(FILES ${made}/completion.zsh DESTINATION ${CMAKE_INSTALL_DATADIR}/zsh/vendor-completions
  RENAME _snapkv)
install(FILES ${made}/completion.fish DESTINATION ${CMAKE_INSTALL_DATADIR}/fish/vendor_completions.d
  RENAME snapkv.fish)

set(CPACK_GENERATOR DEB)
set(CPACK_PACKAGE_NAME snapkv)
set(CPACK_PACKAGE_CONTACT "snapkv.cpp maintainers <maintainers@snapkv.invalid>")
set(CPACK_PACKAGING_INSTALL_PREFIX /usr)
set(CPACK_PACKAGE_DIRECTORY ${PROJECT_BINARY_DIR}/packages)
set(CPACK_STRIP_FILES ON)
set(CPACK_INSTALL_DEFAULT_DIRECTORY_PERMISSIONS OWNER_READ OWNER_WRITE OWNER_EXECUTE GROUP_READ
  GROUP_EXECUTE WORLD_READ WORLD_EXECUTE)
set(CPACK_DEBIAN_FILE_NAME DEB-DEFAULT)
set(CPACK_DEBIAN_PACKAGE_SECTION utils)
set(CPACK_DEBIAN_PACKAGE_SHLIBDEPS ON)
set(CPACK_DEBIAN_PACKAGE_RECOMMENDS poppler-utils)  # pdftotext, for PDFs
set(CPACK_DEBIAN_PACKAGE_DESCRIPTION "Long prompts in little memory
 Runs GGUF models and keeps, of a long prompt, only the part of the KV cache that
 matters for what comes next (SnapKV): as a command, a server and a library.")
include(CPack)
