# Adds the flags of SNAPKV_SANITIZE to every target, and defines SNAPKV_SANITIZED: tests are skipped
# if a sanitizer would disturb what they measure.
set(SNAPKV_SANITIZE_FLAGS "")  # also needed by programs that link the library
if(SNAPKV_SANITIZE STREQUAL "address")
  set(SNAPKV_SANITIZE_FLAGS -fsanitize=address,undefined -fno-sanitize-recover=undefined)
elseif(SNAPKV_SANITIZE STREQUAL "thread")
  # ThreadSanitizer can't see the barriers of an OpenMP runtime that was compiled without it. LLVM's
  # runtime reports them to it through a separate library, Archer, in the same package.
  if(NOT CMAKE_CXX_COMPILER_ID MATCHES "Clang")
    message(FATAL_ERROR "SNAPKV_SANITIZE=thread needs Clang and its OpenMP runtime: it would take "
      "the barriers of GCC's for races")
  endif()
  get_filename_component(openmp_folder ${OpenMP_omp_LIBRARY} DIRECTORY)
  find_library(SNAPKV_ARCHER_LIBRARY archer HINTS ${openmp_folder} REQUIRED)
  set(SNAPKV_SANITIZE_FLAGS -fsanitize=thread)
  # nothing calls it: the runtime finds it by the name of one of its functions
  target_link_options(snapkv_options INTERFACE LINKER:--no-as-needed)
  target_link_libraries(snapkv_options INTERFACE ${SNAPKV_ARCHER_LIBRARY})
elseif(SNAPKV_SANITIZE)
  message(FATAL_ERROR "SNAPKV_SANITIZE is '${SNAPKV_SANITIZE}'; it can be OFF, address or thread")
endif()
if(SNAPKV_SANITIZE)
  target_compile_definitions(snapkv_options INTERFACE SNAPKV_SANITIZED)
  target_compile_options(snapkv_options INTERFACE ${SNAPKV_SANITIZE_FLAGS} -fno-omit-frame-pointer)
  target_link_options(snapkv_options INTERFACE ${SNAPKV_SANITIZE_FLAGS})
endif()
