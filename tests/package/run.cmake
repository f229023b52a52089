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

run(${CMAKE_COMMAND} --install ${BUILD_DIR} --prefix ${prefix})
run(${CMAKE_COMMAND} -S ${SOURCE_DIR} -B ${scratch}/build -G ${GENERATOR} -DCMAKE_BUILD_TYPE=Release
    -DCMAKE_CXX_COMPILER=${COMPILER} -DCMAKE_PREFIX_PATH=${prefix} -DEXAMPLES_DIR=${SOURCE_DIR}/../../examples)
run(${CMAKE_COMMAND} --build ${scratch}/build)
run(${scratch}/build/user)
run(${scratch}/build/own_model ${scratch}/own_model)
run(${prefix}/bin/convssm --version)

file(GLOB_RECURSE cli_headers ${prefix}/include/convssm/cli/*.h)
if(cli_headers)
  message(FATAL_ERROR "the headers of the command line do not belong into the package: ${cli_headers}")
endif()

# The trained models are installed with the program, which finds them.
file(GLOB models LIST_DIRECTORIES true ${SOURCE_DIR}/../../pretrained/*)
foreach(model ${models})
  get_filename_component(name ${model} NAME)
  set(installed ${prefix}/share/convssm/pretrained/${name})
  run(${prefix}/bin/convssm generate ${installed} --context ${installed}/context.npy --frames 3
      --out ${scratch}/${name}.npy)
endforeach()
execute_process(COMMAND ${prefix}/bin/convssm demo --help OUTPUT_VARIABLE help)
if(NOT help MATCHES "share/convssm/pretrained/moving-digits-convs5")
  message(FATAL_ERROR "the installed program does not find its pretrained model: ${help}")
endif()
