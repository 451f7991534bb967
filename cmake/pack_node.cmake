# cmake -DSOURCE=<root> -DBUILD=<folder> -DADDON=<snapkv.node> -DLIBRARY=<libsnapkv_c.so> -DSONAME=<its name>
#   -DSTRIP=<strip> -DVERSION= -DCPU=<as process.arch> -DNPM=<npm> -DMODULES=<npm's packages>
#   -DJSON_HEADER=<nlohmann/json.hpp> -DXXHASH_HEADER=<xxhash.h> -P pack_node.cmake
# Lays out the npm package in BUILD/package and packs it as BUILD/snapkv-cpp-VERSION.tgz: node/'s files,
# the addon, the library, and beside them the libraries that these need and Node.js has not, with their
# licences.
set(package ${BUILD}/package)
set(binaries ${package}/prebuilds/linux-${CPU})

function(run)
  execute_process(COMMAND ${ARGN} RESULT_VARIABLE status OUTPUT_VARIABLE out ERROR_VARIABLE err
    WORKING_DIRECTORY ${BUILD})
  if(NOT status EQUAL 0)
    string(JOIN " " command ${ARGN})
    message(FATAL_ERROR "${command}\nended with ${status}\n${out}\n${err}")
  endif()
  set(output "${out}" PARENT_SCOPE)
endfunction()

# Copies a library under the name by which others ask for it: npm packs no symbolic links.
function(add_binary path name)
  file(REAL_PATH ${path} file)
  file(COPY_FILE ${file} ${binaries}/${name})
  run(${STRIP} --strip-unneeded ${binaries}/${name})
endfunction()

# The text of the licence of a file of the system, which Debian's packages have.
function(add_licence path)
  file(REAL_PATH ${path} file)
  string(REGEX REPLACE "^/usr/" "/" merged ${file})  # dpkg knows a file by either path
  execute_process(COMMAND dpkg-query --search ${file} /usr${merged} ${merged}
    OUTPUT_VARIABLE found ERROR_QUIET)
  if(NOT found MATCHES "^([^:,]+)(:[a-z0-9]+)?: ")
    message(FATAL_ERROR "${file}: no one Debian package has it, so its licence cannot be added")
  endif()
  file(COPY_FILE /usr/share/doc/${CMAKE_MATCH_1}/copyright ${package}/licenses/${CMAKE_MATCH_1}.txt)
endfunction()

file(REMOVE_RECURSE ${package})
file(MAKE_DIRECTORY ${binaries} ${package}/licenses)
file(COPY ${SOURCE}/node/lib ${SOURCE}/node/bin ${SOURCE}/node/README.md ${SOURCE}/LICENSE
  DESTINATION ${package})
add_binary(${ADDON} snapkv.node)
add_binary(${LIBRARY} ${SONAME})

set(CMAKE_GET_RUNTIME_DEPENDENCIES_PLATFORM linux+elf)
set(CMAKE_GET_RUNTIME_DEPENDENCIES_TOOL objdump)
find_program(CMAKE_GET_RUNTIME_DEPENDENCIES_COMMAND objdump REQUIRED)
# what Node.js itself links, so that every system with it has them
set(of_node "^(linux-vdso|ld-linux.*|libc|libm|libdl|libpthread|librt|libstdc[+][+]|libgcc_s)[.]so")
file(GET_RUNTIME_DEPENDENCIES LIBRARIES ${binaries}/snapkv.node ${binaries}/${SONAME}
  RESOLVED_DEPENDENCIES_VAR found UNRESOLVED_DEPENDENCIES_VAR missing
  PRE_EXCLUDE_REGEXES ${of_node})
if(missing)
  message(FATAL_ERROR "${ADDON} needs libraries that are not here: ${missing}")
endif()
foreach(library ${found})
  get_filename_component(name ${library} NAME)
  if(NOT EXISTS ${binaries}/${name})
    add_binary(${library} ${name})
    add_licence(${library})
  endif()
endforeach()
add_licence(${JSON_HEADER})  # compiled in, as the next two
add_licence(${XXHASH_HEADER})
file(COPY_FILE ${MODULES}/node-addon-api/LICENSE.md ${package}/licenses/node-addon-api.txt)

file(READ ${SOURCE}/node/package.json json)
string(JSON json SET "${json}" version "\"${VERSION}\"")
string(JSON json SET "${json}" cpu "[\"${CPU}\"]")
string(JSON json SET "${json}" libc "[\"glibc\"]")
string(JSON json REMOVE "${json}" devDependencies)
file(WRITE ${package}/package.json "${json}\n")
run(${NPM} pack --ignore-scripts --pack-destination ${BUILD} ${package})
