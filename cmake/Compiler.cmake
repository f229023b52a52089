# Warnings, sanitizers and ccache. Everything a target of ours gets is in convssm_flags.
add_library(convssm_flags INTERFACE)
target_compile_options(convssm_flags INTERFACE -Wall -Wextra -Wpedantic -Wshadow)
if(CONVSSM_WERROR)
  target_compile_options(convssm_flags INTERFACE -Werror)
endif()
# GCC 12 sees overlaps and overflows in inlined std::string, std::vector and fmt code that are not there (GCC bugs 105329
# and 105762 are of this kind).
if(CMAKE_CXX_COMPILER_ID STREQUAL GNU AND CMAKE_CXX_COMPILER_VERSION VERSION_LESS 13)
  target_compile_options(convssm_flags INTERFACE -Wno-restrict -Wno-stringop-overflow -Wno-array-bounds)
endif()

if(CONVSSM_SANITIZE STREQUAL address)
  add_compile_options(-fsanitize=address,undefined -fno-sanitize-recover=undefined)
  add_link_options(-fsanitize=address,undefined)
elseif(CONVSSM_SANITIZE STREQUAL thread)
  add_compile_options(-fsanitize=thread)
  add_link_options(-fsanitize=thread)
elseif(CONVSSM_SANITIZE)
  message(FATAL_ERROR "CONVSSM_SANITIZE must be address, thread or empty, got '${CONVSSM_SANITIZE}'")
endif()
if(CONVSSM_SANITIZE)
  add_compile_options(-fno-omit-frame-pointer)
  add_compile_definitions(_GLIBCXX_ASSERTIONS)  # an index beyond a vector's size, even if it is within its memory
endif()
# A kernel file is many inlined copies of small functions. Checks by calls, none for nullptr (which ends a program anyway)
# and none for the end of scopes: it compiles in a third of the time, and every access to memory is still looked at.
if(CONVSSM_SANITIZE STREQUAL address AND CMAKE_CXX_COMPILER_ID STREQUAL GNU)
  set(kernel_sanitizer_flags --param=asan-instrumentation-with-call-threshold=0 -fno-sanitize=null
                             -fno-sanitize-address-use-after-scope)
endif()

# A precompiled header is seen by ccache only with this sloppiness; __DATE__ and __TIME__ are not used here.
find_program(CCACHE ccache)
if(CCACHE)
  set(CMAKE_CXX_COMPILER_LAUNCHER ${CMAKE_COMMAND} -E env CCACHE_SLOPPINESS=pch_defines,time_macros ${CCACHE})
endif()

# Every file that sees libtorch begins with seconds of reading its headers, precompiled or not. Compiled in groups, they are
# read once for a group. Names in a level's anonymous namespaces must therefore differ from each other.
option(CONVSSM_GROUP_FILES "Compile files in groups: quicker from scratch, slower after a change of one file" ON)
function(convssm_group_files target)
  if(CONVSSM_GROUP_FILES)
    set_target_properties(${target} PROPERTIES UNITY_BUILD ON UNITY_BUILD_BATCH_SIZE 8)
    target_compile_options(${target} PRIVATE -Wno-subobject-linkage)  # a group has no file of its own
  endif()
endfunction()
