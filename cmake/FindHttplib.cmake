# find_package(Httplib): the compiled cpp-httplib, as the target Httplib::Httplib.
find_path(HTTPLIB_INCLUDE_DIR httplib.h)
find_library(HTTPLIB_LIBRARY NAMES cpp-httplib)
if(HTTPLIB_INCLUDE_DIR)
  file(STRINGS ${HTTPLIB_INCLUDE_DIR}/httplib.h HTTPLIB_VERSION_LINES
    REGEX "^#define CPPHTTPLIB_VERSION ")
  string(REGEX REPLACE ".*\"(.*)\".*" "\\1" HTTPLIB_VERSION "${HTTPLIB_VERSION_LINES}")
endif()
find_package(OpenSSL 1.1.1 QUIET)
include(FindPackageHandleStandardArgs)
find_package_handle_standard_args(Httplib REQUIRED_VARS HTTPLIB_LIBRARY HTTPLIB_INCLUDE_DIR
  OPENSSL_FOUND VERSION_VAR HTTPLIB_VERSION)
if(Httplib_FOUND AND NOT TARGET Httplib::Httplib)
  add_library(Httplib::Httplib UNKNOWN IMPORTED)
  # The library was compiled with these options, and the classes in its header depend on them. They are in
  # the file for pkg-config beside it; the default is Debian 12's.
  set(definitions CPPHTTPLIB_OPENSSL_SUPPORT CPPHTTPLIB_ZLIB_SUPPORT CPPHTTPLIB_BROTLI_SUPPORT)
  cmake_path(GET HTTPLIB_LIBRARY PARENT_PATH folder)
  if(EXISTS ${folder}/pkgconfig/cpp-httplib.pc)
    file(STRINGS ${folder}/pkgconfig/cpp-httplib.pc flags REGEX "^Cflags:")
    string(REGEX MATCHALL "CPPHTTPLIB_[A-Z_]+" definitions "${flags}")
  endif()
  set_target_properties(Httplib::Httplib PROPERTIES IMPORTED_LOCATION ${HTTPLIB_LIBRARY}
    INTERFACE_INCLUDE_DIRECTORIES ${HTTPLIB_INCLUDE_DIR}
    INTERFACE_COMPILE_DEFINITIONS "${definitions}"
    INTERFACE_LINK_LIBRARIES "OpenSSL::SSL;OpenSSL::Crypto;Threads::Threads")
endif()
mark_as_advanced(HTTPLIB_INCLUDE_DIR HTTPLIB_LIBRARY)
