# All third-party dependencies; docs/dependencies.md gives the reason for each.
find_package(OpenMP REQUIRED COMPONENTS CXX)
find_package(dnnl 2.6 REQUIRED CONFIG)
find_package(hwy 1.0 REQUIRED CONFIG)
find_package(fmt 9 REQUIRED CONFIG)
find_package(nlohmann_json 3.9 REQUIRED CONFIG)
find_package(Threads REQUIRED)
find_package(zstd 1.5 REQUIRED CONFIG)
find_package(Pcre2 10.40 REQUIRED MODULE)  # these two use Find modules of this folder
find_package(Utf8proc 2.6 REQUIRED MODULE)

find_path(XXHASH_INCLUDE_DIR xxhash.h REQUIRED)  # 0.8, header-only

if(SNAPKV_CUDA)
  if(NOT DEFINED CMAKE_CUDA_ARCHITECTURES)
    set(CMAKE_CUDA_ARCHITECTURES 80 86 89 90 100)
  endif()
  find_package(CUDAToolkit 12.8 REQUIRED)
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
  find_package(CLI11 2.1 REQUIRED CONFIG)
  find_package(spdlog 1.9 REQUIRED CONFIG)
  find_path(TOMLPLUSPLUS_INCLUDE_DIR toml++/toml.h REQUIRED)  # 3.3, used header-only
  find_path(STEMMER_INCLUDE_DIR libstemmer.h REQUIRED)
  find_library(STEMMER_LIBRARY stemmer REQUIRED)  # 2.2
  find_package(Libedit 2.11 REQUIRED MODULE)
  find_package(LibXml2 2.9 REQUIRED)
  find_package(Libzip REQUIRED MODULE)
  find_package(Httplib 0.11 REQUIRED MODULE)
  find_package(PrometheusCore REQUIRED MODULE)
endif()
if(SNAPKV_BUILD_BENCH)
  find_package(benchmark 1.7 REQUIRED CONFIG)
endif()
if(SNAPKV_BUILD_TESTS)
  find_package(GTest 1.12 REQUIRED CONFIG)
  find_path(SENTENCEPIECE_INCLUDE_DIR sentencepiece_processor.h REQUIRED)
  find_library(SENTENCEPIECE_LIBRARY sentencepiece REQUIRED)
  find_library(SENTENCEPIECE_TRAIN_LIBRARY sentencepiece_train REQUIRED)
  add_library(snapkv_sentencepiece INTERFACE)
  target_include_directories(snapkv_sentencepiece SYSTEM INTERFACE ${SENTENCEPIECE_INCLUDE_DIR})
  target_link_libraries(snapkv_sentencepiece INTERFACE ${SENTENCEPIECE_TRAIN_LIBRARY}
    ${SENTENCEPIECE_LIBRARY})
endif()
