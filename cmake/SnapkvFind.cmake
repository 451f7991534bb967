# Looks for libraries, collects those that are missing or too old, and says of all of them at once what
# was found and what to install.
set(SNAPKV_FOUND "")    # lines for tools/make_sbom.py: scope, name, and version if it is known
set(SNAPKV_MISSING "")  # lines for the user

# snapkv_find(SCOPE NAME [VERSION] [BELOW VERSION] [PACKAGE debian's] argument...): find_package(NAME
# argument...), required. SCOPE, what needs it: library, program, bench, tests; `no` for what only
# another library's CMake files ask for. The version is compared here: the version files of many packages
# refuse a later major version, and CMake's own message does not say what to install.
macro(snapkv_find scope name)
  cmake_parse_arguments(SNAPKV_FIND "REQUIRED" "BELOW;PACKAGE" "" ${ARGN})
  set(SNAPKV_FIND_VERSION "")
  if("${SNAPKV_FIND_UNPARSED_ARGUMENTS}" MATCHES "^[0-9]")
    list(POP_FRONT SNAPKV_FIND_UNPARSED_ARGUMENTS SNAPKV_FIND_VERSION)
  endif()
  find_package(${name} QUIET ${SNAPKV_FIND_UNPARSED_ARGUMENTS})
  string(TOUPPER ${name} SNAPKV_FIND_UPPER)
  snapkv_found(${scope} ${name} "${${name}_FOUND}" "${${name}_VERSION}" "${${SNAPKV_FIND_UPPER}_VERSION}"
    "${${name}_VERSION_STRING}" "${${SNAPKV_FIND_UPPER}_VERSION_STRING}" "${${name}_CXX_VERSION}")
endmacro()

# Notes what find_package() found, in SNAPKV_FOUND or SNAPKV_MISSING. The first version that is known
# counts. Uses SNAPKV_FIND_VERSION, _BELOW and _PACKAGE.
function(snapkv_found scope name found)
  set(version "")
  foreach(candidate ${ARGN})
    if(candidate MATCHES "^[0-9]")
      set(version ${candidate})
      break()
    endif()
  endforeach()
  set(wanted "${name}")
  if(NOT SNAPKV_FIND_VERSION STREQUAL "")
    string(APPEND wanted " ${SNAPKV_FIND_VERSION} or later")
  endif()
  if(SNAPKV_FIND_BELOW)
    string(APPEND wanted ", before ${SNAPKV_FIND_BELOW}")
  endif()
  set(problem "")
  if(NOT found)
    set(problem "not found")
  elseif(NOT version STREQUAL "" AND
      ((NOT SNAPKV_FIND_VERSION STREQUAL "" AND version VERSION_LESS SNAPKV_FIND_VERSION) OR
       (SNAPKV_FIND_BELOW AND version VERSION_GREATER_EQUAL SNAPKV_FIND_BELOW)))
    set(problem "found ${version}")
    if(${name}_DIR)
      string(APPEND problem " in ${${name}_DIR}")
    endif()
  endif()
  if(problem)
    set(line "  ${wanted}: ${problem}")
    if(SNAPKV_FIND_PACKAGE)
      string(APPEND line "; package ${SNAPKV_FIND_PACKAGE}")
    endif()
    set(SNAPKV_MISSING "${SNAPKV_MISSING}${line}\n" PARENT_SCOPE)
    return()
  endif()
  message(STATUS "Found ${name} ${version}")
  if(NOT scope STREQUAL "no")
    string(STRIP "${scope} ${name} ${version}" line)
    set(SNAPKV_FOUND "${SNAPKV_FOUND}${line}\n" PARENT_SCOPE)
  endif()
endfunction()

# snapkv_find_files(SCOPE NAME VERSION PREFIX HEADER file [LIBRARIES name...] [PACKAGE debian's]
# [VERSION_MACRO prefix] [VERSION_HEADER file...]): a library without CMake files. Sets PREFIX_INCLUDE_DIR
# and PREFIX_LIBRARY, a list. The version is read from the macros prefixMAJOR, MINOR and RELEASE or PATCH
# of VERSION_HEADER, or of HEADER.
macro(snapkv_find_files scope name version prefix)
  cmake_parse_arguments(SNAPKV_FIND "" "HEADER;PACKAGE;VERSION_MACRO" "LIBRARIES;VERSION_HEADER" ${ARGN})
  set(SNAPKV_FIND_VERSION "${version}")
  unset(SNAPKV_FIND_BELOW)
  find_path(${prefix}_INCLUDE_DIR ${SNAPKV_FIND_HEADER})
  mark_as_advanced(${prefix}_INCLUDE_DIR)
  set(SNAPKV_FIND_FOUND ${${prefix}_INCLUDE_DIR})
  set(${prefix}_LIBRARY "")
  foreach(library ${SNAPKV_FIND_LIBRARIES})
    find_library(${prefix}_LIBRARY_${library} ${library})
    mark_as_advanced(${prefix}_LIBRARY_${library})
    list(APPEND ${prefix}_LIBRARY ${${prefix}_LIBRARY_${library}})
    if(NOT ${prefix}_LIBRARY_${library})
      set(SNAPKV_FIND_FOUND FALSE)
    endif()
  endforeach()
  set(SNAPKV_FIND_NUMBERS "")
  if(SNAPKV_FIND_FOUND AND SNAPKV_FIND_VERSION_MACRO)
    foreach(header ${SNAPKV_FIND_VERSION_HEADER} ${SNAPKV_FIND_HEADER})
      if(SNAPKV_FIND_NUMBERS STREQUAL "" AND EXISTS ${${prefix}_INCLUDE_DIR}/${header})
        file(STRINGS ${${prefix}_INCLUDE_DIR}/${header} SNAPKV_FIND_NUMBERS
          REGEX "^#define +${SNAPKV_FIND_VERSION_MACRO}(MAJOR|MINOR|RELEASE|PATCH) +[0-9]+")
        list(TRANSFORM SNAPKV_FIND_NUMBERS REPLACE "^#define +[A-Z_]+ +([0-9]+).*" "\\1")
        list(JOIN SNAPKV_FIND_NUMBERS "." SNAPKV_FIND_NUMBERS)
      endif()
    endforeach()
  endif()
  snapkv_found(${scope} ${name} "${SNAPKV_FIND_FOUND}" "${SNAPKV_FIND_NUMBERS}")
endmacro()

# Ends the configuration if a library is missing.
function(snapkv_stop_if_missing)
  if(SNAPKV_MISSING)
    message(FATAL_ERROR "Libraries that snapkv needs are missing or have another version:\n"
      "${SNAPKV_MISSING}"
      "On Debian and Ubuntu, tools/install_packages.sh installs these packages (with `tests`: for the "
      "tests, too). If a library is in a folder of its own, name it by -DCMAKE_PREFIX_PATH=FOLDER. "
      "docs/dependencies.md says what each is for.")
  endif()
endfunction()
