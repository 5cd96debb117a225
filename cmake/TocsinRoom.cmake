# One library per room, and the one-line registration of built-in parts.

set(CMAKE_CXX_STANDARD 20)
set(CMAKE_CXX_STANDARD_REQUIRED ON)
set(CMAKE_CXX_EXTENSIONS OFF)
set(CMAKE_POSITION_INDEPENDENT_CODE ON)  # the rooms are also linked into libtocsin_client.so

add_library(tocsin_flags INTERFACE)
target_include_directories(tocsin_flags INTERFACE ${PROJECT_SOURCE_DIR})
target_compile_options(tocsin_flags INTERFACE -Wall -Wextra -Wshadow -Wconversion
  $<$<CXX_COMPILER_ID:GNU>:-Werror>
  # Clang is for sanitizers, fuzzing and the analysis of locks (core/mutex.h): that one is an error. Its other warnings are shown,
  # for GCC's and clang-tidy's are errors already. GCC's -Wconversion does not look at signs.
  $<$<CXX_COMPILER_ID:Clang>:-Wthread-safety -Wthread-safety-beta -Werror=thread-safety -Wno-sign-conversion>
  # GCC 12 reports these falsely inside std::string and std::optional once inlined (GCC PR 105329, 105562).
  $<$<CXX_COMPILER_ID:GNU>:-Wno-restrict -Wno-maybe-uninitialized>)
if(TOCSIN_UNITY)
  # In a batch every file is an included one, and GCC takes its types for those of a header.
  target_compile_options(tocsin_flags INTERFACE $<$<CXX_COMPILER_ID:GNU>:-Wno-subobject-linkage>)
endif()
if(TOCSIN_SANITIZE)
  target_compile_options(tocsin_flags INTERFACE -fsanitize=${TOCSIN_SANITIZE} -fno-sanitize-recover=all -fno-omit-frame-pointer)
  target_link_options(tocsin_flags INTERFACE -fsanitize=${TOCSIN_SANITIZE})
endif()
if(TOCSIN_FUZZ)
  target_compile_options(tocsin_flags INTERFACE -fsanitize=fuzzer-no-link)
endif()

# tocsin_batches(<target>): with TOCSIN_UNITY, twelve files are compiled as one, which reads what they include once. (Of six, the rules took
# 1.7 times the processor time.)
# Two files of a target that use the same name in their unnamed namespaces then collide, so each name says whose it is.
function(tocsin_batches target)
  if(TOCSIN_UNITY)
    set_target_properties(${target} PROPERTIES UNITY_BUILD ON UNITY_BUILD_BATCH_SIZE 12)
  endif()
endfunction()

# tocsin_room(<name> SOURCES <cc…> [PUBLIC <targets…>] [PRIVATE <targets…>])
function(tocsin_room name)
  cmake_parse_arguments(ARG "" "" "SOURCES;PUBLIC;PRIVATE" ${ARGN})
  add_library(tocsin_${name} STATIC ${ARG_SOURCES})
  tocsin_batches(tocsin_${name})
  target_link_libraries(tocsin_${name} PUBLIC tocsin_flags ${ARG_PUBLIC} PRIVATE ${ARG_PRIVATE})
endfunction()

