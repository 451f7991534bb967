# find_package(Libzip): libzip as the target Libzip::Libzip. Debian's own CMake files of it ask for
# programs (zipcmp) that are in other packages. Used by the build of the program.
find_path(LIBZIP_INCLUDE_DIR zip.h)
find_library(LIBZIP_LIBRARY NAMES zip)
find_path(LIBZIP_CONFIG_DIR zipconf.h)
if(LIBZIP_CONFIG_DIR)
  file(STRINGS ${LIBZIP_CONFIG_DIR}/zipconf.h LIBZIP_VERSION REGEX "^#define LIBZIP_VERSION ")
  string(REGEX REPLACE ".*\"(.*)\".*" "\\1" LIBZIP_VERSION "${LIBZIP_VERSION}")
endif()
include(FindPackageHandleStandardArgs)
find_package_handle_standard_args(Libzip REQUIRED_VARS LIBZIP_LIBRARY LIBZIP_INCLUDE_DIR
  VERSION_VAR LIBZIP_VERSION)
if(Libzip_FOUND AND NOT TARGET Libzip::Libzip)
  add_library(Libzip::Libzip UNKNOWN IMPORTED)
  set_target_properties(Libzip::Libzip PROPERTIES IMPORTED_LOCATION ${LIBZIP_LIBRARY}
    INTERFACE_INCLUDE_DIRECTORIES ${LIBZIP_INCLUDE_DIR})
endif()
mark_as_advanced(LIBZIP_INCLUDE_DIR LIBZIP_CONFIG_DIR LIBZIP_LIBRARY)
