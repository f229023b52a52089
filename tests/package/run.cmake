# Installs the built tree into a scratch prefix, then configures, builds and runs the outside project against it.
#   cmake -DBUILD_DIR=... -DSOURCE_DIR=... -DGENERATOR=... -DCOMPILER=... -DLAUNCHER=... -P run.cmake
set(scratch ${BUILD_DIR}/package_test)
set(prefix ${scratch}/prefix)
file(REMOVE_RECURSE ${scratch})
set(ENV{CMAKE_CXX_COMPILER_LAUNCHER} "${LAUNCHER}")  # a list: as an argument it would fall apart

function(run)
  execute_process(COMMAND ${ARGN} RESULT_VARIABLE result)
  if(NOT result EQUAL 0)
    list(JOIN ARGN " " command)
    message(FATAL_ERROR "failed (${result}): ${command}")
  endif()
endfunction()

# Builds the outside project in its own folder, as configured by the further arguments.
function(build_user folder)
  run(${CMAKE_COMMAND} -S ${SOURCE_DIR} -B ${scratch}/${folder} -G ${GENERATOR} -DCMAKE_BUILD_TYPE=Release
      -DCMAKE_CXX_COMPILER=${COMPILER} -DCMAKE_PREFIX_PATH=${prefix} ${ARGN})
  run(${CMAKE_COMMAND} --build ${scratch}/${folder})
endfunction()

run(${CMAKE_COMMAND} --install ${BUILD_DIR} --prefix ${prefix})
build_user(core -DCORE_ONLY=ON)
run(${scratch}/core/user)
build_user(all -DEXAMPLES_DIR=${SOURCE_DIR}/../../examples)
run(${scratch}/all/user)
run(${scratch}/all/own_model ${scratch}/own_model)
run(${prefix}/bin/convssm --version)
run(${prefix}/bin/convssm bench --help)

# Who takes a layer links no library of a file format.
execute_process(COMMAND readelf -d ${scratch}/core/user OUTPUT_VARIABLE needed COMMAND_ERROR_IS_FATAL ANY)
string(REPLACE "[" "" needed "${needed}")  # a bracket would hold a list together
string(REGEX MATCHALL "library: [^]]+" needed "${needed}")
list(TRANSFORM needed REPLACE "library: " "")
message("a program with convssm::core links: ${needed}")
if(needed MATCHES "libav|libsw|gif|rsvg|png|yaml|xxhash" OR NOT needed MATCHES "torch")
  message(FATAL_ERROR "convssm::core should link libtorch and nothing of file formats")
endif()

# The installed headers include no other header of the library, and none of a library that users need not have.
file(GLOB_RECURSE headers RELATIVE ${prefix}/include ${prefix}/include/convssm/*.h)
foreach(header ${headers})
  file(STRINGS ${prefix}/include/${header} includes REGEX "^#include")
  foreach(include ${includes})
    string(REGEX REPLACE "^#include [<\"]([^>\"]+).*" "\\1" name "${include}")
    if(name MATCHES "^convssm/" AND NOT EXISTS ${prefix}/include/${name})
      message(FATAL_ERROR "${header} includes ${name}, which is not installed: see cmake/PublicHeaders.cmake")
    elseif(name MATCHES "^(dnnl|hwy|CLI|png|gif|zlib|yaml|libav|libsw|xxhash|librsvg)" OR name MATCHES "_kernels.h|-inl.h")
      if(NOT name STREQUAL "convssm/ssm/discretize_kernels.h")  # kernels of a ConvSSM, not of the CPU
        message(FATAL_ERROR "${header} includes ${name}, which is not for users")
      endif()
    endif()
  endforeach()
endforeach()
list(LENGTH headers count)
message("${count} public headers")
if(count LESS 50)
  message(FATAL_ERROR "only ${count} headers are installed")
endif()

# The trained models are installed with the program, which finds them.
file(GLOB models LIST_DIRECTORIES true ${SOURCE_DIR}/../../pretrained/*)
foreach(model ${models})
  get_filename_component(name ${model} NAME)
  set(installed ${prefix}/share/convssm/pretrained/${name})
  if(EXISTS ${installed}/context.npy)
    run(${prefix}/bin/convssm generate ${installed} --context ${installed}/context.npy --frames 3
        --out ${scratch}/${name}.npy)
  else()  # a tokenizer
    run(${prefix}/bin/convssm data encode ${installed} --clips 1 --frames 3 --out ${scratch}/${name})
  endif()
endforeach()
execute_process(COMMAND ${prefix}/bin/convssm demo --help OUTPUT_VARIABLE help)
if(NOT help MATCHES "share/convssm/pretrained/moving-digits-convs5")
  message(FATAL_ERROR "the installed program does not find its pretrained model: ${help}")
endif()