# tocsin_builtin(<room> <kind> [<subject>/]<name> [FOLDER f] [TESTS t] [PAGE p] [REFERENCE]): compiles
# <room>/builtin/[<subject>/]<name>.cc into the room and its unit test into the room's test program
# (tocsin_test(… BUILTIN <room>)). Stops configuring when a file of the part is missing, and says what belongs into it.
# FOLDER: another folder than builtin; TESTS: the tests stand in tests/unit/<t>, belong to BUILTIN <t> (default: the room);
# PAGE: a page that parts share; REFERENCE: it also has a reference, a table of cases and a generator of random streams.
# tools/docs reads the same line for the tables, indexes and counts of the pages.
# tocsin_builtin_table(<room> <kind> <Descriptor> <header> [FOLDER f] [TESTS t]) closes the list: it writes the table and stops when
# a file in the folder has no line.
function(tocsin_builtin room kind path)
  cmake_parse_arguments(ARG "REFERENCE" "FOLDER;TESTS;PAGE" "" ${ARGN})
  get_filename_component(name ${path} NAME)
  if(NOT ARG_FOLDER)
    set(ARG_FOLDER builtin)
  endif()
  if(NOT ARG_TESTS)
    set(ARG_TESTS ${room})
  endif()
  if(NOT ARG_PAGE)
    set(ARG_PAGE docs/${room}/${name}.md)
  endif()
  set(source ${room}/${ARG_FOLDER}/${path}.cc)
  set(missing "")
  tocsin_needs(${source} "the ${kind}: ends with the function ${name}(), which returns its descriptor")
  tocsin_needs(tests/unit/${ARG_TESTS}/${name}_test.cc "its unit tests")
  tocsin_needs(${ARG_PAGE} "its page for users")
  if(ARG_REFERENCE)
    tocsin_needs(tests/reference/rules/${name}.py "the same rule in Python, slow and obvious: DEFAULTS, TOCSIN, evaluate()")
    tocsin_needs(tests/reference/tables/${name}.yaml "cases worked by hand: at least one that fires and one that stays quiet")
    tocsin_generated_rules(generated)
    if(NOT name IN_LIST generated)
      string(APPEND missing "\n  tests/reference/random_streams/<any>.py: a function `def ${name}(chance)`, which draws random streams for it")
    endif()
  endif()
  if(missing)
    message(FATAL_ERROR "${kind} ${name} is registered in ${room}/CMakeLists.txt.  Missing:${missing}\n"
      "  CONTRIBUTING.md says what each holds and which part to copy (\"${TOCSIN_CHAPTER_${kind}}\").")
  endif()
  set_property(GLOBAL APPEND PROPERTY TOCSIN_BUILTIN_${ARG_TESTS} ${name})
  set_property(GLOBAL APPEND PROPERTY TOCSIN_BUILTIN_PATHS_${ARG_TESTS} ${path}.cc)
  target_sources(tocsin_${room} PRIVATE ${PROJECT_SOURCE_DIR}/${source})
endfunction()

# Headings of CONTRIBUTING.md.
set(TOCSIN_CHAPTER_rule "A rule in fifteen minutes")
set(TOCSIN_CHAPTER_action "An action, a collector")
set(TOCSIN_CHAPTER_collector "An action, a collector")
set(TOCSIN_CHAPTER_statistic "A statistic")

# tocsin_needs(<file> <what it holds>): adds a line to the caller's `missing` unless the file exists.
function(tocsin_needs file what)
  if(NOT EXISTS ${PROJECT_SOURCE_DIR}/${file})
    set(missing "${missing}\n  ${file}: ${what}" PARENT_SCOPE)
  endif()
endfunction()

# tocsin_generated_rules(<variable>): rules that have a generator, as tests/reference/random_streams/__init__.py finds them.
function(tocsin_generated_rules variable)
  get_property(known GLOBAL PROPERTY TOCSIN_GENERATED_RULES)
  if(NOT known)
    file(GLOB modules CONFIGURE_DEPENDS ${PROJECT_SOURCE_DIR}/tests/reference/random_streams/[a-z]*.py)
    foreach(module ${modules})
      file(STRINGS ${module} lines REGEX "^(def [a-z0-9_]+\\(chance\\)|@common\\.of\\()")
      foreach(line ${lines})
        string(REGEX REPLACE "^(def |@common\\.of\\(\")([a-z0-9_]+).*" "\\2" rule "${line}")
        list(APPEND known ${rule})
      endforeach()
    endforeach()
    set_property(GLOBAL PROPERTY TOCSIN_GENERATED_RULES ${known})
  endif()
  set(${variable} ${known} PARENT_SCOPE)
endfunction()

