# libtorch, as the target convssm_libtorch: Debian's package, or that of a torch wheel (`cmake --preset wheel`). Of the wheel
# the libraries are named here and not by its own TorchConfig.cmake, which asks for a CUDA compiler where the wheel has CUDA.
# Everything else that differs between the two stands in convssm/ops/libtorch.h and below.
#   CONVSSM_TORCH=debian|wheel    CONVSSM_PYTHON: the Python that has the wheel
# Installed with the package too, whose users need the libtorch that it was built with; convssm_needs_onednn: and its oneDNN.
set(convssm_oldest_wheel 2.7)  # the first with the C++ ABI of today's compilers

function(convssm_find_wheel)
  find_program(CONVSSM_PYTHON python3 DOC "The Python that has the torch wheel" REQUIRED)
  set(script "import importlib.metadata as m, importlib.util as u; s = u.find_spec('torch')
print(m.version('torch') + ';' + s.submodule_search_locations[0])")
  execute_process(COMMAND ${CONVSSM_PYTHON} -c "${script}" OUTPUT_VARIABLE found ERROR_QUIET
                  OUTPUT_STRIP_TRAILING_WHITESPACE RESULT_VARIABLE result)
  if(NOT result EQUAL 0)
    message(FATAL_ERROR "CONVSSM_TORCH=wheel, but '${CONVSSM_PYTHON}' has no torch. Install one (python3 -m venv V; V/bin/pip "
                        "install torch) and name its Python: cmake --preset wheel -DCONVSSM_PYTHON=V/bin/python")
  endif()
  list(GET found 0 version)
  list(GET found 1 folder)
  if(version VERSION_LESS ${convssm_oldest_wheel})
    message(FATAL_ERROR "torch >= ${convssm_oldest_wheel} is needed, found ${version} in ${folder}: older wheels have the old "
                        "C++ ABI (_GLIBCXX_USE_CXX11_ABI=0). Upgrade it (pip install --upgrade torch), or build with Debian's libtorch "
                        "(cmake --preset release)")
  endif()
  if(TARGET torch_cpu)  # of a find_package(Torch) before
    get_target_property(other torch_cpu IMPORTED_LOCATION)
    if(NOT other MATCHES "^${folder}/")
      message(FATAL_ERROR "two libtorch in one program: ${other} was found before, convssm was built with ${folder}. Find the "
                          "wheel's (CMAKE_PREFIX_PATH=${folder}), or build convssm with the other (cmake --preset release)")
    endif()
  endif()
  message(STATUS "libtorch ${version} of the wheel in ${folder}")
  set(convssm_wheel_folder ${folder} PARENT_SCOPE)
endfunction()

if(NOT TARGET convssm_libtorch)
  add_library(convssm_libtorch INTERFACE IMPORTED)
  if(CONVSSM_TORCH STREQUAL debian)
    find_package(Torch REQUIRED)
    if(Torch_VERSION VERSION_GREATER_EQUAL 2)
      message(FATAL_ERROR "CONVSSM_TORCH=debian expects Debian's libtorch 1.13, found ${Torch_VERSION} in ${Torch_DIR}. For a "
                          "torch wheel: cmake --preset wheel")
    endif()
    if(convssm_needs_onednn)
      find_package(dnnl REQUIRED)
    endif()
    target_link_libraries(convssm_libtorch INTERFACE torch)
    set(convssm_fmt fmt::fmt)
    set(convssm_onednn DNNL::dnnl)
  elseif(CONVSSM_TORCH STREQUAL wheel)
    convssm_find_wheel()
    set(convssm_wheel_lib ${convssm_wheel_folder}/lib)
    target_include_directories(convssm_libtorch SYSTEM INTERFACE
                               ${convssm_wheel_folder}/include ${convssm_wheel_folder}/include/torch/csrc/api/include)
    # libtorch.so has no code; it brings the libraries of CUDA, where the wheel has them, which register themselves.
    target_link_libraries(convssm_libtorch INTERFACE -Wl,--push-state,--no-as-needed ${convssm_wheel_lib}/libtorch.so -Wl,--pop-state
                                                     ${convssm_wheel_lib}/libtorch_cpu.so ${convssm_wheel_lib}/libc10.so)
    target_link_options(convssm_libtorch INTERFACE -Wl,-rpath,${convssm_wheel_lib})
    # The wheel has a libgomp of its own under the same name, and one of the two is loaded: CMake need not choose.
    set_target_properties(OpenMP::OpenMP_CXX PROPERTIES INTERFACE_LINK_LIBRARIES "" INTERFACE_LINK_OPTIONS -fopenmp)
    # The wheel brings headers of another fmt than Debian's library is of, and a oneDNN of another version inside of
    # libtorch_cpu: fmt is compiled in, and libtorch's convolutions take the place of oneDNN's.
    set(convssm_fmt fmt::fmt-header-only)
    set(convssm_onednn "")
  else()
    message(FATAL_ERROR "CONVSSM_TORCH must be debian or wheel, got '${CONVSSM_TORCH}'")
  endif()
endif()
