# All third-party dependencies; docs/dependencies.md gives the reason for each.
include(SnapkvFind)

snapkv_find(library OpenMP REQUIRED COMPONENTS CXX PACKAGE "g++, or libomp-dev for clang")
# oneDNN 2 of Debian 12 is built with OpenCL: its CMake files look for that, but its package does not need it
find_file(SNAPKV_DNNL_CONFIG dnnl-config.cmake PATH_SUFFIXES lib/${CMAKE_LIBRARY_ARCHITECTURE}/cmake/dnnl
  lib64/cmake/dnnl lib/cmake/dnnl)
mark_as_advanced(SNAPKV_DNNL_CONFIG)
if(SNAPKV_DNNL_CONFIG)
  file(STRINGS ${SNAPKV_DNNL_CONFIG} SNAPKV_DNNL_OPENCL REGEX "DNNL_GPU_RUNTIME \"OCL\"")
  if(SNAPKV_DNNL_OPENCL)
    snapkv_find(no OpenCL REQUIRED PACKAGE ocl-icd-opencl-dev)
  endif()
endif()
if(NOT SNAPKV_MISSING MATCHES "OpenCL")
  snapkv_find(library dnnl 2.6 BELOW 4 REQUIRED CONFIG PACKAGE libdnnl-dev)
endif()
snapkv_find(library hwy 1.0 REQUIRED CONFIG PACKAGE libhwy-dev)
snapkv_find(library fmt 9 REQUIRED CONFIG PACKAGE libfmt-dev)
snapkv_find(library nlohmann_json 3.9 REQUIRED CONFIG PACKAGE nlohmann-json3-dev)
snapkv_find(library Threads REQUIRED)
snapkv_find(library Pcre2 10.40 REQUIRED MODULE PACKAGE libpcre2-dev)  # these two use Find modules of this folder
snapkv_find(library Utf8proc 2.6 REQUIRED MODULE PACKAGE libutf8proc-dev)
snapkv_find_files(library xxHash 0.8 XXHASH HEADER xxhash.h VERSION_MACRO XXH_VERSION_ PACKAGE libxxhash-dev)

if(SNAPKV_CUDA)
  if(NOT DEFINED CMAKE_CUDA_ARCHITECTURES)
    set(CMAKE_CUDA_ARCHITECTURES 80 86 89 90 100)
  endif()
  if(NOT TARGET CUDA::nvToolsExt)  # CMake 3.25 sets a property of it, but CUDA 13 no longer has it
    add_library(CUDA::nvToolsExt INTERFACE IMPORTED)
  endif()
  snapkv_find(library CUDAToolkit 12.8 REQUIRED)
  snapkv_stop_if_missing()
  if(NOT CMAKE_CUDA_COMPILER)
    find_program(CMAKE_CUDA_COMPILER nvcc HINTS ${CUDAToolkit_BIN_DIR} REQUIRED)
  endif()
  enable_language(CUDA)
  if(NOT CMAKE_CUDA20_STANDARD_COMPILE_OPTION)  # CMake 3.25 doesn't know that nvcc 12 has C++20
    set(CMAKE_CUDA20_STANDARD_COMPILE_OPTION -std=c++20)
    set(CMAKE_CUDA20_EXTENSION_COMPILE_OPTION -std=c++20)
    list(APPEND CMAKE_CUDA_COMPILE_FEATURES cuda_std_20)
  endif()
endif()

if(SNAPKV_BUILD_APP)
  snapkv_find(program CLI11 2.1 REQUIRED CONFIG PACKAGE libcli11-dev)
  snapkv_find(program spdlog 1.9 REQUIRED CONFIG PACKAGE libspdlog-dev)
  snapkv_find_files(program toml++ 3.3 TOMLPLUSPLUS HEADER toml++/toml.h
    VERSION_HEADER toml++/impl/version.h toml++/impl/version.hpp VERSION_MACRO TOML_LIB_
    PACKAGE libtomlplusplus-dev)  # used header-only
  snapkv_find_files(program libstemmer "" STEMMER HEADER libstemmer.h LIBRARIES stemmer
    PACKAGE libstemmer-dev)
  snapkv_find(program Libedit 2.11 REQUIRED MODULE PACKAGE libedit-dev)
  snapkv_find(program LibXml2 2.9 REQUIRED MODULE PACKAGE libxml2-dev)
  snapkv_find(program Libzip 1.7 REQUIRED MODULE PACKAGE libzip-dev)
  snapkv_find(program OpenSSL 1.1.1 REQUIRED MODULE PACKAGE libssl-dev)
  snapkv_find(program Httplib 0.11 REQUIRED MODULE PACKAGE libcpp-httplib-dev)
  snapkv_find(program CURL 7.80 REQUIRED MODULE PACKAGE libcurl4-openssl-dev)
  snapkv_find(program PrometheusCore REQUIRED MODULE PACKAGE prometheus-cpp-dev)
endif()
if(SNAPKV_BUILD_BENCH)
  snapkv_find(bench benchmark 1.7 REQUIRED CONFIG PACKAGE libbenchmark-dev)
endif()
if(SNAPKV_BUILD_TESTS)
  snapkv_find(tests GTest 1.12 REQUIRED CONFIG PACKAGE libgtest-dev)
  snapkv_find_files(tests SentencePiece "" SENTENCEPIECE HEADER sentencepiece_processor.h
    LIBRARIES sentencepiece_train sentencepiece PACKAGE libsentencepiece-dev)
  add_library(snapkv_sentencepiece INTERFACE)
  target_include_directories(snapkv_sentencepiece SYSTEM INTERFACE ${SENTENCEPIECE_INCLUDE_DIR})
  target_link_libraries(snapkv_sentencepiece INTERFACE ${SENTENCEPIECE_LIBRARY})
  # from 0.2.2 on its functions return Abseil's Status, which calls functions of that library
  set(snapkv_absl_status "")
  if(SENTENCEPIECE_INCLUDE_DIR)
    file(STRINGS ${SENTENCEPIECE_INCLUDE_DIR}/sentencepiece_processor.h snapkv_absl_status
      REGEX "#include <absl/status/status.h>")
  endif()
  if(snapkv_absl_status)
    snapkv_find(tests absl REQUIRED CONFIG PACKAGE libabsl-dev)
    target_link_libraries(snapkv_sentencepiece INTERFACE absl::status)
  endif()
endif()

snapkv_stop_if_missing()
file(WRITE ${PROJECT_BINARY_DIR}/package/dependencies.txt "${SNAPKV_FOUND}")
