# find_package(Utf8proc): utf8proc, as the target Utf8proc::Utf8proc. Installed beside
# snapkvConfig.cmake for programs that link the static library.
find_path(UTF8PROC_INCLUDE_DIR utf8proc.h)
find_library(UTF8PROC_LIBRARY NAMES utf8proc utf8proc_static)
if(UTF8PROC_INCLUDE_DIR)
  file(STRINGS ${UTF8PROC_INCLUDE_DIR}/utf8proc.h UTF8PROC_VERSION_LINES
    REGEX "^#define UTF8PROC_VERSION_(MAJOR|MINOR)[ \t]+[0-9]+")
  string(REGEX REPLACE ".*MAJOR[ \t]+([0-9]+).*MINOR[ \t]+([0-9]+).*" "\\1.\\2" UTF8PROC_VERSION
    "${UTF8PROC_VERSION_LINES}")
endif()
include(FindPackageHandleStandardArgs)
find_package_handle_standard_args(Utf8proc REQUIRED_VARS UTF8PROC_LIBRARY UTF8PROC_INCLUDE_DIR
  VERSION_VAR UTF8PROC_VERSION)
if(Utf8proc_FOUND AND NOT TARGET Utf8proc::Utf8proc)
  add_library(Utf8proc::Utf8proc UNKNOWN IMPORTED)
  set_target_properties(Utf8proc::Utf8proc PROPERTIES IMPORTED_LOCATION ${UTF8PROC_LIBRARY}
    INTERFACE_INCLUDE_DIRECTORIES ${UTF8PROC_INCLUDE_DIR})
endif()
mark_as_advanced(UTF8PROC_INCLUDE_DIR UTF8PROC_LIBRARY)
