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
set(_archives_FMT "")  # no archive either: rules/embedded/standalone

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

add_library(tocsin_standalone OBJECT EXCLUDE_FROM_ALL collectors/hook/standalone/glibc_floor.cc collectors/hook/standalone/no_kerberos.cc
  rules/embedded/standalone/fmt_here.cc)
target_link_libraries(tocsin_standalone PRIVATE tocsin_flags)
target_compile_options(tocsin_standalone PRIVATE -ffunction-sections)
tocsin_self_contained(tocsin_client_shared libtocsin_client.so.0 ${PROJECT_SOURCE_DIR}/collectors/hook/tocsin_client.map)
tocsin_self_contained(tocsin_engine_shared libtocsin_engine.so.0 ${PROJECT_SOURCE_DIR}/rules/embedded/tocsin_engine.map)

# ---- an installation: `make install`, and the packages of `make deb`, one per component

set(_share ${CMAKE_BINARY_DIR}/share)
set(_completions ${_share}/tocsin.bash ${_share}/_tocsin ${_share}/tocsin.fish)
add_custom_command(OUTPUT ${_completions} ${_share}/tocsin.1.gz ${_share}/changelog.gz
  COMMAND ${CMAKE_COMMAND} -E make_directory ${_share}
  COMMAND $<TARGET_FILE:tocsin> completion bash > ${_share}/tocsin.bash
  COMMAND $<TARGET_FILE:tocsin> completion zsh > ${_share}/_tocsin
  COMMAND $<TARGET_FILE:tocsin> completion fish > ${_share}/tocsin.fish
  COMMAND ${PROJECT_SOURCE_DIR}/tools/manpage $<TARGET_FILE:tocsin> ${_share}/tocsin.1.gz
  COMMAND ${PROJECT_SOURCE_DIR}/tools/manpage --changelog ${PROJECT_VERSION} ${_share}/changelog.gz
  DEPENDS tocsin ${PROJECT_SOURCE_DIR}/tools/manpage VERBATIM COMMENT "Writing completions and the manual page")
add_custom_target(tocsin_share DEPENDS ${_completions} ${_share}/tocsin.1.gz)

install(TARGETS tocsin RUNTIME DESTINATION bin COMPONENT server)
install(FILES deploy/systemd/tocsin.service deploy/systemd/tocsin-collect.service DESTINATION lib/systemd/system COMPONENT server)
install(FILES ${_share}/tocsin.bash RENAME tocsin DESTINATION share/bash-completion/completions COMPONENT server)
install(FILES ${_share}/_tocsin DESTINATION share/zsh/vendor-completions COMPONENT server)
install(FILES ${_share}/tocsin.fish DESTINATION share/fish/vendor_completions.d COMPONENT server)
install(FILES ${_share}/tocsin.1.gz DESTINATION share/man/man1 COMPONENT server)
install(FILES README.md CHANGELOG.md config/examples/tocsin.yaml DESTINATION share/doc/tocsin COMPONENT server)
install(TARGETS tocsin_client_shared LIBRARY DESTINATION lib COMPONENT hook NAMELINK_COMPONENT dev)
install(TARGETS tocsin_engine_shared LIBRARY DESTINATION lib COMPONENT hook NAMELINK_SKIP)  # the hook's library loads it
install(TARGETS tocsin_engine_shared LIBRARY DESTINATION lib COMPONENT hook NAMELINK_SKIP)
install(DIRECTORY python/tocsin DESTINATION lib/python3/dist-packages COMPONENT hook
  FILES_MATCHING PATTERN "*.py" PATTERN py.typed PATTERN __pycache__ EXCLUDE)
install(FILES collectors/hook/tocsin_client.h rules/native/tocsin_rule.h DESTINATION include COMPONENT dev)

