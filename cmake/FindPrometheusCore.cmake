# find_package(PrometheusCore): the core of prometheus-cpp, as the target
# PrometheusCore::PrometheusCore. Its own CMake files require CURL and zlib, which the core does not
# need.
find_path(PROMETHEUS_INCLUDE_DIR prometheus/text_serializer.h)
find_library(PROMETHEUS_CORE_LIBRARY NAMES prometheus-cpp-core)
include(FindPackageHandleStandardArgs)
find_package_handle_standard_args(PrometheusCore REQUIRED_VARS PROMETHEUS_CORE_LIBRARY
  PROMETHEUS_INCLUDE_DIR)
if(PrometheusCore_FOUND AND NOT TARGET PrometheusCore::PrometheusCore)
  add_library(PrometheusCore::PrometheusCore UNKNOWN IMPORTED)
  set_target_properties(PrometheusCore::PrometheusCore PROPERTIES
    IMPORTED_LOCATION ${PROMETHEUS_CORE_LIBRARY}
    INTERFACE_INCLUDE_DIRECTORIES ${PROMETHEUS_INCLUDE_DIR})
endif()
mark_as_advanced(PROMETHEUS_INCLUDE_DIR PROMETHEUS_CORE_LIBRARY)
