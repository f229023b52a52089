# Warnings, sanitizers and ccache. Everything a target of ours gets is in convssm_flags.
add_library(convssm_flags INTERFACE)
target_compile_options(convssm_flags INTERFACE -Wall -Wextra -Wpedantic -Wshadow -Werror)
# GCC 12 sees overlaps and overflows in inlined std::string and fmt code that are not there (GCC bugs 105329, 105762).
if(CMAKE_CXX_COMPILER_ID STREQUAL GNU AND CMAKE_CXX_COMPILER_VERSION VERSION_LESS 13)
  target_compile_options(convssm_flags INTERFACE -Wno-restrict -Wno-stringop-overflow)
endif()

if(CONVSSM_SANITIZE)
  add_compile_options(-fsanitize=address,undefined -fno-sanitize-recover=undefined -fno-omit-frame-pointer)
  add_link_options(-fsanitize=address,undefined)
endif()

# A precompiled header is seen by ccache only with this sloppiness; __DATE__ and __TIME__ are not used here.
find_program(CCACHE ccache)
if(CCACHE)
  set(CMAKE_CXX_COMPILER_LAUNCHER ${CMAKE_COMMAND} -E env CCACHE_SLOPPINESS=pch_defines,time_macros ${CCACHE})
endif()
