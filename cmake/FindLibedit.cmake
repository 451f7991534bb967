# find_package(Libedit): libedit, as the target Libedit::Libedit.
find_path(LIBEDIT_INCLUDE_DIR histedit.h)
find_library(LIBEDIT_LIBRARY NAMES edit)
if(LIBEDIT_INCLUDE_DIR)
  file(STRINGS ${LIBEDIT_INCLUDE_DIR}/histedit.h LIBEDIT_VERSION_LINES
    REGEX "^#define[ \t]+LIBEDIT_(MAJOR|MINOR)[ \t]+[0-9]+")
  string(REGEX REPLACE ".*MAJOR[ \t]+([0-9]+).*MINOR[ \t]+([0-9]+).*" "\\1.\\2" LIBEDIT_VERSION
    "${LIBEDIT_VERSION_LINES}")
endif()
include(FindPackageHandleStandardArgs)
find_package_handle_standard_args(Libedit REQUIRED_VARS LIBEDIT_LIBRARY LIBEDIT_INCLUDE_DIR
  VERSION_VAR LIBEDIT_VERSION)
if(Libedit_FOUND AND NOT TARGET Libedit::Libedit)
  add_library(Libedit::Libedit UNKNOWN IMPORTED)
  set_target_properties(Libedit::Libedit PROPERTIES IMPORTED_LOCATION ${LIBEDIT_LIBRARY}
    INTERFACE_INCLUDE_DIRECTORIES ${LIBEDIT_INCLUDE_DIR})
endif()
mark_as_advanced(LIBEDIT_INCLUDE_DIR LIBEDIT_LIBRARY)
