# All third-party dependencies; docs/dependencies.md gives the reason for each.

# snapkv_find(SCOPE NAME argument...): find_package(NAME argument...), and a line of the list from which
# tools/make_sbom.py makes the bill of materials. SCOPE, what needs it: library, program, bench, tests.
set(SNAPKV_FOUND "")  # lines: scope, name, and version if it is known
macro(snapkv_find scope name)
  find_package(${name} ${ARGN})
  string(TOUPPER ${name} upper_name)
  snapkv_found(${scope} ${name} "${${name}_VERSION}" "${${upper_name}_VERSION}"
    "${${name}_VERSION_STRING}" "${${upper_name}_VERSION_STRING}" "${${name}_CXX_VERSION}")
endmacro()
# The first of the versions that is known counts.
function(snapkv_found scope name)
  set(line "${scope} ${name}")
  foreach(version ${ARGN})
    if(version MATCHES "^[0-9]")
      string(APPEND line " ${version}")
      break()
    endif()
  endforeach()
  set(SNAPKV_FOUND "${SNAPKV_FOUND}${line}\n" PARENT_SCOPE)
endfunction()

snapkv_find(library OpenMP REQUIRED COMPONENTS CXX)
snapkv_find(library dnnl 2.6 REQUIRED CONFIG)
snapkv_find(library hwy 1.0 REQUIRED CONFIG)
snapkv_find(library fmt 9 REQUIRED CONFIG)
snapkv_find(library nlohmann_json 3.9 REQUIRED CONFIG)
snapkv_find(library Threads REQUIRED)
snapkv_find(library zstd 1.5 REQUIRED CONFIG)
snapkv_find(library Pcre2 10.40 REQUIRED MODULE)  # these two use Find modules of this folder
snapkv_find(library Utf8proc 2.6 REQUIRED MODULE)

find_path(XXHASH_INCLUDE_DIR xxhash.h REQUIRED)  # 0.8, header-only
file(STRINGS ${XXHASH_INCLUDE_DIR}/xxhash.h XXHASH_VERSION
  REGEX "^#define XXH_VERSION_(MAJOR|MINOR|RELEASE) +[0-9]+")
string(REGEX REPLACE "[^0-9;]" "" XXHASH_VERSION "${XXHASH_VERSION}")
string(REPLACE ";" "." XXHASH_VERSION "${XXHASH_VERSION}")
snapkv_found(library xxHash ${XXHASH_VERSION})

if(SNAPKV_CUDA)
  if(NOT DEFINED CMAKE_CUDA_ARCHITECTURES)
    set(CMAKE_CUDA_ARCHITECTURES 80 86 89 90 100)
  endif()
  if(NOT TARGET CUDA::nvToolsExt)  # CMake 3.25 sets a property of it, but CUDA 13 no longer has it
    add_library(CUDA::nvToolsExt INTERFACE IMPORTED)
  endif()
  snapkv_find(library CUDAToolkit 12.8 REQUIRED)
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
  snapkv_find(program CLI11 2.1 REQUIRED CONFIG)
  snapkv_find(program spdlog 1.9 REQUIRED CONFIG)
  find_path(TOMLPLUSPLUS_INCLUDE_DIR toml++/toml.h REQUIRED)  # 3.3, used header-only
  snapkv_found(program toml++)
  find_path(STEMMER_INCLUDE_DIR libstemmer.h REQUIRED)
  find_library(STEMMER_LIBRARY stemmer REQUIRED)  # 2.2
  snapkv_found(program libstemmer)
  snapkv_find(program Libedit 2.11 REQUIRED MODULE)
  snapkv_find(program LibXml2 2.9 REQUIRED)
  snapkv_find(program Libzip REQUIRED MODULE)
  snapkv_find(program Httplib 0.11 REQUIRED MODULE)
  snapkv_find(program PrometheusCore REQUIRED MODULE)
endif()
if(SNAPKV_BUILD_BENCH)
  snapkv_find(bench benchmark 1.7 REQUIRED CONFIG)
endif()
if(SNAPKV_BUILD_TESTS)
  snapkv_find(tests GTest 1.12 REQUIRED CONFIG)
  find_path(SENTENCEPIECE_INCLUDE_DIR sentencepiece_processor.h REQUIRED)
  find_library(SENTENCEPIECE_LIBRARY sentencepiece REQUIRED)
  find_library(SENTENCEPIECE_TRAIN_LIBRARY sentencepiece_train REQUIRED)
  add_library(snapkv_sentencepiece INTERFACE)
  target_include_directories(snapkv_sentencepiece SYSTEM INTERFACE ${SENTENCEPIECE_INCLUDE_DIR})
  target_link_libraries(snapkv_sentencepiece INTERFACE ${SENTENCEPIECE_TRAIN_LIBRARY}
    ${SENTENCEPIECE_LIBRARY})
  snapkv_found(tests SentencePiece)
endif()

if(TARGET OpenSSL::SSL)  # by Httplib
  snapkv_found(program OpenSSL "${OPENSSL_VERSION}")
endif()
file(WRITE ${PROJECT_BINARY_DIR}/package/dependencies.txt "${SNAPKV_FOUND}")
