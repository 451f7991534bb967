# Rules for the project's targets: warnings, include paths, one library per folder.
add_library(snapkv_options INTERFACE)
target_compile_features(snapkv_options INTERFACE cxx_std_20)
target_include_directories(snapkv_options INTERFACE
  ${PROJECT_SOURCE_DIR}/include ${PROJECT_SOURCE_DIR}/src)
target_compile_options(snapkv_options INTERFACE
  $<$<COMPILE_LANGUAGE:CXX>:-Wall;-Wextra;-Wpedantic;-Wshadow>
  $<$<AND:$<COMPILE_LANGUAGE:CXX>,$<BOOL:${SNAPKV_WERROR}>>:-Werror>)
# turned off because of GCC 12's false positives for std::string and <regex> at -O2 and above (GCC
# bug 105329)
if(CMAKE_CXX_COMPILER_ID STREQUAL "GNU")
  target_compile_options(snapkv_options INTERFACE
    $<$<COMPILE_LANGUAGE:CXX>:-Wno-restrict;-Wno-stringop-overflow;-Wno-array-bounds>)
endif()
# GCC 13 and later take what a view returns (JsonField), or what a function finds in one of its arguments,
# for a reference into a temporary.
if(CMAKE_CXX_COMPILER_ID STREQUAL "GNU" AND CMAKE_CXX_COMPILER_VERSION VERSION_GREATER_EQUAL 13)
  target_compile_options(snapkv_options INTERFACE
    $<$<COMPILE_LANGUAGE:CXX>:-Wno-dangling-reference>)
endif()

# snapkv_optimize(TARGET LEVEL): a release build compiles TARGET with LEVEL instead of -O3. Only
# kernels gain from -O3; -O2 takes the compiler four fifths of the time and -O1 three fifths. A Python
# wheel, which is to be small, has -Os in place of -O1 and nothing that is never called.
function(snapkv_optimize target level)
  if(SKBUILD AND level STREQUAL "-O1")
    set(level -Os -ffunction-sections -fdata-sections)
  endif()
  target_compile_options(${target} PRIVATE "$<$<AND:$<CONFIG:Release>,$<COMPILE_LANGUAGE:CXX>>:${level}>")
endfunction()

# snapkv_unity(TARGET): with SNAPKV_UNITY, compiles the sources of each folder of TARGET as one
# translation unit, so that headers, and what is used of them, are compiled once. Folders of fewer
# than 15 files share a unit. Names in the anonymous namespaces of a unit must differ. Sources with
# absolute paths are compiled separately.
function(snapkv_unity target)
  if(NOT SNAPKV_UNITY)
    return()
  endif()
  get_target_property(sources ${target} SOURCES)
  list(FILTER sources INCLUDE REGEX "^[a-z].*[.]cpp$")
  foreach(source ${sources})
    cmake_path(GET source PARENT_PATH folder)
    string(REGEX REPLACE "[^/]+$" "" prefix ${source})
    set(others ${sources})
    list(FILTER others INCLUDE REGEX "^${prefix}[^/]+$")
    list(LENGTH others n)
    if(n LESS 15)
      set(folder small)
    endif()
    set_source_files_properties(${source} PROPERTIES UNITY_GROUP "${target}_${folder}")
  endforeach()
  set_target_properties(${target} PROPERTIES UNITY_BUILD ON UNITY_BUILD_MODE GROUP)
  if(CMAKE_CXX_COMPILER_ID STREQUAL "GNU")  # it mistakes the sources for headers
    target_compile_options(${target} PRIVATE -Wno-subobject-linkage)
  endif()
endfunction()

set(SNAPKV_FOLDER_LIBRARIES "" CACHE INTERNAL "")

