# What SNAPKV_SANITIZE adds to every target: flags, and the definition SNAPKV_SANITIZED, by which
# tests say that they are skipped where a sanitizer is in the way of what they measure.
set(SNAPKV_SANITIZE_FLAGS "")  # of whoever links the library
if(SNAPKV_SANITIZE STREQUAL "address")
  set(SNAPKV_SANITIZE_FLAGS -fsanitize=address,undefined -fno-sanitize-recover=undefined)
elseif(SNAPKV_SANITIZE STREQUAL "thread")
  # ThreadSanitizer knows nothing of the barriers of an OpenMP runtime that was not compiled with it.
  # LLVM's tells it about them by a library of its own, Archer, which its package has beside it.
  if(NOT CMAKE_CXX_COMPILER_ID MATCHES "Clang")
    message(FATAL_ERROR "SNAPKV_SANITIZE=thread needs Clang and its OpenMP runtime: it would take "
      "the barriers of GCC's for races")
  endif()
  get_filename_component(openmp_folder ${OpenMP_omp_LIBRARY} DIRECTORY)
  find_library(SNAPKV_ARCHER_LIBRARY archer HINTS ${openmp_folder} REQUIRED)
  set(SNAPKV_SANITIZE_FLAGS -fsanitize=thread)
  # nothing calls it: the runtime looks for it by the name of one of its functions
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
