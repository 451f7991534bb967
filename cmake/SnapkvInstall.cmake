# `cmake --install`: the program, the library, the public headers, the demo's model and a
# relocatable CMake package, so that find_package(snapkv) works under any prefix. The components are
# the Debian packages of SnapkvPackage.cmake.
if(NOT SNAPKV_INSTALL)
  return()
endif()
# What a Python wheel has beside the package's own files (pyproject.toml); a test installs it too. A wheel has
# no symbolic links, so its library is one file without a version.
set(python COMPONENT python EXCLUDE_FROM_ALL)
if(SKBUILD)
  install(TARGETS snapkv LIBRARY DESTINATION snapkv/lib ${python})
  set_property(TARGET snapkv-cli PROPERTY INSTALL_RPATH $ORIGIN/../lib)
  set_property(TARGET snapkv_server_library PROPERTY INSTALL_RPATH $ORIGIN)
elseif(SNAPKV_C_LIBRARY)
  install(TARGETS snapkv_c LIBRARY DESTINATION snapkv/lib ${python})
endif()
if(SNAPKV_BUILD_APP)
  install(TARGETS snapkv-cli RUNTIME DESTINATION snapkv/bin ${python})
  if(TARGET snapkv_server_library)
    install(TARGETS snapkv_server_library LIBRARY DESTINATION snapkv/lib ${python})
  endif()
  install(FILES ${PROJECT_SOURCE_DIR}/models/needle.gguf DESTINATION snapkv/share/snapkv ${python})
endif()
if(SKBUILD)
  return()
endif()
include(CMakePackageConfigHelpers)
set(package_dir ${CMAKE_INSTALL_LIBDIR}/cmake/snapkv)

install(TARGETS snapkv EXPORT snapkvTargets
  ARCHIVE DESTINATION ${CMAKE_INSTALL_LIBDIR} COMPONENT development
  LIBRARY DESTINATION ${CMAKE_INSTALL_LIBDIR} COMPONENT library NAMELINK_COMPONENT development)
install(EXPORT snapkvTargets NAMESPACE snapkv:: DESTINATION ${package_dir} COMPONENT development)
if(SNAPKV_C_LIBRARY)
  install(TARGETS snapkv_c LIBRARY DESTINATION ${CMAKE_INSTALL_LIBDIR} COMPONENT library
    NAMELINK_COMPONENT development)
endif()
if(SNAPKV_BUILD_APP)
  install(TARGETS snapkv-cli RUNTIME DESTINATION ${CMAKE_INSTALL_BINDIR} COMPONENT program)
endif()
install(DIRECTORY ${PROJECT_SOURCE_DIR}/include/snapkv
  DESTINATION ${CMAKE_INSTALL_INCLUDEDIR} COMPONENT development FILES_MATCHING PATTERN "*.h"
  PATTERN snapkv_server.h EXCLUDE)  # its library is in wheels only
install(FILES ${PROJECT_SOURCE_DIR}/models/needle.gguf
  DESTINATION ${CMAKE_INSTALL_DATADIR}/snapkv COMPONENT program)
install(FILES ${PROJECT_SOURCE_DIR}/LICENSE DESTINATION ${CMAKE_INSTALL_DOCDIR} COMPONENT license)

configure_package_config_file(${PROJECT_SOURCE_DIR}/cmake/snapkvConfig.cmake.in
  ${PROJECT_BINARY_DIR}/package/snapkvConfig.cmake INSTALL_DESTINATION ${package_dir}
  PATH_VARS CMAKE_INSTALL_DATADIR)
write_basic_package_version_file(${PROJECT_BINARY_DIR}/package/snapkvConfigVersion.cmake
  VERSION ${PROJECT_VERSION} COMPATIBILITY SameMinorVersion)
install(FILES ${PROJECT_BINARY_DIR}/package/snapkvConfig.cmake
  ${PROJECT_BINARY_DIR}/package/snapkvConfigVersion.cmake
  ${PROJECT_SOURCE_DIR}/cmake/FindPcre2.cmake ${PROJECT_SOURCE_DIR}/cmake/FindUtf8proc.cmake
  DESTINATION ${package_dir} COMPONENT development)
