# What is given to people: the hook's library in one self-contained file (`make wheel`), `make install`, packages (`make deb`).

# Where Debian has an archive that can go into a shared library, it is that one; where it has none, or only one that was compiled
# for programs, tools/archives compiles it from Debian's source package. A library that is missing here stops configuring.
set(_archives_RDKAFKA rdkafka lz4 zstd ssl crypto z)
set(_archives_SQLITE sqlite3)
set(_archives_CRYPTO crypto)
set(_archives_YAMLCPP yaml-cpp)
set(_archives_XXHASH xxhash)
set(_archives_RE2 tocsin-re2 re2)  # its generated tables are Debian's, all else is compiled again
set(_archives_HWY tocsin-hwy)
set(_archives_ISAL tocsin-isal)

# The rooms' archives and the third parties that a target links, each once.
function(_tocsin_closure target rooms_of archives_of)
  set(found_rooms ${${rooms_of}})
  set(found_archives ${${archives_of}})
  get_target_property(linked ${target} LINK_LIBRARIES)
  foreach(item ${linked})
    string(REGEX REPLACE "^\\$<LINK_ONLY:(.*)>$" "\\1" item "${item}")
    if(item MATCHES "^PkgConfig::(.*)$")
      if(NOT DEFINED _archives_${CMAKE_MATCH_1})
        message(FATAL_ERROR "${target} links ${item}: cmake/packaging.cmake does not say which archives it is")
      endif()
      list(APPEND found_archives ${_archives_${CMAKE_MATCH_1}})
    elseif(item MATCHES "^tocsin_" AND NOT item IN_LIST found_rooms)
      get_target_property(type ${item} TYPE)
      if(type STREQUAL STATIC_LIBRARY)
        list(APPEND found_rooms ${item})
        _tocsin_closure(${item} found_rooms found_archives)
      endif()
    endif()
  endforeach()
  list(REMOVE_DUPLICATES found_archives)
  set(${rooms_of} ${found_rooms} PARENT_SCOPE)
  set(${archives_of} ${found_archives} PARENT_SCOPE)
endfunction()

# tocsin_self_contained(<shared library target> <file> <version script>): the same objects as one library that needs glibc 2.34 and
# libgcc_s, nothing else, and shows nothing but its functions: build/<preset>/standalone/<file>, by the target <target>_standalone.
function(tocsin_self_contained target file script)
  set(rooms "")
  set(archives "")
  _tocsin_closure(${target} rooms archives)
  set(room_files "")
  foreach(room ${rooms})
    list(APPEND room_files $<TARGET_FILE:${room}>)
  endforeach()
  list(TRANSFORM archives REPLACE "(.+)" "-l:lib\\1.a")
  set(made ${PROJECT_SOURCE_DIR}/build/archives)
  set(output ${CMAKE_BINARY_DIR}/standalone/${file})
  add_custom_command(OUTPUT ${output}
    COMMAND ${PROJECT_SOURCE_DIR}/tools/archives ${made}
    COMMAND ${CMAKE_COMMAND} -E make_directory ${CMAKE_BINARY_DIR}/standalone
    COMMAND ${CMAKE_CXX_COMPILER} -fPIC -shared -pthread -static-libstdc++ -shared-libgcc -o ${output} -L${made}
      -Wl,-soname,${file} -Wl,--version-script=${script} -Wl,--exclude-libs,ALL -Wl,-Bsymbolic -Wl,--gc-sections
      -Wl,-z,defs -Wl,-z,nodelete -Wl,-z,relro -Wl,--wrap=hypot -Wl,--strip-all -Wl,--start-group
      $<TARGET_OBJECTS:${target}> $<TARGET_OBJECTS:tocsin_standalone> ${room_files} ${archives} -Wl,--end-group
    DEPENDS ${target} tocsin_standalone ${rooms} ${script} ${PROJECT_SOURCE_DIR}/tools/archives
    COMMAND_EXPAND_LISTS VERBATIM COMMENT "Linking ${file}, self-contained")
  add_custom_target(${target}_standalone DEPENDS ${output})
endfunction()

add_library(tocsin_standalone OBJECT EXCLUDE_FROM_ALL app/client/standalone/glibc_floor.cc app/client/standalone/no_kerberos.cc)
target_link_libraries(tocsin_standalone PRIVATE tocsin_flags)
tocsin_self_contained(tocsin_client_shared libtocsin_client.so.0 ${PROJECT_SOURCE_DIR}/app/client/tocsin_client.map)