function(tocsin_builtin_table room kind descriptor header)
  cmake_parse_arguments(ARG "" "FOLDER;TESTS" "" ${ARGN})
  if(NOT ARG_FOLDER)
    set(ARG_FOLDER builtin)
  endif()
  if(NOT ARG_TESTS)
    set(ARG_TESTS ${room})
  endif()
  set(plural ${kind}s)
  set(table ${plural}_table.cc)
  get_property(names GLOBAL PROPERTY TOCSIN_BUILTIN_${ARG_TESTS})
  get_property(paths GLOBAL PROPERTY TOCSIN_BUILTIN_PATHS_${ARG_TESTS})
  set(folder ${PROJECT_SOURCE_DIR}/${room}/${ARG_FOLDER})
  file(GLOB_RECURSE found CONFIGURE_DEPENDS RELATIVE ${folder} ${folder}/*.cc)
  foreach(file ${found})
    if(NOT file IN_LIST paths)
      string(REGEX REPLACE "\\.cc$" "" name ${file})
      message(FATAL_ERROR "${room}/${ARG_FOLDER}/${file} is not registered.  Missing:\n"
        "  ${room}/CMakeLists.txt: a line builtin_${kind}(${name})\n"
        "  See \"${TOCSIN_CHAPTER_${kind}}\" in CONTRIBUTING.md.")
    endif()
  endforeach()
  set(declarations "")
  set(entries "")
  foreach(name ${names})
    string(APPEND declarations "${descriptor} ${name}();\n")
    string(APPEND entries "      ${name}(),\n")
  endforeach()
  file(CONFIGURE OUTPUT ${CMAKE_CURRENT_BINARY_DIR}/${table} CONTENT
"// Generated by cmake/TocsinRoom.cmake from ${room}/CMakeLists.txt.
#include \"${header}\"

namespace tocsin::${room} {

${declarations}
std::span<const ${descriptor}> builtin_${plural}() {
  static const ${descriptor} kTable[] = {
${entries}  };
  return kTable;
}

}  // namespace tocsin::${room}
")
  target_sources(tocsin_${room} PRIVATE ${CMAKE_CURRENT_BINARY_DIR}/${table})
endfunction()

# tocsin_test(<name> TIER unit|contract|integration|e2e [THREADED] [MEMCHECK] [SHARDS <n>] [BUILTIN <room>]
# SOURCES <cc…> LINK <targets…>): a GoogleTest program, registered with ctest as one test under the label of its tier,
# or as n tests that share its cases (name, name_2, …), for several cores. BUILTIN adds the unit tests of the room's
# registered parts. MEMCHECK runs it in valgrind: AddressSanitizer does not see
# what a library that was compiled without it writes into memory that we let go too early.
function(tocsin_test name)
  cmake_parse_arguments(ARG "THREADED;MEMCHECK" "TIER;TIMEOUT;BUILTIN;SHARDS" "SOURCES;LINK" ${ARGN})
  if(ARG_BUILTIN)
    get_property(parts GLOBAL PROPERTY TOCSIN_BUILTIN_${ARG_BUILTIN})
    list(TRANSFORM parts REPLACE "(.+)" "${PROJECT_SOURCE_DIR}/tests/unit/${ARG_BUILTIN}/\\1_test.cc")
    list(APPEND ARG_SOURCES ${parts})
  endif()
  add_executable(${name} ${ARG_SOURCES})
  tocsin_batches(${name})
  target_link_libraries(${name} PRIVATE tocsin_flags ${ARG_LINK} GTest::gmock GTest::gtest_main)
  # A test is compiled once and run for milliseconds: -O1 saves a third of its compile time, and GCC 12
  # at -O3 sees overflows in inlined vector copies that are none (GCC PR 105562, 107852).
  target_compile_options(${name} PRIVATE $<$<CONFIG:Release>:-O1>)
  set(checker)
  find_program(VALGRIND valgrind)
  if(ARG_MEMCHECK AND VALGRIND AND NOT TOCSIN_SANITIZE)
    set(checker ${VALGRIND} --quiet --error-exitcode=9 --num-callers=20)
  endif()
  # tests_unit, tests_contract, …: the programs of one tier; tests_threaded: those with threads of ours.
  set(groups ${ARG_TIER})
  if(ARG_THREADED)
    list(APPEND groups threaded)
  endif()
  foreach(group ${groups})
    if(NOT TARGET tests_${group})
      add_custom_target(tests_${group})
    endif()
    add_dependencies(tests_${group} ${name})
  endforeach()
  if(NOT ARG_TIMEOUT)
    set(ARG_TIMEOUT 120)
  endif()
  if(TOCSIN_SANITIZE)
    math(EXPR ARG_TIMEOUT "3 * ${ARG_TIMEOUT}")
  endif()
  if(NOT ARG_SHARDS)
    set(ARG_SHARDS 1)
  endif()
  foreach(shard RANGE 1 ${ARG_SHARDS})
    set(part ${name})
    if(shard GREATER 1)
      set(part ${name}_${shard})
    endif()
    math(EXPR index "${shard} - 1")
    add_test(NAME ${part} COMMAND ${checker} $<TARGET_FILE:${name}> WORKING_DIRECTORY ${PROJECT_SOURCE_DIR})
    set_tests_properties(${part} PROPERTIES LABELS "${groups}" TIMEOUT ${ARG_TIMEOUT}
      ENVIRONMENT "GTEST_TOTAL_SHARDS=${ARG_SHARDS};GTEST_SHARD_INDEX=${index}")
  endforeach()
endfunction()

# tocsin_fuzz(<name> <cc> <targets…>)
function(tocsin_fuzz name source)
  if(TOCSIN_FUZZ)
    add_executable(${name} ${source})
    target_link_libraries(${name} PRIVATE tocsin_flags ${ARGN})
    target_link_options(${name} PRIVATE -fsanitize=fuzzer)
  endif()
endfunction()