set(CPACK_GENERATOR DEB)
set(CPACK_COMPONENTS_ALL server hook dev)
set(CPACK_DEB_COMPONENT_INSTALL ON)
set(CPACK_PACKAGE_NAME tocsin)
set(CPACK_PACKAGE_VERSION ${PROJECT_VERSION})
set(CPACK_PACKAGE_CONTACT "Tocsin contributors <tocsin@example.org>")
set(CPACK_PACKAGE_DIRECTORY ${PROJECT_SOURCE_DIR}/dist)
set(CPACK_PACKAGING_INSTALL_PREFIX /usr)
set(CPACK_STRIP_FILES ON)
set(CPACK_DEBIAN_FILE_NAME DEB-DEFAULT)
set(CPACK_DEBIAN_PACKAGE_SHLIBDEPS ON)
set(CPACK_DEBIAN_PACKAGE_GENERATE_SHLIBS ON)
set(CPACK_DEBIAN_PACKAGE_SECTION science)
set(CPACK_INSTALL_DEFAULT_DIRECTORY_PERMISSIONS
  OWNER_READ OWNER_WRITE OWNER_EXECUTE GROUP_READ GROUP_EXECUTE WORLD_READ WORLD_EXECUTE)
set(CPACK_DEBIAN_SERVER_PACKAGE_NAME tocsin)
set(CPACK_DEBIAN_SERVER_DESCRIPTION "alarm system for machine-learning training
Reads what training jobs publish on Apache Kafka or into a directory, judges
it by rules, tells people and programs, and stops a job that is broken.
Brings systemd units, which are not enabled: write /etc/tocsin/tocsin.yaml
first (tocsin init /etc/tocsin/tocsin.yaml).")
set(CPACK_DEBIAN_SERVER_PACKAGE_DEPENDS "tzdata")  # time zones, which no library brings
set(CPACK_DEBIAN_SERVER_PACKAGE_RECOMMENDS "ca-certificates")
set(CPACK_DEBIAN_HOOK_PACKAGE_NAME python3-tocsin)
set(CPACK_DEBIAN_HOOK_PACKAGE_SECTION python)
set(CPACK_DEBIAN_HOOK_PACKAGE_DEPENDS "python3 (>= 3.8)")
set(CPACK_DEBIAN_HOOK_DESCRIPTION "training hook of the alarm system tocsin
The Python package tocsin and libtocsin_client.so.0: statistics of gradients,
weights and losses from a training process, and cooperative stops.")
set(CPACK_DEBIAN_DEV_PACKAGE_NAME libtocsin-client-dev)
set(CPACK_DEBIAN_DEV_PACKAGE_SECTION libdevel)
set(CPACK_DEBIAN_DEV_PACKAGE_DEPENDS "python3-tocsin (= ${PROJECT_VERSION})")
set(CPACK_DEBIAN_DEV_DESCRIPTION "C interface of the training hook of tocsin
The header for trainers in C and C++, and the link that a linker wants.")
# ldconfig for the library, and systemd learns of the units.
file(WRITE ${CMAKE_BINARY_DIR}/deb/hook/triggers "activate-noawait ldconfig\n")
file(CHMOD ${CMAKE_BINARY_DIR}/deb/hook/triggers PERMISSIONS OWNER_READ OWNER_WRITE GROUP_READ WORLD_READ)
set(CPACK_DEBIAN_HOOK_PACKAGE_CONTROL_EXTRA ${CMAKE_BINARY_DIR}/deb/hook/triggers)
foreach(script postinst postrm)
  file(WRITE ${CMAKE_BINARY_DIR}/deb/server/${script} "#!/bin/sh
set -e
if [ -d /run/systemd/system ]; then
  systemctl daemon-reload || true
fi
")
  file(CHMOD ${CMAKE_BINARY_DIR}/deb/server/${script} PERMISSIONS OWNER_READ OWNER_WRITE OWNER_EXECUTE GROUP_READ GROUP_EXECUTE
    WORLD_READ WORLD_EXECUTE)
endforeach()
set(CPACK_DEBIAN_SERVER_PACKAGE_CONTROL_EXTRA ${CMAKE_BINARY_DIR}/deb/server/postinst ${CMAKE_BINARY_DIR}/deb/server/postrm)
foreach(component server:tocsin hook:python3-tocsin dev:libtocsin-client-dev)
  string(REPLACE ":" ";" component ${component})
  list(GET component 0 of)
  list(GET component 1 package)
  install(FILES deploy/debian/copyright ${_share}/changelog.gz DESTINATION share/doc/${package} COMPONENT ${of})
endforeach()
include(CPack)