# snapkv_folder(NAME [KERNELS] [LIGHT] SOURCES file... [LIBS target...]): the OBJECT library of one
# folder of src/. KERNELS are compiled for every instruction set, and a unity build would not speed
# that up. No time is spent in what is LIGHT.
function(snapkv_folder name)
  cmake_parse_arguments(ARG "KERNELS;LIGHT" "" "SOURCES;LIBS" ${ARGN})
  add_library(snapkv_${name} OBJECT ${ARG_SOURCES})
  if(NOT ARG_KERNELS)
    snapkv_unity(snapkv_${name})
    if(ARG_LIGHT)
      snapkv_optimize(snapkv_${name} -O1)
    else()
      snapkv_optimize(snapkv_${name} -O2)
    endif()
  endif()
  target_link_libraries(snapkv_${name} PUBLIC snapkv_options fmt::fmt ${ARG_LIBS})
  set(SNAPKV_FOLDER_LIBRARIES ${SNAPKV_FOLDER_LIBRARIES} snapkv_${name} CACHE INTERNAL "")
endfunction()

# Links what the objects of the folders need from other projects.
function(snapkv_link_dependencies target)
  # snapkvConfig.cmake.in finds the same libraries for programs that link the installed static
  # library
  target_link_libraries(${target} PRIVATE OpenMP::OpenMP_CXX DNNL::dnnl hwy::hwy fmt::fmt
    Threads::Threads Pcre2::Pcre2 Utf8proc::Utf8proc)
  if(SNAPKV_CUDA)
    target_link_libraries(${target} PRIVATE CUDA::cudart CUDA::cublasLt)
  endif()
endfunction()

# libsnapkv_c.so: the C API (snapkv/snapkv.h) and nothing else, for bindings of other languages.
# src/bindings/snapkv_c.map has the versions of its symbols.
function(snapkv_c_library)
  set(map ${PROJECT_SOURCE_DIR}/src/bindings/snapkv_c.map)
  add_library(snapkv_c SHARED)
  foreach(folder ${SNAPKV_FOLDER_LIBRARIES})
    target_sources(snapkv_c PRIVATE $<TARGET_OBJECTS:${folder}>)
  endforeach()
  set_target_properties(snapkv_c PROPERTIES LINKER_LANGUAGE CXX LINK_DEPENDS ${map}
    VERSION ${PROJECT_VERSION} SOVERSION ${PROJECT_VERSION_MAJOR})
  target_link_options(snapkv_c PRIVATE LINKER:--version-script=${map})
  target_include_directories(snapkv_c INTERFACE ${PROJECT_SOURCE_DIR}/include)
  snapkv_link_dependencies(snapkv_c)
endfunction()

# The library that programs link, with the objects of all folders.
function(snapkv_aggregate)
  if(SKBUILD)  # a Python wheel has the engine once: the bindings' library, which the program links too
    set(map ${PROJECT_SOURCE_DIR}/src/bindings/snapkv_wheel.map)
    add_library(snapkv SHARED)
    set_target_properties(snapkv PROPERTIES OUTPUT_NAME snapkv_c LINK_DEPENDS ${map})
    target_link_options(snapkv PRIVATE LINKER:--version-script=${map} LINKER:-Bsymbolic-functions)
  else()
    add_library(snapkv)
    set_target_properties(snapkv PROPERTIES VERSION ${PROJECT_VERSION}
      SOVERSION ${PROJECT_VERSION_MAJOR})
  endif()
  add_library(snapkv::snapkv ALIAS snapkv)
  foreach(folder ${SNAPKV_FOLDER_LIBRARIES})
    target_sources(snapkv PRIVATE $<TARGET_OBJECTS:${folder}>)
  endforeach()
  target_compile_features(snapkv PUBLIC cxx_std_20)
  target_include_directories(snapkv PUBLIC
    $<BUILD_INTERFACE:${PROJECT_SOURCE_DIR}/include> $<INSTALL_INTERFACE:${CMAKE_INSTALL_INCLUDEDIR}>)
  target_link_libraries(snapkv PRIVATE $<BUILD_INTERFACE:snapkv_options>)
  snapkv_link_dependencies(snapkv)
endfunction()
